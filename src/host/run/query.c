/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions that answer questions about operators without
 * tensors.  Any thread may call them. */
#include <config.h>

#include "common/last_error.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "host/run/launch.h"
#include "host/run/placement.h"
#include "host/run/prepared_cache.h"

#include <string.h>

/* ---- operands ---- */

static enum tandem_status desc_read(struct tandem_tensor_desc *out,
                                    const char *operator_name, uint32_t operand,
                                    const struct tandem_operand_desc *from,
                                    uint32_t input_count)
{
    const enum tandem_status status =
        operand_desc_check(operator_name, operand, from, input_count);

    if (status != TANDEM_OK)
        return status;
    if (from->rank > TANDEM_MAX_RANK)
        return argument_error("%s: operand %u: rank %u; expected at most %u",
                              operator_name, operand, from->rank,
                              TANDEM_MAX_RANK);
    *out =
        (struct tandem_tensor_desc){.dtype = from->dtype, .rank = from->rank};
    memcpy(out->shape, from->shape, from->rank * sizeof(*from->shape));
    memcpy(out->strides, from->strides, from->rank * sizeof(*from->strides));
    return TANDEM_OK;
}

/* Returns the alignment that a tensor of this description has if the caller
 * names none, or else the caller's. */
static uint32_t alignment_of(const struct tandem_operand_desc *desc)
{
    if (desc->alignment_bytes == 0 ||
        desc->alignment_bytes > MAX_TENSOR_ALIGNMENT)
        return MAX_TENSOR_ALIGNMENT;
    return desc->alignment_bytes;
}

/* Fills call->described, which is `out`. */
static enum tandem_status
operands_describe(struct call *call, struct described_operand *out,
                  const struct tandem_operand_desc *const *inputs,
                  const struct tandem_operand_desc *const *outputs)
{
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        const struct tandem_operand_desc *from =
            i < call->input_count ? inputs[i] : outputs[i - call->input_count];

        out[i] = (struct described_operand){.is_scalar = from == NULL};
        if (from == NULL && i >= call->input_count)
            return argument_error("%s: output %u: NULL", call->row->name,
                                  i - call->input_count);
        if (from == NULL)
            continue;
        status = desc_read(&out[i].desc, call->row->name, i, from,
                           call->input_count);
        if (status != TANDEM_OK)
            return status;
        out[i].desc.buffer = (struct tandem_buffer *)&out[i];
        if (from->same_as_input > 0)
            out[i].desc.buffer = out[from->same_as_input - 1].desc.buffer;
        out[i].layout = tensor_layout_make(&out[i].desc, alignment_of(from));
    }
    call->described = out;
    return TANDEM_OK;
}

/* The entry has the checked values. */
static enum tandem_status
same_as_input_check(const struct call *call,
                    const struct tandem_operand_desc *const *outputs)
{
    for (uint32_t i = 0; i < call->output_count; i++) {
        const struct tandem_operand_desc *known =
            &call->entry->operands[call->input_count + i];

        if (outputs[i]->same_as_input != 0 && known->same_as_input == 0 &&
            shape_elements(known->rank, known->shape) != 0)
            return argument_error("%s: output %u cannot be input %u",
                                  call->row->name, i,
                                  outputs[i]->same_as_input - 1);
    }
    return TANDEM_OK;
}

/* ---- answers ---- */

/* Asks one device.  Returns TANDEM_NOT_READY if it must compile first. */
static enum tandem_status device_ask(const struct call *call,
                                     struct device *device, bool compile)
{
    if (call->context->op_blocked[call->op->id] >> device->id & 1)
        return last_error_set(TANDEM_UNSUPPORTED, "%s: %s failed verification",
                              call->row->name, device->label);
    return compile ? call_make_ready(call, device)
                   : call_query_on(call, device);
}

static void answer_fill(const struct call *call, const struct device *device,
                        bool ready, struct tandem_op_answer *out)
{
    const struct workload *workload = &call->entry->workload;
    const struct run_time time =
        chooser_predict_run_time(workload, &call->entry->run_cost, device);
    const uint32_t compile = workload->cost_class == TANDEM_COST_GEMM
                                 ? COST_GEMM_COMPILE
                                 : COST_COMPILE;

    *out = (struct tandem_op_answer){
        .struct_size = sizeof(*out),
        .device = device->id,
        .ready = ready,
        .calibrated =
            call->context->calibrated[workload->cost_class] >> device->id & 1,
        .launch_ns = time.launch_ns,
        .execute_ns = time.execute_ns,
        .compile_ns = ready ? 0 : device->cost.scalars[compile],
    };
}

/* Asks the devices of a mask, and fills `out` with the answer of the fastest
 * one.  Returns the error of the last device if none supports the call. */
static enum tandem_status devices_ask(const struct call *call, uint32_t mask,
                                      bool compile,
                                      struct tandem_op_answer *out)
{
    struct tandem_context *context = call->context;
    enum tandem_status result = TANDEM_NO_DEVICE;

