/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a model that runs as one node of ONNX Runtime.  Its graph is
 * lowered once for each set of input shapes; the most recent forms are kept.
 *
 * Any number of threads may run a subgraph at the same time. */
#ifndef TANDEM_ONNXRUNTIME_SUBGRAPH_H
#define TANDEM_ONNXRUNTIME_SUBGRAPH_H

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/options.h"
#include "adapters/onnxruntime/runtime.h"

struct subgraph;

/* Reads a graph that ONNX Runtime replaces by fused_node, and copies its
 * constants.  `number` counts the subgraphs of the session from 1 on, for
 * messages.  `options` and `logger` must outlive the subgraph.  On failure
 * *out is NULL. */
struct OrtStatus *subgraph_create(struct runtime *runtime,
                                  const struct provider_options *options,
                                  const struct OrtLogger *logger,
                                  const struct OrtGraph *ort_graph,
                                  const struct OrtNode *fused_node,
                                  uint32_t number, struct subgraph **out);
/* Accepts NULL.  No thread may run the subgraph. */
void subgraph_destroy(struct subgraph *subgraph);

/* [blocks] Computes the outputs of ONNX Runtime's kernel context from its
 * inputs. */
struct OrtStatus *subgraph_run(struct subgraph *subgraph,
                               struct OrtKernelContext *context);

#endif
