/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the provider, which a program passes when it adds the provider to
 * a session. */
#ifndef TANDEM_ONNXRUNTIME_OPTIONS_H
#define TANDEM_ONNXRUNTIME_OPTIONS_H

#include "adapters/onnxruntime/ort_api.h"
#include "tandem/host.h"

enum claim_policy {
    CLAIM_BY_COST, /* subgraphs that are predicted to run faster than on the
                    * CPU */
    CLAIM_ALL      /* every node that the provider serves */
};

struct provider_options {
    /* Number of a device of the context. With TANDEM_ANY_DEVICE, each form runs
     * on the device with the lowest predicted time. */
    uint32_t device;
    enum claim_policy claim;
    uint32_t gemm_flags; /* enum tandem_gemm_flags */
    /* Wait for kernels to compile in the first run.  Otherwise the CPU plugin
     * runs operators whose kernels are not compiled yet. */
    bool wait_for_compilation;
    char explain[512]; /* file for the placement report; "": none */
};

/* Reads the options from a session's configuration.  `context` finds the
 * device.  Returns NULL for success. */
struct OrtStatus *options_read(struct provider_options *options,
                               const struct ort_api *api,
                               const struct OrtSessionOptions *session,
                               struct tandem_context *context);

#endif
