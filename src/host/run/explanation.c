/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that explain on which device an operator ran
 * or would run, and why. */
#include <config.h>

#include "common/last_error.h"
#include "common/struct_size.h"
#include "host/run/matmul.h"
#include "host/run/placement.h"
#include "host/run/prepared_cache.h"

static enum tandem_status
explanation_check_size(const struct tandem_explanation *out)
{
    if (out == NULL)
        return argument_error("out: NULL");
    return struct_size_check("out", "tandem_explanation", out->struct_size,
                             sizeof(out->struct_size));
}

static void explanation_write(struct tandem_context *context,
                              struct placement_decision *decision,
                              struct tandem_explanation *out)
{
    struct tandem_explanation full;

    explanation_fill(context, decision, &full);
    struct_size_fill(out, &full, sizeof(full));
}

enum tandem_status tandem_explain_last(struct tandem_context *context,
                                       struct tandem_explanation *out)
{
    enum tandem_status status = context_check(context);
    struct placement_decision *decision;
    struct float_env host;

    if (status == TANDEM_OK)
        status = explanation_check_size(out);
    if (status != TANDEM_OK)
        return status;
    decision = placement_decision_find(context);
    if (decision == NULL || decision->serial != context->serial)
        return argument_error("this thread ran no operator in this context, "
                              "or its last operator failed");
    host = float_env_enter();
    explanation_write(context, decision, out);
    float_env_leave(host);
    return TANDEM_OK;
}

/* Records in the decision which devices cannot run the call.  Returns the mask
 * of the devices that must compile first. */
static uint32_t candidates_query_support(struct call *call,
                                         struct placement_decision *decision,
                                         const struct device *forced)
{
    struct tandem_context *context = call->context;
    uint32_t must_compile = 0;

    for (uint32_t i = 0; i < context->device_count; i++) {
        struct device *device = context->devices[i];
        enum tandem_status status;

        if ((device->duplicate && device != forced) ||
            (decision->failed >> i & 1))
            continue;
        status = call_query_on(call, device);
        if (status == TANDEM_NOT_READY) {
            must_compile |= 1u << i;
        } else if (status != TANDEM_OK) {
            decision->failed |= 1u << i;
            decision->status[i] = (uint8_t)status;
        }
    }
    return must_compile;
}

static enum tandem_status call_explain(struct call *call,
                                       struct tandem_explanation *out)
{
    struct tandem_context *context = call->context;
    struct placement_decision decision;
    struct device *forced;
    const struct device *chosen;
    uint32_t must_compile;
    struct float_env host;
    enum tandem_status status = explanation_check_size(out);

    if (status != TANDEM_OK)
        return status;
    host = float_env_enter();
    status = call_prepare_decision(call, &decision, &forced);
    if (status == TANDEM_OK) {
        must_compile = candidates_query_support(call, &decision, forced);
        chosen = chooser_pick(context, &decision, context->usable);
        if (forced != NULL)
            chosen = forced;
        /* chooser_pick ignores the devices in decision.must_compile.  Set this
         * mask after the choice, because devices compile only once. */
        decision.must_compile = must_compile;
        if (chosen != NULL)
            decision.chosen = chosen->id;
        explanation_write(context, &decision, out);
        call_release(call, &decision);
    }
    float_env_leave(host);
    return status;
}

enum tandem_status
tandem_explain_op(struct tandem_context *context, const struct tandem_op *op,
                  struct tandem_tensor *const *inputs, uint32_t input_count,
                  struct tandem_tensor *const *outputs, uint32_t output_count,
                  struct tandem_explanation *out)
{
    struct call call;
    const enum tandem_status status =
        call_init(&call, context, TANDEM_ANY_DEVICE, op, inputs, input_count,
                  outputs, output_count);

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
        matmul_prepare(&matmul, context, options, a, b, c, true);

    if (status == TANDEM_OK)
        status = call_explain(&matmul.call, out);
    matmul_finish(&matmul);
    return status;
}
