/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the handles, number and shapes of an operator call's tensors; see
 * call.h. */
#include <config.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "host/run/call.h"

#include <stdio.h>

static bool tensor_is_valid(const struct tandem_tensor *tensor,
                            const struct tandem_context *context)
{
    return handle_live(&tensor_pool, tensor) && tensor->context == context;
}

static enum tandem_status operand_fail(const struct tandem_tensor *tensor,
                                       const struct call *call,
                                       const char *side, uint32_t index)
{
    char what[64];

    snprintf(what, sizeof(what), "%.32s: %s %u", call->row->name, side, index);
    return tensor_check(tensor, call->context, what);
}

enum tandem_status call_check_handles(const struct call *call)
{
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] != NULL &&
            !tensor_is_valid(call->inputs[i], call->context))
            return operand_fail(call->inputs[i], call, "input", i);
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (!tensor_is_valid(call->outputs[i], call->context))
            return operand_fail(call->outputs[i], call, "output", i);
    }
    return TANDEM_OK;
}

enum tandem_status counts_check(const char *operator_name, bool has_inputs,
                                uint32_t input_count, bool has_outputs,
                                uint32_t output_count)
{
    if (input_count > TANDEM_MAX_OPERANDS || output_count > TANDEM_MAX_OPERANDS)
        return argument_error(
            "%s: %u inputs and %u outputs; expected at most %u of each",
            operator_name, input_count, output_count, TANDEM_MAX_OPERANDS);
    if ((!has_inputs && input_count > 0) || (!has_outputs && output_count > 0))
        return argument_error("%s: %s: NULL", operator_name,
                              has_outputs ? "inputs" : "outputs");
    return TANDEM_OK;
}

enum tandem_status call_init_question(struct call *call,
                                      struct tandem_context *context,
                                      uint32_t device,
                                      const struct tandem_op *op,
                                      bool has_inputs, uint32_t input_count,
                                      bool has_outputs, uint32_t output_count)
{
    if (!context_is_valid(context))
        return context_check(context);
    if (op == NULL)
        return argument_error("op: NULL");
    call->row = operator_lookup(op->id);
    if (call->row == NULL)
        return argument_error("op: %u is not an operator id", op->id);
    call->context = context;
    call->op = op;
    call->inputs = call->outputs = NULL;
    call->described = NULL;
    call->input_count = input_count;
    call->output_count = output_count;
    call->device = device;
    call->entry = NULL;
    return counts_check(call->row->name, has_inputs, input_count, has_outputs,
                        output_count);
}

enum tandem_status call_init(struct call *call, struct tandem_context *context,
                             uint32_t device, const struct tandem_op *op,
                             struct tandem_tensor *const *inputs,
                             uint32_t input_count,
                             struct tandem_tensor *const *outputs,
                             uint32_t output_count)
{
    const enum tandem_status status =
        call_init_question(call, context, device, op, inputs != NULL,
                           input_count, outputs != NULL, output_count);

    if (status != TANDEM_OK)
        return status;
    call->inputs = inputs;
    call->outputs = outputs;
    return call_check_handles(call);
}

void call_descs_get(const struct call *call, struct call_descs *out)
{
    for (uint32_t i = 0; i < call->input_count; i++)
        out->inputs[i] = call_operand_desc(call, i);
    for (uint32_t i = 0; i < call->output_count; i++)
        out->outputs[i] = call_operand_desc(call, call->input_count + i);
}

/* Returns the address range of a storage; `buffer` points to the storage. */
static enum tandem_status
storage_address_range(const void *user, const struct tandem_buffer *buffer,
                      struct address_range *out)
{
    const struct storage *storage = (const struct storage *)buffer;

    (void)user;
    out->base = storage->address;
    out->bytes = storage->bytes;
    return TANDEM_OK;
}

/* Returns true if the storages of two operands can share a byte. */
static bool storages_meet(const struct storage *a, const struct storage *b)
{
    return a->address < b->address + b->bytes &&
           b->address < a->address + a->bytes;
}

static enum tandem_status descs_check(const struct call *call,
                                      address_range_fn address_range)
{
    struct call_descs descs;

    call_descs_get(call, &descs);
    return check_op(call->op, descs.inputs, call->input_count, descs.outputs,
                    call->output_count, address_range, NULL);
}

enum tandem_status call_check_shapes(const struct call *call)
{
    return descs_check(call, NULL);
}

enum tandem_status call_check(const struct call *call)
{
    const enum tandem_status status = descs_check(
        call, call->described == NULL ? storage_address_range : NULL);

    if (status != TANDEM_OK || call->described != NULL)
        return status;
    for (uint32_t i = 0; i < call->output_count; i++) {
        char what[64];

        if (!storage_is_unwritable(call->outputs[i]->storage))
            continue;
        snprintf(what, sizeof(what), "%.32s: output %u", call->row->name, i);
        return storage_check_writable(call->outputs[i]->storage, what);
    }
    return TANDEM_OK;
}

/* Most calls have operands in different storages, and need no more checks. */
enum tandem_status call_check_memory(const struct call *call)
{
    bool meet = false;

    if (call->described != NULL)
        return TANDEM_OK;
    for (uint32_t o = 0; o < call->output_count; o++) {
        const struct storage *output = call->outputs[o]->storage;

        meet |= storage_is_unwritable(output);
        for (uint32_t i = 0; i < call->input_count; i++)
            meet |= call->inputs[i] != NULL &&
                    storages_meet(output, call->inputs[i]->storage);
        for (uint32_t i = 0; i < o; i++)
            meet |= storages_meet(output, call->outputs[i]->storage);
    }
    return meet ? call_check(call) : TANDEM_OK;
}
