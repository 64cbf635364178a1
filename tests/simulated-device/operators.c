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

/* Locked. Sets the scripted fault if the script selects this launch. */
static void launch_fault(struct sim_device *device, struct command *command)
{
    if (++device->launch_count == device->script.fault_launch)
        command->fault = device->script.fault_status;
    command->hangs = device->launch_count == device->script.hang_launch;
}

/* Locked. Copies one operand and replaces its buffer by the CPU plugin's. */
static enum tandem_status operand_copy(struct command *command, uint32_t index,
                                       const struct tandem_tensor_desc *operand)
{
    struct sim_memory *memory;

    if (!operand)
        return TANDEM_OK;
    command->operands[index] = *operand;
    command->present[index] = true;
    if (!operand->buffer) /* An empty tensor. */
        return TANDEM_OK;
    memory = ((struct sim_buffer *)operand->buffer)->memory;
    if (index < command->input_count && memory->poison != TANDEM_OK)
        return last_error_set(memory->poison,
                              "%s: the work that should have written input %u "
                              "failed",
                              operator_name(command->op.id), index);
    command->operands[index].buffer = memory->inner;
    command_use(command, memory);
    if (index < command->input_count)
        command->read_count = command->memory_count;
    return TANDEM_OK;
}

/* Copies the attributes and the fields of op within its struct_size. */
static enum tandem_status op_copy(struct command *command,
                                  const struct tandem_op *op)
{
    const size_t bytes =
        op->struct_size < sizeof *op ? op->struct_size : sizeof *op;

    memcpy(&command->op, op, bytes);
    command->op.struct_size = sizeof *op;
    command->op.ints = command->ints =
        calloc(op->int_count + 1u, sizeof *command->ints);
    command->op.floats = command->floats =
        calloc(op->float_count + 1u, sizeof *command->floats);
    if (!command->ints || !command->floats)
        return memory_error("launch: no memory");
    if (op->int_count)
        memcpy(command->ints, op->ints, op->int_count * sizeof *op->ints);
    if (op->float_count)
        memcpy(command->floats, op->floats,
               op->float_count * sizeof *op->floats);
    return TANDEM_OK;
}

enum tandem_status launch_enqueue(
    struct sim_stream *stream, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct command *command = command_new(COMMAND_LAUNCH);
    enum tandem_status status;

    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    command->input_count = input_count;
    command->output_count = output_count;
    status = op_copy(command, op);
    for (uint32_t i = 0; i < input_count && status == TANDEM_OK; i++)
        status = operand_copy(command, i, inputs[i]);
    for (uint32_t i = 0; i < output_count && status == TANDEM_OK; i++)
        status = operand_copy(command, input_count + i, outputs[i]);
    if (status != TANDEM_OK) {
        command_destroy(stream->device, command);
        return status;
    }
    launch_compile(stream->device, op->id);
    launch_fault(stream->device, command);
    stream_enqueue(stream, command);
    COUNT(stream->device, launches, 1);
    return TANDEM_OK;
}

/* Locked. Replaces *buffer, of a matrix or the bias, by the CPU plugin's. */
static enum tandem_status gemm_operand(struct command *command,
                                       const char *what,
                                       struct tandem_buffer **buffer,
                                       bool output)
{
    struct sim_memory *memory;

    if (!*buffer)
        return TANDEM_OK;
    memory = ((struct sim_buffer *)*buffer)->memory;
    if (!output && memory->poison != TANDEM_OK)
        return last_error_set(
            memory->poison, "gemm: the work that should have written %s failed",
            what);
    command_use(command, memory);
    if (!output)
        command->read_count = command->memory_count;
    *buffer = memory->inner;
    return TANDEM_OK;
}

/* Locked. */
static enum tandem_status gemm_enqueue(struct sim_stream *stream,
                                       const struct tandem_gemm *gemm)
{
    struct command *command = command_new(COMMAND_GEMM);
    struct tandem_gemm *own;
    enum tandem_status status;

    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    own = &command->gemm;
    gemm_args_normalize(own, gemm);
    status = gemm_operand(command, "a", &own->a.buffer, false);
    if (status == TANDEM_OK)
        status = gemm_operand(command, "b", &own->b.buffer, false);
    if (status == TANDEM_OK)
        status = gemm_operand(command, "bias", &own->bias, false);
    if (status == TANDEM_OK && own->beta != 0 && own->c.buffer) {
        struct tandem_buffer *read = own->c.buffer;

        status = gemm_operand(command, "c", &read, false);
    }
    if (status == TANDEM_OK)
        status = gemm_operand(command, "c", &own->c.buffer, true);
    if (status != TANDEM_OK) {
        command_destroy(stream->device, command);
        return status;
    }
    launch_compile(stream->device, TANDEM_OP_GEMM);
    launch_fault(stream->device, command);
    stream_enqueue(stream, command);
    COUNT(stream->device, gemms, 1);
    return TANDEM_OK;
}

enum tandem_status operator_launch(
    struct tandem_stream *handle, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count)
{
    struct sim_stream *stream;
    enum tandem_status status = stream_lock(handle, &stream);
    struct sim_device *device;

    if (status != TANDEM_OK)
        return status;
    device = stream->device;
    status = check_op(op, inputs, input_count, outputs, output_count,
                      address_range_of, device);
    if (status == TANDEM_OK)
        status = operator_is_supported(device, op->id);
    if (status == TANDEM_OK && op->id == TANDEM_OP_GEMM)
        status = gemm_enqueue(stream, op->gemm);
    else if (status == TANDEM_OK) {
        status = inner_backend()->supports(device->inner, op, inputs,
                                           input_count, outputs, output_count);
        status = status != TANDEM_OK
                     ? inner_failed(status)
                     : launch_enqueue(stream, op, inputs, input_count, outputs,
                                      output_count);
    }
    return device_unlock(device, status);
}

enum tandem_status operator_gemm(struct tandem_stream *handle,
                                 const struct tandem_gemm *gemm)
{
    struct sim_stream *stream;
    enum tandem_status status = stream_lock(handle, &stream);
    struct sim_device *device;

    if (status != TANDEM_OK)
        return status;
    device = stream->device;
    status = check_gemm(gemm, address_range_of, device);
    if (status == TANDEM_OK)
        status = operator_is_supported(device, TANDEM_OP_GEMM);
    if (status == TANDEM_OK)
        status = gemm_enqueue(stream, gemm);
    return device_unlock(device, status);
}
