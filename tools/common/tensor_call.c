/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of operators that are described by tensors; see tensor_call.h. */
#include "tensor_call.h"

#include <string.h>

/* Returns a power of two that divides the offset, at most `max`. */
static uint32_t offset_alignment(uint64_t offset, uint32_t max)
{
    const uint32_t low = max != 0 ? (uint32_t)(offset % max) : 0;

    return low != 0 ? low & -low : max;
}

static bool is_same_tensor(const struct tandem_tensor_desc *a,
                           const struct tandem_tensor_desc *b)
{
    bool same = a->buffer != NULL && a->buffer == b->buffer &&
                a->byte_offset == b->byte_offset && a->dtype == b->dtype &&
                a->rank == b->rank;

    /* Tensors without elements share no byte. */
    for (uint32_t i = 0; same && i < a->rank && i < TANDEM_MAX_RANK; i++)
        same = a->shape[i] == b->shape[i] && a->shape[i] != 0 &&
               (a->shape[i] == 1 || a->strides[i] == b->strides[i]);
    return same;
}

/* Returns 1 + the input that the output is, or 0. */
static uint32_t same_input(const struct tandem_tensor_desc *const *inputs,
                           uint32_t input_count,
                           const struct tandem_tensor_desc *output)
{
    for (uint32_t i = 0; i < input_count; i++)
        if (inputs[i] != NULL && is_same_tensor(inputs[i], output))
            return i + 1;
    return 0;
}

/* Returns the number of tensors that are described. */
static uint32_t described_count(const struct tandem_tensor_desc *const *tensors,
                                uint32_t count)
{
    return tensors != NULL && count <= MAX_CALL_OPERANDS ? count : 0;
}

void tensor_call_init(struct tensor_call *out,
                      const struct tandem_tensor_desc *const *inputs,
                      uint32_t input_count,
                      const struct tandem_tensor_desc *const *outputs,
                      uint32_t output_count, uint32_t max_alignment)
{
    out->input_count = input_count;
    out->output_count = output_count;
    out->has_inputs = inputs != NULL;
    out->has_outputs = outputs != NULL;
    input_count = described_count(inputs, input_count);
    output_count = described_count(outputs, output_count);
    out->first_output = input_count;
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        const bool is_input = i < input_count;
        const struct tandem_tensor_desc *tensor =
            is_input ? inputs[i] : outputs[i - input_count];
        struct tandem_operand_desc *desc = &out->descs[i];

        out->pointers[i] = NULL;
        out->memory[i] = (struct tandem_memory){NULL, 0};
        if (tensor == NULL)
            continue;
        *desc = (struct tandem_operand_desc){
            .dtype = tensor->dtype,
            .rank = tensor->rank,
            .alignment_bytes =
                offset_alignment(tensor->byte_offset, max_alignment),
            .same_as_input =
                is_input ? 0 : same_input(inputs, input_count, tensor)};
        memcpy(desc->shape, tensor->shape, sizeof(desc->shape));
        memcpy(desc->strides, tensor->strides, sizeof(desc->strides));
        out->pointers[i] = desc;
        out->memory[i] =
            (struct tandem_memory){tensor->buffer, tensor->byte_offset};
    }
}

enum tandem_status tensor_call_prepare(const struct tensor_call *call,
                                       const struct tandem_backend *api,
                                       struct tandem_device *device,
                                       const struct tandem_op *op,
                                       uint32_t flags,
                                       struct tandem_prepared **out_prepared)
{
    return api->prepare(
        device, op, call->has_inputs ? call->pointers : NULL, call->input_count,
        call->has_outputs ? call->pointers + call->first_output : NULL,
        call->output_count, flags, NULL, out_prepared);
}

enum tandem_status tensors_supported(
    const struct tandem_backend *api, struct tandem_device *device,
    const struct tandem_op *op, const struct tandem_tensor_desc *const *inputs,
    uint32_t input_count, const struct tandem_tensor_desc *const *outputs,
    uint32_t output_count)
{
    struct tensor_call call;

    tensor_call_init(&call, inputs, input_count, outputs, output_count, 0);
    return tensor_call_prepare(&call, api, device, op, TANDEM_PREPARE_QUERY,
                               NULL);
}

/* Prepares the call.  If `polls`, also polls whether it is compiled. */
static enum tandem_status prepare_and_release(const struct tandem_backend *api,
                                              struct tandem_device *device,
                                              const struct tandem_op *op,
                                              const struct tensor_call *call,
                                              bool polls)
{
    struct tandem_prepared *prepared = NULL;
    enum tandem_status status =
        tensor_call_prepare(call, api, device, op, 0, &prepared);

    if (status != TANDEM_OK)
        return status;
    if (polls)
        status = api->prepared_wait(prepared, 0);
    api->prepared_release(prepared);
    return status;
}

enum tandem_status tensors_prepare(
    const struct tandem_backend *api, struct tandem_device *device,
    const struct tandem_op *op, const struct tandem_tensor_desc *const *inputs,
    uint32_t input_count, const struct tandem_tensor_desc *const *outputs,
    uint32_t output_count, uint32_t max_alignment)
{
    struct tensor_call call;

    tensor_call_init(&call, inputs, input_count, outputs, output_count,
                     max_alignment);
    return prepare_and_release(api, device, op, &call, false);
}

enum tandem_status tensors_poll(const struct tandem_backend *api,
                                struct tandem_device *device,
                                const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count,
                                const struct tandem_tensor_desc *const *outputs,
                                uint32_t output_count, uint32_t max_alignment)
{
    struct tensor_call call;

    tensor_call_init(&call, inputs, input_count, outputs, output_count,
                     max_alignment);
    return prepare_and_release(api, device, op, &call, true);
}

enum tandem_status
tensors_launch(const struct tandem_backend *api, struct tandem_device *device,
               struct tandem_stream *stream, const struct tandem_op *op,
               const struct tandem_tensor_desc *const *inputs,
               uint32_t input_count,
               const struct tandem_tensor_desc *const *outputs,
               uint32_t output_count, uint32_t max_alignment)
{
    struct tensor_call call;
    struct tandem_prepared *prepared = NULL;
    enum tandem_status status;

    tensor_call_init(&call, inputs, input_count, outputs, output_count,
                     max_alignment);
    status = tensor_call_prepare(&call, api, device, op, 0, &prepared);
    if (status != TANDEM_OK)
        return status;
    status = api->launch(stream, prepared, call.memory,
                         input_count + output_count, NULL, 0);
    api->prepared_release(prepared);
    return status;
}
