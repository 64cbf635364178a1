/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes of a model the provider takes. */
#ifndef TANDEM_ONNXRUNTIME_CLAIM_H
#define TANDEM_ONNXRUNTIME_CLAIM_H

#include "adapters/onnxruntime/options.h"
#include "adapters/onnxruntime/runtime.h"

/* Adds the groups of nodes that the provider takes to `info`. */
struct OrtStatus *claim_nodes(struct runtime *runtime,
                              const struct provider_options *options,
                              const struct OrtLogger *logger,
                              const struct OrtGraph *ort_graph,
                              struct OrtEpGraphSupportInfo *info);

#endif
