/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a graph takes on each device. */
#ifndef TANDEM_ONNXRUNTIME_CLAIM_COST_H
#define TANDEM_ONNXRUNTIME_CLAIM_COST_H

#include "adapters/onnxruntime/graph.h"
#include "adapters/onnxruntime/options.h"

struct claim_cost {
    uint32_t device;  /* fastest device that is not the CPU plugin's, or
                       * TANDEM_ANY_DEVICE if there is none */
    double device_ns; /* its time, with transfers */
    double cpu_ns;    /* time of the CPU plugin */
    char reason[256]; /* why there is no prediction, or "" */
};

/* Predicts the times of one run of a graph whose data come from the host and
 * return there. Dimensions that are not known count as 1 if they, or others of
 * the same name, are the first of a tensor, else as 128. Costs are those that
 * cl-probe measured; a device without measured costs is not considered. */
void claim_cost_predict(struct tandem_context *context,
                        const struct provider_options *options,
                        const struct graph *graph, struct claim_cost *out);

#endif
