/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of the simulated GPU. Calls are checked here, queued with copies
 * of all arguments, and computed by the CPU plugin later. Any thread may call
 * these functions.
 */
#include <stdlib.h>
#include <string.h>

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "common/tensor_overlap.h"
#include "internal.h"

enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out)
{
    struct sim_buffer *buffer;
    enum tandem_status status =
        buffer_check(user, "simulated: operand", handle, &buffer);

    if (status != TANDEM_OK)
        return status;
    out->base = buffer->memory->base;
    out->bytes = buffer->memory->bytes;
    return TANDEM_OK;
}

enum tandem_status operator_is_supported(const struct sim_device *device,
                                         uint32_t id)
{
    if (id < TANDEM_OP_ID_END && device->script.decline[id])
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: declined by simulated.decline",
                              operator_name(id));
    return TANDEM_OK;
}

enum tandem_status operator_supports(
    struct tandem_device *handle, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct sim_device *device;
    enum tandem_status status = device_lock(handle, &device);

    if (status != TANDEM_OK)
        return status;
    status =
        check_op(op, inputs, input_count, outputs, output_count, NULL, NULL);
    if (status == TANDEM_OK)
        status = operator_is_supported(device, op->id);
    if (status == TANDEM_OK) {
        status = inner_backend()->supports(device->inner, op, inputs,
                                           input_count, outputs, output_count);
        if (status != TANDEM_OK)
            inner_failed(status);
    }
    return device_unlock(device, status);
}

enum tandem_status readiness(const struct sim_device *device, uint32_t id)
{
    if (device->script.ready == SIM_READY_ALWAYS)
        return TANDEM_OK;
    if (device->script.ready == SIM_READY_NEVER)
        return TANDEM_NOT_READY;
    return device->polls[id] >= device->script.ready ? TANDEM_OK
                                                     : TANDEM_NOT_READY;
}

/* Locks the device if launch would accept the call. */
static enum tandem_status
readiness_begin(struct tandem_device *handle, const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                uint32_t input_count,
                const struct tandem_tensor_desc *const *outputs,
                uint32_t output_count, struct sim_device **out_device)
{
    enum tandem_status status = device_lock(handle, out_device);

    if (status != TANDEM_OK)
        return status;
    status =
        check_op(op, inputs, input_count, outputs, output_count, NULL, NULL);
    if (status == TANDEM_OK)
        status = operator_is_supported(*out_device, op->id);
    if (status != TANDEM_OK)
        pthread_mutex_unlock(&(*out_device)->mutex);
    return status;
}

enum tandem_status operator_prepare(
    struct tandem_device *handle, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct sim_device *device;
    enum tandem_status status = readiness_begin(handle, op, inputs, input_count,
                                                outputs, output_count, &device);

    if (status != TANDEM_OK)
        return status;
    device->prepared[op->id] = true;
    COUNT(device, prepares, 1);
    return device_unlock(device, TANDEM_OK);
}

enum tandem_status operator_ready(
    struct tandem_device *handle, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct sim_device *device;
    enum tandem_status status = readiness_begin(handle, op, inputs, input_count,
                                                outputs, output_count, &device);

    if (status != TANDEM_OK)
        return status;
    COUNT(device, readies, 1);
    status = readiness(device, op->id);
    if (status == TANDEM_NOT_READY) {
        if (device->prepared[op->id])
            device->polls[op->id]++;
        last_error_set(status, "%s: not compiled yet", operator_name(op->id));
    }
    return device_unlock(device, status);
}

void launch_compile(struct sim_device *device, uint32_t id)
{
    if (readiness(device, id) == TANDEM_OK)
        return;
    COUNT(device, blocking_compiles, 1);
    device->polls[id] = device->script.ready;
}

void launch_fault(struct sim_device *device, struct command *command)
{
    if (++device->launch_count == device->script.fault_launch)
        command->fault = device->script.fault_status;
    command->hangs = device->launch_count == device->script.hang_launch;
}

/* Describes a tensor, and sets *out_memory to its memory. */
static const struct tandem_operand_desc *
tensor_describe(const struct tandem_tensor_desc *tensor, uint32_t same,
                struct tandem_operand_desc *out,
                struct tandem_memory *out_memory)
{
    if (!tensor)
        return NULL;
    *out = (struct tandem_operand_desc){
        .dtype = tensor->dtype, .rank = tensor->rank, .same_as_input = same};
    memcpy(out->shape, tensor->shape, sizeof out->shape);
    memcpy(out->strides, tensor->strides, sizeof out->strides);
    *out_memory = (struct tandem_memory){tensor->buffer, tensor->byte_offset};
    return out;
}

static uint32_t same_input(const struct tandem_tensor_desc *output,
                           const struct tandem_tensor_desc *const *inputs,
                           uint32_t input_count)
{
    for (uint32_t i = 0; i < input_count; i++)
        if (inputs[i] && tensors_same(inputs[i], output) &&
            shape_elements(output->rank, output->shape) != 0)
            return i + 1;
    return 0;
}

enum tandem_status operator_launch(
    struct tandem_stream *handle, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct tandem_operand_desc descs[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_operand_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    struct tandem_memory memory[2 * TANDEM_MAX_OPERANDS];
    struct tandem_prepared *prepared;
    struct sim_stream *stream;
    enum tandem_status status = stream_lock(handle, &stream);
    struct sim_device *device;

    if (status != TANDEM_OK)
        return status;
    device = stream->device;
    status = check_op(op, inputs, input_count, outputs, output_count,
                      address_range_of, device);
    device_unlock(device, status);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < input_count + output_count; i++)
        pointers[i] = tensor_describe(
            i < input_count ? inputs[i] : outputs[i - input_count],
            i < input_count
                ? 0
                : same_input(outputs[i - input_count], inputs, input_count),
            &descs[i], &memory[i]);
    status = sim_op_prepare((struct tandem_device *)device, op, pointers,
                            input_count, pointers + input_count, output_count,
                            0, NULL, &prepared);
    if (status != TANDEM_OK)
        return status;
    COUNT(device, prepares, -1);
    status = sim_prepared_launch(handle, prepared, memory,
                                 input_count + output_count, NULL, 0);
    sim_prepared_release(prepared);
    return status;
}
