/* SPDX-License-Identifier: Apache-2.0 */
/* Fusions around convolutions. */
#ifndef TANDEM_ONNXRUNTIME_FUSION_CONV_H
#define TANDEM_ONNXRUNTIME_FUSION_CONV_H

#include "adapters/onnxruntime/graph_match.h"

/* Gives convolutions the sum with another tensor and the activation that follow
 * them. */
void fuse_convolutions(struct fusion *f);

#endif
