/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces groups of nodes by one operator of Tandem. */
#ifndef TANDEM_ONNXRUNTIME_FUSION_H
#define TANDEM_ONNXRUNTIME_FUSION_H

#include "adapters/onnxruntime/graph.h"

/* Recognises GELU, x sigmoid(x) and layer normalization in the nodes to which
 * exporters decompose them, and gives matrix products the bias and activation
 * that follow them.  Nodes that are replaced become `removed`. */
void graph_fuse(struct graph *graph);

#endif
