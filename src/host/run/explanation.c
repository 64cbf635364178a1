/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the public functions that explain on which device an operator ran
 * or would run, and why.  They lock the context's mutex.
 */
#include <config.h>

#include "common/last_error.h"
#include "common/struct_size.h"
#include "host/run/run.h"

#include <string.h>

static enum tandem_status out_check(const struct tandem_explanation *out)
{
    if (out == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT, "out: NULL");
    return struct_size_check("out", "tandem_explanation", out->struct_size,
                             sizeof(out->struct_size));
}

static void out_fill(struct tandem_context *context, struct record *record,
                     struct tandem_explanation *out)
{
    struct tandem_explanation full;

    memset(&full, 0, sizeof(full));
    explanation_fill(context, record, &full);
    struct_size_fill(out, &full, sizeof(full));
}

enum tandem_status tandem_explain_last(struct tandem_context *context,
                                       struct tandem_explanation *out)
{
    enum tandem_status status = context_check(context);
    struct record *record;

    if (status == TANDEM_OK)
        status = out_check(out);
    if (status != TANDEM_OK)
        return status;
    context_lock(context);
    record = record_find(context);
    if (record != NULL && record->context == context &&
        record->serial == context->serial)
        out_fill(context, record, out);
    else
        status =
            last_error_set(TANDEM_INVALID_ARGUMENT,
                           "this thread ran no operator in this context, or "
                           "its last one failed");
    context_unlock(context);
    return status;
}

/* Marks the devices that do not support the call or must compile first. */
static void candidates_ask(struct call *call, struct record *record,
                           const struct device *forced)
{
    struct tandem_context *context = call->context;

    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];
        enum tandem_status status;

        if ((device->duplicate && device != forced) ||
            (record->failed >> i & 1))
            continue;
        status = call_supported(call, device);
        if (status == TANDEM_OK && device->compiles)
            status = call_ready(call, device);
        if (status == TANDEM_NOT_READY) {
            record->unready |= 1u << i;
        } else if (status != TANDEM_OK) {
            record->failed |= 1u << i;
            record->status[i] = (uint8_t)status;
        }
    }
}

static enum tandem_status call_explain(struct call *call,
                                       struct tandem_explanation *out)
{
    struct tandem_context *context = call->context;
    struct record record;
    struct judged *judged;
    struct device *forced;
    const struct device *chosen;
    uint32_t unready;
    enum tandem_status status;

    context_lock(context);
    status = call_start(call, &record, &forced, &judged);
    if (status == TANDEM_OK) {
        candidates_ask(call, &record, forced);
        /* Ignore compile times, because they occur only once. */
        unready = record.unready;
        record.unready = 0;
        chosen = chooser_pick(context, &record, context->usable);
        if (forced != NULL)
            chosen = forced;
        record.unready = unready;
        if (chosen != NULL)
            record.chosen = chosen->id;
        out_fill(context, &record, out);
    }
    context_unlock(context);
    return status;
}

enum tandem_status
tandem_explain_op(struct tandem_context *context, const struct tandem_op *op,
                  struct tandem_tensor *const *inputs, uint32_t input_count,
                  struct tandem_tensor *const *outputs, uint32_t output_count,
                  struct tandem_explanation *out)
{
    struct call call;
    enum tandem_status status =
        call_make(&call, context, TANDEM_ANY_DEVICE, op, inputs, input_count,
                  outputs, output_count);

    if (status == TANDEM_OK)
        status = out_check(out);
    return status == TANDEM_OK ? call_explain(&call, out) : status;
}

enum tandem_status
tandem_explain_matmul(struct tandem_context *context,
                      const struct tandem_matmul_options *options,
                      struct tandem_tensor *a, struct tandem_tensor *b,
                      struct tandem_tensor *c, struct tandem_explanation *out)
{
    struct matmul matmul;
    enum tandem_status status =
        call_make_matmul(&matmul, context, options, a, b, c);

    if (status == TANDEM_OK)
        status = out_check(out);
    if (status == TANDEM_OK)
        status = call_explain(&matmul.call, out);
    call_end_matmul(&matmul);
    return status;
}
