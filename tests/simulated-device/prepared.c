/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared operators of the simulated device, which wrap those of the inner
 * plugin. A launch becomes a queued command. Any thread may call these
 * functions.
 */
#include <stdlib.h>
#include <string.h>

#include "common/struct_size.h"
#include "internal.h"

/* ---- readiness ---- */

/* Locked. */
static bool op_is_ready(const struct sim_device *device, uint32_t id)
{
    const char *ready = setting("ready");

    if (!ready)
        return true;
    return strncmp(ready, "never", 5) != 0 &&
           device->polls[id] >= strtoul(ready, NULL, 10);
}

/* Locked. Compiles an operator that is not ready, which makes it ready. */
static void op_compile(struct sim_device *device, uint32_t id)
{
    if (op_is_ready(device, id))
        return;
    COUNT(device, blocking_compiles, 1);
    device->polls[id] = UINT32_MAX;
}

/* ---- prepare ---- */

/* Locked. Checks the call, and lets the inner plugin prepare it. */
static enum tandem_status prepared_fill(
    struct sim_prepared *prepared, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count)
{
    struct tandem_operand_desc descs[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_operand_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    struct tandem_op computed;
    enum tandem_status status = prepared_call_create(
        op, inputs, input_count, outputs, output_count, &prepared->call);

    if (status == TANDEM_OK)
        status = call_restrict(prepared->call);
    if (status != TANDEM_OK)
        return status;
    /* The inner plugin's addresses are less aligned than this device's. */
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        pointers[i] = i < input_count ? inputs[i] : outputs[i - input_count];
        if (!pointers[i])
            continue;
        descs[i] = *pointers[i];
        descs[i].alignment_bytes = 0;
        pointers[i] = &descs[i];
    }
    computed = prepared->call->op;
    if (computed.id == TANDEM_OP_ADD && setting("wrong"))
        computed.id = TANDEM_OP_MUL;
    status = inner_backend()->prepare(
        prepared->object.device->inner, &computed, pointers, input_count,
        pointers + input_count, output_count, 0, NULL, &prepared->inner);
    return status == TANDEM_OK ? status : inner_failed(status);
}

enum tandem_status sim_prepare(struct tandem_device *handle,
                               const struct tandem_op *op,
                               const struct tandem_operand_desc *const *inputs,
                               uint32_t input_count,
                               const struct tandem_operand_desc *const *outputs,
                               uint32_t output_count, uint32_t flags,
                               struct tandem_prepared_info *out_info,
                               struct tandem_prepared **out_prepared)
{
    const bool is_query = (flags & TANDEM_PREPARE_QUERY) != 0;
    struct tandem_prepared_info info = {.struct_size = sizeof info};
    struct sim_device *device;
    struct sim_prepared *prepared;
    enum tandem_status status;

    block_in("prepare", handle);
    if (out_prepared)
        *out_prepared = NULL;
    status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status == TANDEM_OK)
        status = object_lock(handle, DEVICE, &device);
    if (status != TANDEM_OK)
        return status;
    prepared = object_new(device, PREPARED);
    if (!prepared)
        return device_unlock(device, TANDEM_OUT_OF_MEMORY);
    prepared->references = 1;
    status =
        prepared_fill(prepared, op, inputs, input_count, outputs, output_count);
    if (status == TANDEM_OK && !is_query) {
        COUNT(device, prepares, 1);
        if (flags & TANDEM_PREPARE_COMPILE_NOW)
            op_compile(device, op->id);
    }
    if (status == TANDEM_OK && out_info) {
        info.is_ready = op_is_ready(device, op->id);
        struct_size_fill(out_info, &info, sizeof info);
    }
    if (status == TANDEM_OK && !is_query)
        *out_prepared = (struct tandem_prepared *)prepared;
    else
        object_free(&prepared->object);
    return device_unlock(device, status);
}

enum tandem_status sim_prepared_wait(struct tandem_prepared *handle,
                                     uint64_t timeout_ns)
{
    struct sim_prepared *prepared;
    enum tandem_status status = object_lock(handle, PREPARED, &prepared);
    struct sim_device *device;
    uint32_t id;

    block_in("prepared_wait", handle);
    if (status != TANDEM_OK)
        return status;
    device = prepared->object.device;
    id = prepared->call->op.id;
    if (timeout_ns)
        device->polls[id] = UINT32_MAX;
    if (!op_is_ready(device, id)) {
        status = last_error_set(TANDEM_NOT_READY,
                                "operator %u is not compiled yet", id);
        device->polls[id] += device->polls[id] < UINT32_MAX;
    }
    return device_unlock(device, status);
}

void sim_prepared_release(struct tandem_prepared *prepared)
{
    handle_release(prepared, PREPARED);
}

/* ---- launch ---- */

