/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a form takes on each device. */
#ifndef TANDEM_ONNXRUNTIME_FORM_COST_H
#define TANDEM_ONNXRUNTIME_FORM_COST_H

#include "adapters/onnxruntime/form.h"
#include "adapters/onnxruntime/options.h"

struct form_cost {
    uint32_t device;  /* fastest device that is not the CPU plugin's, or
                       * TANDEM_ANY_DEVICE */
    double device_ns; /* its time, with transfers */
    bool is_default;  /* true if a default cost is part of device_ns */
    double cpu_ns;    /* time of the CPU plugin */
    char reason[256]; /* why there is no prediction, or "" */
    /* The device that would need the fewest steps removed to run the form, if
     * no device except the CPU supports all steps; else TANDEM_ANY_DEVICE. */
    uint32_t partial_device;
    /* The node with a step that no device accepts, or NULL. */
    const struct graph_node *invalid_node;
};

/* Predicts the times of one run of a form whose inputs come from the host and
 * whose outputs return there. Costs are those that cl-probe measured. GPUs have
 * default costs if no GPU was measured. Other devices without measured costs
 * are not considered. */
void form_cost_predict(struct tandem_context *context,
                       const struct provider_options *options,
                       const struct form *form, struct form_cost *out);

/* Sets out_nodes[i] to true if the device does not support a step of node i of
 * the graph from which the form was made.  Other elements do not change. */
void form_cost_mark_unsupported(struct tandem_context *context,
                                const struct provider_options *options,
                                const struct form *form,
                                const struct graph *graph, uint32_t device,
                                bool *out_nodes);

#endif
