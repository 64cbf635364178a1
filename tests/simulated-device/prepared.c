/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared operators of the simulated GPU, which wrap those of the CPU plugin.
 * A launch becomes a queued command. Any thread may call these functions.
 */
#include <stdlib.h>
#include <string.h>

#include "common/last_error.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "internal.h"

static struct handle_pool prepared_pool =
    HANDLE_POOL(struct sim_prepared, 0x73707265u);

/* Locks the device of a live operator. */
static enum tandem_status prepared_lock(const struct tandem_prepared *handle,
                                        struct sim_device **out_device)
{
    const struct prepared_base *prepared =
        &((const struct sim_prepared *)handle)->base;
    enum tandem_status status = prepared_check(&prepared_pool, prepared);

    if (status != TANDEM_OK)
        return status;
    if (!handle_live(&device_pool, prepared->device) ||
        ((struct sim_device *)prepared->device)->id != prepared->device_id)
        return prepared_device_closed();
    return device_lock(prepared->device, out_device);
}

/* Locked. Checks the call, and lets the CPU plugin prepare it. */
static enum tandem_status prepared_fill(
    struct sim_prepared *prepared, struct sim_device *device,
    const struct tandem_op *op, const struct tandem_operand_desc *const *inputs,
    uint32_t input_count, const struct tandem_operand_desc *const *outputs,
    uint32_t output_count)
{
    struct tandem_operand_desc descs[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_operand_desc *pointers[2 * TANDEM_MAX_OPERANDS];
    enum tandem_status status = prepared_call_create(
        op, inputs, input_count, outputs, output_count, &prepared->base.call);

    if (status == TANDEM_OK)
        status = operator_is_supported(device, op->id);
    if (status != TANDEM_OK)
        return status;
    /* The CPU plugin's addresses are less aligned than those of this device. */
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        pointers[i] = i < input_count ? inputs[i] : outputs[i - input_count];
        if (!pointers[i])
            continue;
        descs[i] = *pointers[i];
        descs[i].alignment_bytes = 0;
        pointers[i] = &descs[i];
    }
    status = inner_backend()->prepare(device->inner, op, pointers, input_count,
                                      pointers + input_count, output_count, 0,
                                      NULL, &prepared->inner);
    return status == TANDEM_OK ? status : inner_failed(status);
}

