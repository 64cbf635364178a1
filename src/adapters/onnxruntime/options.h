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
    /* Shapes that inputs are assumed to have, "NAME:1x3x640x640;NAME:1x128", or
     * "". */
    char shapes[512];
};

/* Returns true if the option "device" names only the CPU. */
bool options_name_cpu(const struct ort_api *api,
                      const struct OrtSessionOptions *session);

/* Reads the options from a session's configuration.  `context` finds the
 * device.  Returns NULL for success. */
struct OrtStatus *options_read(struct provider_options *options,
                               const struct ort_api *api,
                               const struct OrtSessionOptions *session,
                               struct tandem_context *context);

/* Copies entry number `index` of the option "shapes", and its name without a
 * terminating 0.  Returns the rank, or 0 if there are fewer entries. */
uint32_t options_shape_entry(const struct provider_options *options,
                             uint32_t index, const char **out_name,
                             size_t *out_name_length,
                             int64_t out_shape[TANDEM_MAX_RANK]);
/* Copies the shape that the option "shapes" gives to a value.  Returns the
 * rank, or 0 if the option does not name the value. */
uint32_t options_shape(const struct provider_options *options, const char *name,
                       int64_t out_shape[TANDEM_MAX_RANK]);

#endif
