/* SPDX-License-Identifier: Apache-2.0 */
/* Fusions around matrix products. */
#ifndef TANDEM_ONNXRUNTIME_FUSION_MATMUL_H
#define TANDEM_ONNXRUNTIME_FUSION_MATMUL_H

#include "adapters/onnxruntime/graph_match.h"

/* Gives matrix products the factor, bias and activation that follow them, and
 * merges products of one matrix with several constant ones. */
void fuse_matmuls(struct fusion *f);

#endif
