/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared operators of the simulated GPU. A launch becomes a queued launch
 * command. Any thread may call these functions.
 */
#include <stdlib.h>

#include "common/last_error.h"
#include "common/prepared_call.h"
#include "common/struct_size.h"
#include "internal.h"

static struct handle_pool prepared_pool =
    HANDLE_POOL(struct prepared_base, 0x73707265u);

/* Locks the device of a live operator. */
static enum tandem_status prepared_lock(const struct tandem_prepared *handle,
                                        struct sim_device **out_device)
{
    const struct prepared_base *prepared = (const void *)handle;
    enum tandem_status status = prepared_check(&prepared_pool, prepared);

    if (status != TANDEM_OK)
        return status;
    if (!handle_live(&device_pool, prepared->device) ||
        ((struct sim_device *)prepared->device)->id != prepared->device_id)
        return prepared_device_closed();
    return device_lock(prepared->device, out_device);
}

/* Locked. Checks the call, and asks the CPU plugin whether it supports it. */
static enum tandem_status
call_check(struct sim_device *device, const struct tandem_op *op,
           const struct tandem_operand_desc *const *inputs,
           uint32_t input_count,
           const struct tandem_operand_desc *const *outputs,
           uint32_t output_count, struct prepared_call **out_call)
{
    enum tandem_status status = prepared_call_create(
        op, inputs, input_count, outputs, output_count, out_call);

    if (status == TANDEM_OK)
        status = operator_is_supported(device, op->id);
    if (status != TANDEM_OK)
        return status;
    status = inner_backend()->op_prepare(device->inner, op, inputs, input_count,
                                         outputs, output_count,
                                         TANDEM_PREPARE_QUERY, NULL, NULL);
    return status == TANDEM_OK ? status : inner_failed(status);
}

/* Locked. */
static enum tandem_status prepared_new(struct sim_device *device,
                                       struct prepared_call *call,
                                       uint32_t flags,
                                       struct prepared_base **out_prepared)
{
    if (flags & TANDEM_PREPARE_QUERY)
        return TANDEM_OK;
    *out_prepared = handle_new(&prepared_pool);
    if (!*out_prepared)
        return memory_error("op_prepare: no memory");
    (*out_prepared)->call = call;
    (*out_prepared)->device = (struct tandem_device *)device;
    (*out_prepared)->device_id = device->id;
    device->prepared[call->op.id] = true;
    COUNT(device, prepares, 1);
    if (flags & TANDEM_PREPARE_COMPILE_NOW)
        launch_compile(device, call->op.id);
    return TANDEM_OK;
}

enum tandem_status sim_op_prepare(
    struct tandem_device *handle, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared)
{
    struct sim_device *device;
    struct prepared_base *prepared = NULL;
    struct prepared_call *call = NULL;
    struct tandem_prepared_info info = {.struct_size = sizeof info};
    enum tandem_status status;

    if (out_prepared)
        *out_prepared = NULL;
    status = prepare_arguments_check(flags, out_info, out_prepared);
    if (status == TANDEM_OK)
        status = device_lock(handle, &device);
    if (status != TANDEM_OK)
        return status;
    status = call_check(device, op, inputs, input_count, outputs, output_count,
                        &call);
    if (status == TANDEM_OK)
        status = prepared_new(device, call, flags, &prepared);
    if (status == TANDEM_OK && out_info) {
        info.is_ready = readiness(device, op->id) == TANDEM_OK;
        struct_size_fill(out_info, &info, sizeof info);
    }
    if (prepared)
        *out_prepared = (struct tandem_prepared *)prepared;
    else
        free(call);
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
    id = ((struct prepared_base *)prepared)->call->op.id;
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
    free(((struct prepared_base *)prepared)->call);
    handle_free(&prepared_pool, prepared);
}

/* Locked. */
static enum tandem_status call_enqueue(struct sim_stream *stream,
                                       const struct prepared_call *call,
                                       const struct tandem_memory *memory)
{
    struct tandem_tensor_desc tensors[2 * TANDEM_MAX_OPERANDS];
    const struct tandem_tensor_desc *pointers[2 * TANDEM_MAX_OPERANDS];

    for (uint32_t i = 0; i < call->input_count + call->output_count; i++) {
        tensors[i] = call->operands[i].tensor;
        tensors[i].buffer = memory[i].buffer;
        tensors[i].byte_offset = memory[i].byte_offset;
        pointers[i] = call->operands[i].is_scalar ? NULL : &tensors[i];
    }
    return launch_enqueue(stream, &call->op, pointers, call->input_count,
                          pointers + call->input_count, call->output_count);
}

enum tandem_status sim_prepared_launch(struct tandem_stream *handle,
                                       struct tandem_prepared *prepared,
                                       const struct tandem_memory *memory,
                                       uint32_t count)
{
    struct prepared_base *base = (struct prepared_base *)prepared;
    struct sim_device *device;
    struct sim_stream *stream;
    enum tandem_status status = prepared_lock(prepared, &device);

    if (status != TANDEM_OK)
        return status;
    pthread_mutex_unlock(&device->mutex);
    status = stream_lock(handle, &stream);
    if (status == TANDEM_OK) {
        if (stream->device != device)
            status = prepared_other_device();
        else
            status = prepared_call_check_memory(base->call, memory, count,
                                                address_range_of, device);
        if (status == TANDEM_OK)
            status = call_enqueue(stream, base->call, memory);
        device_unlock(stream->device, status);
    }
    return status;
}
