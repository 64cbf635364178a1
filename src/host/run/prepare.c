/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that compile an operator before it runs. */
#include <config.h>

#include "common/last_error.h"
#include "host/run/launch.h"
#include "host/run/matmul.h"
#include "host/run/placement.h"
#include "host/run/prepared_cache.h"

static enum tandem_status call_prepare(struct call *call)
{
    const struct float_env host = float_env_enter();
    struct placement_decision decision;
    struct device *device;
    enum tandem_status status = call_prepare_decision(call, &decision, &device);

    if (status == TANDEM_OK) {
        if (device == NULL)
            status = argument_error("device: TANDEM_ANY_DEVICE; expected the "
                                    "number of a device");
        else
            status = call_make_ready(call, device);
        call_release(call, &decision);
    }
    float_env_leave(host);
    return status;
}

enum tandem_status
tandem_prepare_on(struct tandem_context *context, uint32_t device,
                  const struct tandem_op *op,
                  struct tandem_tensor *const *inputs, uint32_t input_count,
                  struct tandem_tensor *const *outputs, uint32_t output_count)
{
    struct call call;
    const enum tandem_status status = call_init(
        &call, context, device, op, inputs, input_count, outputs, output_count);

    return status == TANDEM_OK ? call_prepare(&call) : status;
}

/* Prepares the copies of the inputs that the product needs.  Returns NOT_READY
 * if one of them must be compiled. */
static enum tandem_status copies_prepare(const struct matmul *matmul,
                                         struct tandem_tensor *const inputs[3])
{
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_COPY};
    enum tandem_status result = TANDEM_OK;

    for (uint32_t i = 0; i < 3; i++) {
        enum tandem_status status = TANDEM_OK;

        if (matmul->copies[i] != NULL)
            status =
                tandem_prepare_on(matmul->call.context, matmul->call.device,
                                  &op, &inputs[i], 1, &matmul->copies[i], 1);
        if (status != TANDEM_OK && status != TANDEM_NOT_READY)
            return status;
        if (status == TANDEM_NOT_READY)
            result = status;
    }
    return result;
}

enum tandem_status tandem_prepare_matmul(
    struct tandem_context *context, const struct tandem_matmul_options *options,
    struct tandem_tensor *a, struct tandem_tensor *b, struct tandem_tensor *c)
{
    struct matmul matmul;
    enum tandem_status copies = TANDEM_OK,
                       status = matmul_prepare(&matmul, context, options, a, b,
                                               c, true);

    if (status == TANDEM_OK) {
        struct tandem_tensor *const inputs[] = {
            a, b, options != NULL ? options->bias : NULL};

        copies = copies_prepare(&matmul, inputs);
        status = call_prepare(&matmul.call);
    }
    matmul_finish(&matmul);
    return status == TANDEM_OK ? copies : status;
}
