/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises attention that an exporter wrote as matrix products and a
 * softmax. */
#ifndef TANDEM_ONNXRUNTIME_FUSION_ATTENTION_H
#define TANDEM_ONNXRUNTIME_FUSION_ATTENTION_H

#include "adapters/onnxruntime/graph_match.h"

/* Replaces each softmax(scale q k + mask) v by one node that
 * lower_fused_attention lowers. Call this before fuse_matmuls, which gives
 * products the operators that follow them. */
void fuse_attentions(struct fusion *f);

#endif