void prepared_put(struct sim_prepared *prepared)
{
    if (__atomic_sub_fetch(&prepared->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    inner_backend()->prepared_release(prepared->inner);
    free(prepared->base.call);
    handle_free(&prepared_pool, prepared);
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
    struct sim_device *device;
    struct sim_prepared *prepared;
    struct tandem_prepared_info info = {.struct_size = sizeof info};
    enum tandem_status status;

    if (out_prepared)
        *out_prepared = NULL;
    status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status == TANDEM_OK)
        status = device_lock(handle, &device);
    if (status != TANDEM_OK)
        return status;
    prepared = handle_new(&prepared_pool);
    if (!prepared)
        return device_unlock(device, memory_error("prepare: no memory"));
    prepared->references = 1;
    prepared->base.device = handle;
    prepared->base.device_id = device->id;
    status = prepared_fill(prepared, device, op, inputs, input_count, outputs,
                           output_count);
    if (status == TANDEM_OK && !(flags & TANDEM_PREPARE_QUERY)) {
        device->prepared[op->id] = true;
        COUNT(device, prepares, 1);
        if (flags & TANDEM_PREPARE_COMPILE_NOW)
            launch_compile(device, op->id);
    }
    if (status == TANDEM_OK && out_info) {
        info.is_ready = readiness(device, op->id) == TANDEM_OK;
        struct_size_fill(out_info, &info, sizeof info);
    }
    if (status == TANDEM_OK && !(flags & TANDEM_PREPARE_QUERY))
        *out_prepared = (struct tandem_prepared *)prepared;
    else
        sim_prepared_release((struct tandem_prepared *)prepared);
    return device_unlock(device, status);
}

enum tandem_status sim_prepared_wait(struct tandem_prepared *prepared,
                                     uint64_t timeout_ns)
{
    struct sim_device *device;
    enum tandem_status status = prepared_lock(prepared, &device);
    uint32_t id;

    if (status != TANDEM_OK)
        return status;
    id = ((struct sim_prepared *)prepared)->base.call->op.id;
    COUNT(device, readies, 1);
    if (timeout_ns && device->script.ready != SIM_READY_NEVER)
        device->polls[id] = device->script.ready;
    status = readiness(device, id);
    if (status == TANDEM_NOT_READY) {
        device->polls[id]++;
        last_error_set(status, "operator %u is not compiled yet", id);
    }
    return device_unlock(device, status);
}

void sim_prepared_release(struct tandem_prepared *prepared)
{
    if (!handle_live(&prepared_pool, prepared))
        return;
    handle_hide(prepared);
    prepared_put((struct sim_prepared *)prepared);
}

/* Locked. Replaces the memory of operand i by the CPU plugin's. */
static enum tandem_status operand_use(struct command *command,
                                      const struct prepared_call *call,
                                      uint32_t i,
                                      const struct tandem_memory *from)
{
    const bool is_input = i < call->input_count;
    struct sim_memory *memory;

    if (call->operands[i].is_scalar)
        return TANDEM_OK;
    memory = ((struct sim_buffer *)from->buffer)->memory;
    if (is_input && memory->poison != TANDEM_OK)
        return last_error_set(memory->poison,
                              "%s: the work that should have written input %u "
                              "failed",
                              call->info->name, i);
    command->operands[i].buffer = memory->inner;
    command->operands[i].byte_offset = from->byte_offset;
    command_use(command, memory);
    if (is_input)
        command->read_count = command->memory_count;
    return TANDEM_OK;
}

/* Locked. */
static enum tandem_status call_enqueue(struct sim_stream *stream,
                                       struct sim_prepared *prepared,
                                       const struct tandem_memory *memory,
                                       const double *scalars,
                                       uint32_t scalar_count)
{
    const struct prepared_call *call = prepared->base.call;
    struct sim_device *device = stream->device;
    struct command *command = command_new(COMMAND_LAUNCH);
    enum tandem_status status = TANDEM_OK;

    if (!command)
        return TANDEM_OUT_OF_MEMORY;
    command->operand_count = call->input_count + call->output_count;
    if (scalars) {
        command->scalars = calloc(scalar_count, sizeof *scalars);
        command->scalar_count = scalar_count;
        if (command->scalars)
            memcpy(command->scalars, scalars, scalar_count * sizeof *scalars);
        else
            status = memory_error("launch: no memory");
    }
    for (uint32_t i = 0; i < command->operand_count && status == TANDEM_OK; i++)
        status = operand_use(command, call, i, &memory[i]);
    if (status != TANDEM_OK) {
        command_destroy(device, command);
        return status;
    }
    command->prepared = prepared;
    __atomic_add_fetch(&prepared->references, 1, __ATOMIC_RELAXED);
    launch_compile(device, call->op.id);
    launch_fault(device, command);
    stream_enqueue(stream, command);
    if (call->op.id == TANDEM_OP_GEMM)
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
    struct sim_prepared *prepared = (struct sim_prepared *)launched;
    struct sim_device *device;
    struct sim_stream *stream;
    struct launch_scalars set;
    enum tandem_status status = prepared_lock(launched, &device);

    if (status != TANDEM_OK)
        return status;
    pthread_mutex_unlock(&device->mutex);
    status = stream_lock(handle, &stream);
    if (status == TANDEM_OK) {
        if (stream->device != device)
            status = prepared_other_device();
        else
            status = prepared_call_set_scalars(&set, prepared->base.call,
                                               scalars, scalar_count);
        if (status == TANDEM_OK)
            status = prepared_call_check_memory(
                prepared->base.call, memory, count, address_range_of, device);
        if (status == TANDEM_OK)
            status =
                call_enqueue(stream, prepared, memory, scalars, scalar_count);
        device_unlock(stream->device, status);
    }
    return status;
}

/* ---- the entry gemm ---- */

const struct gemm_call_functions gemm_functions = {
    sim_prepare, sim_prepared_launch, sim_prepared_release};

static enum tandem_status locked_range(const void *user,
                                       const struct tandem_buffer *buffer,
                                       struct address_range *out)
{
    struct sim_device *device;
    enum tandem_status status =
        device_lock((struct tandem_device *)(uintptr_t)user, &device);

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
    device = stream->device;
    pthread_mutex_unlock(&device->mutex);
    return gemm_call_launch(&device->gemm_calls, (struct tandem_device *)device,
                            handle, gemm, locked_range);
}
