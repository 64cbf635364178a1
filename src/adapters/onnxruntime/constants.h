/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of a graph as weights.  One thread at a time may use a graph
 * with these functions. */
#ifndef TANDEM_ONNXRUNTIME_CONSTANTS_H
#define TANDEM_ONNXRUNTIME_CONSTANTS_H

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/runtime.h"

/* Returns true if ONNX Runtime should keep the constants of a fused graph as
 * inputs of the node that replaces it.  This avoids a time when they exist
 * twice.  Otherwise sessions can share them. */
bool constants_should_stay(struct runtime *runtime, const struct graph *graph);
/* Acquires weights for the constants of a fused graph that its nodes read, and
 * removes constants from the inputs of the graph.  Large ones that were inputs
 * stay in ONNX Runtime's memory.  constants_release frees the weights, also
 * after a failure. */
enum tandem_status constants_acquire(struct runtime *runtime,
                                     struct graph *graph);
/* Must be called in a run before the weights are used.  Replaces the weights of
 * constants that ONNX Runtime moved when it finished the session.  The caller
 * owns the status; NULL means success. */
struct OrtStatus *constants_rebind(struct runtime *runtime, struct graph *graph,
                                   struct OrtKernelContext *context);
void constants_release(struct runtime *runtime, struct graph *graph);

#endif
