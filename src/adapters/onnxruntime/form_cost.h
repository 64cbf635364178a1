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
    double cpu_ns;    /* time of the CPU plugin */
    char reason[256]; /* why there is no prediction, or "" */
};

/* Predicts the times of one run of a form whose inputs come from the host and
 * whose outputs return there. Costs are those that cl-probe measured; a device
 * without measured costs is not considered. */
void form_cost_predict(struct tandem_context *context,
                       const struct provider_options *options,
                       const struct form *form, struct form_cost *out);

#endif
