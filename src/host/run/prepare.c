/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that compile an operator before it runs.
 * They lock the context's mutex. */
#include <config.h>

#include "common/last_error.h"
#include "host/run/run.h"

static enum tandem_status call_prepare(struct call *call)
{
    struct tandem_context *context = call->context;
    struct placement_decision decision;
    struct call_descriptor *cached;
    struct device *device;
    enum tandem_status status;

    context_lock(context);
    status = call_prepare_decision(call, &decision, &device, &cached);
    if (status == TANDEM_OK && device == NULL)
        status = argument_error("device: TANDEM_ANY_DEVICE; expected the "
                                "number of a device");
    if (status == TANDEM_OK)
        status = call_make_ready(call, device);
    context_unlock(context);
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

enum tandem_status tandem_prepare_matmul(
    struct tandem_context *context, const struct tandem_matmul_options *options,
    struct tandem_tensor *a, struct tandem_tensor *b, struct tandem_tensor *c)
{
    struct matmul matmul;
    enum tandem_status status =
        matmul_prepare(&matmul, context, options, a, b, c, MATMUL_PREPARE);

    if (status == TANDEM_OK)
        status = call_prepare(&matmul.call);
    if (status == TANDEM_OK && matmul.must_compile)
        status = last_error_set(TANDEM_NOT_READY,
                                "matmul: the copy of an input is not compiled "
                                "yet");
    matmul_finish(&matmul);
    return status;
}