    if (mask == 0)
        return last_error_set(result, "%s: no usable device is left",
                              call->row->name);
    for (uint32_t i = 0; i < context->device_count; i++) {
        struct tandem_op_answer answer;
        enum tandem_status status;

        if (!(mask >> i & 1))
            continue;
        status = device_ask(call, context->devices[i], compile);
        if (status != TANDEM_OK && status != TANDEM_NOT_READY) {
            if (result != TANDEM_OK)
                result = status;
            continue;
        }
        answer_fill(call, context->devices[i], status == TANDEM_OK, &answer);
        if (result != TANDEM_OK || answer.launch_ns + answer.execute_ns <
                                       out->launch_ns + out->execute_ns)
            *out = answer;
        result = TANDEM_OK;
    }
    return result;
}

/* Finds the devices that the question is about. */
static enum tandem_status devices_find(const struct call *call,
                                       uint32_t *out_mask)
{
    struct tandem_context *context = call->context;
    struct device *forced;
    const enum tandem_status status = forced_device_resolve(call, &forced);

    if (status != TANDEM_OK)
        return status;
    *out_mask = forced != NULL
                    ? 1u << forced->id
                    : chooser_eligible_candidates(
                          context, call->entry->workload.cost_class,
                          context->usable & ~context->op_blocked[call->op->id]);
    return TANDEM_OK;
}

static enum tandem_status
question_answer(struct call *call,
                const struct tandem_operand_desc *const *outputs, bool compile,
                struct tandem_op_answer *out)
{
    struct tandem_op_answer answer;
    uint32_t mask;
    enum tandem_status status = prepared_cache_find(call);

    if (status != TANDEM_OK)
        return status;
    status = same_as_input_check(call, outputs);
    if (status == TANDEM_OK)
        status = devices_find(call, &mask);
    if (status == TANDEM_OK)
        status = devices_ask(call, mask, compile, &answer);
    if (status == TANDEM_OK)
        struct_size_fill(out, &answer, sizeof(answer));
    prepared_entry_put(call);
    return status;
}

/* ---- functions of host.h ---- */

enum tandem_status tandem_op_query(
    struct tandem_context *context, uint32_t device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_op_answer *out_answer)
{
    struct described_operand operands[2 * TANDEM_MAX_OPERANDS];
    struct call call;
    struct float_env host;
    enum tandem_status status =
        call_init_question(&call, context, device, op, inputs != NULL,
                           input_count, outputs != NULL, output_count);

    if (status == TANDEM_OK)
        status = check_flags("tandem_op_query", flags, TANDEM_QUERY_COMPILE);
    if (status == TANDEM_OK)
        status = out_struct_check("out_answer", "tandem_op_answer", out_answer);
    if (status == TANDEM_OK)
        status = operands_describe(&call, operands, inputs, outputs);
    if (status != TANDEM_OK)
        return status;
    host = float_env_enter();
    status = question_answer(&call, outputs, flags & TANDEM_QUERY_COMPILE,
                             out_answer);
    float_env_leave(host);
    return status;
}

enum tandem_status tandem_op_infer(
    const struct tandem_op *op, const struct tandem_operand_desc *const *inputs,
    uint32_t input_count, struct tandem_operand_desc *const *outputs,
    uint32_t output_count)
{
    struct tandem_tensor_desc read[TANDEM_MAX_OPERANDS],
        inferred[TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *pointers[TANDEM_MAX_OPERANDS];
    const struct operator_info *row;
    struct float_env host;
    enum tandem_status status = operator_check(op, &row);

    if (status != TANDEM_OK)
        return status;
    status = counts_check(row->name, inputs != NULL, input_count,
                          outputs != NULL, output_count);
    for (uint32_t i = 0; i < input_count && status == TANDEM_OK; i++) {
        pointers[i] = inputs[i] != NULL ? &read[i] : NULL;
        if (inputs[i] != NULL)
            status = desc_read(&read[i], row->name, i, inputs[i], input_count);
    }
    for (uint32_t i = 0; i < output_count && status == TANDEM_OK; i++) {
        if (outputs[i] == NULL)
            return argument_error("%s: output %u: NULL", row->name, i);
        inferred[i] = (struct tandem_tensor_desc){.dtype = outputs[i]->dtype};
    }
    if (status == TANDEM_OK) {
        host = float_env_enter();
        status = infer_op(op, pointers, input_count, inferred, output_count);
        float_env_leave(host);
    }
    for (uint32_t i = 0; i < output_count && status == TANDEM_OK; i++) {
        *outputs[i] = (struct tandem_operand_desc){.dtype = inferred[i].dtype,
                                                   .rank = inferred[i].rank};
        memcpy(outputs[i]->shape, inferred[i].shape,
               sizeof(inferred[i].shape[0]) * inferred[i].rank);
        memcpy(outputs[i]->strides, inferred[i].strides,
               sizeof(inferred[i].strides[0]) * inferred[i].rank);
    }
    return status;
}