/* Locked. Replaces the memory of operand i by the inner plugin's. */
static enum tandem_status operand_use(struct command *command,
                                      const struct prepared_call *call,
                                      uint32_t i,
                                      const struct tandem_memory *from)
{
    const bool is_input = i < call->input_count;
    enum tandem_status status = TANDEM_OK;
    struct sim_memory *memory;

    if (call->operands[i].is_scalar)
        return TANDEM_OK;
    memory = ((struct sim_buffer *)from->buffer)->memory;
    if (is_input)
        status = memory_is_valid(memory, "an input");
    if (status != TANDEM_OK)
        return status;
    command->operands[i].buffer = memory->inner;
    command->operands[i].byte_offset = from->byte_offset;
    command_use(command, memory);
    if (is_input)
        command->read_count = command->memory_count;
    return TANDEM_OK;
}

/* Locked. Fills the command of a launch, and does what the script says. */
static enum tandem_status launch_fill(struct command *command,
                                      struct sim_prepared *prepared,
                                      const struct tandem_memory *memory,
                                      const double *scalars,
                                      uint32_t scalar_count)
{
    const struct prepared_call *call = prepared->call;
    struct sim_device *device = prepared->object.device;
    enum tandem_status status = TANDEM_OK;

    command->prepared = prepared;
    prepared->references++;
    command->operand_count = call->input_count + call->output_count;
    if (scalars) {
        command->scalars = calloc(scalar_count, sizeof *scalars);
        if (!command->scalars)
            return memory_error("launch: no memory");
        command->scalar_count = scalar_count;
        memcpy(command->scalars, scalars, scalar_count * sizeof *scalars);
    }
    for (uint32_t i = 0; i < command->operand_count && status == TANDEM_OK; i++)
        status = operand_use(command, call, i, &memory[i]);
    if (status != TANDEM_OK)
        return status;
    op_compile(device, call->op.id);
    if (++device->launch_count == device->fault_launch)
        command->fault = device->fault_status;
    command->stalls = device->index == 0 &&
                      device->launch_count == setting_number("stall", 0);
    return launch_misbehave(device, call->info->name);
}

/* Locked. */
static enum tandem_status call_enqueue(struct sim_stream *stream,
                                       struct sim_prepared *prepared,
                                       const struct tandem_memory *memory,
                                       const double *scalars,
                                       uint32_t scalar_count)
{
    struct sim_device *device = stream->object.device;
    struct command *command = command_new(COMMAND_LAUNCH);
    enum tandem_status status;

    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    status = launch_fill(command, prepared, memory, scalars, scalar_count);
    if (status != TANDEM_OK) {
        command_destroy(command);
        return status;
    }
    stream_enqueue(stream, command);
    if (prepared->call->op.id == TANDEM_OP_GEMM)
        COUNT(device, gemms, 1);
    else
        COUNT(device, launches, 1);
    return TANDEM_OK;
}

enum tandem_status sim_prepared_launch(struct tandem_stream *handle,
                                       struct tandem_prepared *launched,
                                       const struct tandem_memory *memory,
                                       uint32_t count, const double *scalars,
                                       uint32_t scalar_count)
{
    struct sim_prepared *prepared;
    struct sim_stream *stream;
    struct launch_scalars set;
    enum tandem_status status = object_lock(launched, PREPARED, &prepared);

    block_in("launch", handle);
    if (status != TANDEM_OK)
        return status;
    pthread_mutex_unlock(&prepared->object.device->mutex);
    status = stream_lock(handle, &stream);
    if (status != TANDEM_OK)
        return status;
    if (stream->object.device != prepared->object.device)
        status = prepared_other_device();
    else
        status = prepared_call_set_scalars(&set, prepared->call, scalars,
                                           scalar_count);
    if (status == TANDEM_OK)
        status =
            prepared_call_check_memory(prepared->call, memory, count,
                                       address_range_of, stream->object.device);
    if (status == TANDEM_OK)
        status = call_enqueue(stream, prepared, memory, scalars, scalar_count);
    return device_unlock(stream->object.device, answer(status));
}

/* ---- the entry gemm ---- */

const struct gemm_call_functions gemm_functions = {
    sim_prepare, sim_prepared_launch, sim_prepared_release};

static enum tandem_status locked_range(const void *user,
                                       const struct tandem_buffer *buffer,
                                       struct address_range *out)
{
    struct sim_device *device;
    enum tandem_status status = object_lock(user, DEVICE, &device);

    return status == TANDEM_OK
               ? device_unlock(device, address_range_of(device, buffer, out))
               : status;
}

enum tandem_status operator_gemm(struct tandem_stream *handle,
                                 const struct tandem_gemm *gemm)
{
    struct sim_stream *stream;
    struct sim_device *device;
    enum tandem_status status = stream_lock(handle, &stream);

    if (status != TANDEM_OK)
        return status;
    device = stream->object.device;
    pthread_mutex_unlock(&device->mutex);
    status =
        gemm_call_launch(&device->gemm_calls, (struct tandem_device *)device,
                         handle, gemm, locked_range);
    if (status == TANDEM_INVALID_ARGUMENT && setting("order") && gemm &&
        (gemm->m < 0 || gemm->n < 0 || gemm->k < 0 || gemm->batch < 1))
        return last_error_set(TANDEM_UNSUPPORTED, "not valid or not supported");
    return status;
}
