/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of a graph as weights.  One thread at a time may use a graph
 * with these functions. */
#ifndef TANDEM_ONNXRUNTIME_CONSTANTS_H
#define TANDEM_ONNXRUNTIME_CONSTANTS_H

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/runtime.h"

/* Acquires weights for the constants of a fused graph that its nodes read.  The
 * graph then needs ONNX Runtime's constants no more.  constants_release frees
 * the weights, also after a failure. */
enum tandem_status constants_acquire(struct runtime *runtime,
                                     struct graph *graph);
void constants_release(struct runtime *runtime, struct graph *graph);

#endif
