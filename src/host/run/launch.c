/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a device supports an operator call, moves the operands there, and
 * launches the operator; see launch.h. */
#include <config.h>

#include "common/op_class.h"
#include "common/last_error.h"
#include "host/loader/plugin_reply.h"
#include "host/run/launch.h"
#include "host/run/placement.h"
#include "host/run/prepared_cache.h"

#include <string.h>

enum tandem_status call_make_ready(const struct call *call,
                                   struct device *device)
{
    enum tandem_status status = call_prepare_on(call, device);

    if (status != TANDEM_OK || !device->jit_compiles ||
        call->context->deterministic)
        return status;
    status =
        device->vtable->prepared_wait(call->entry->prepared[device->id], 0);
    return status == TANDEM_OK || status == TANDEM_NOT_READY
               ? status
               : device_call_failed(device, status, "compiling");
}

/* Fills *out_scalars and returns their number: 0 if the operator has none. */
static uint32_t scalars_fill(const struct call *call,
                             double out[TANDEM_MAX_ATTRIBUTES + 1])
{
    const struct tandem_op *op = call->op;
    const struct op_class *class;
    uint32_t count = op->float_count;

    if (count == 0)
        return 0;
    class = op_class_get(call->row->op_class);
    if (!class->floats_change && !class->scalars)
        return 0;
    memcpy(out, op->floats, count * sizeof(*out));
    if (op->id == TANDEM_OP_ADAM)
        out[count++] = (double)op->ints[0];
    return count;
}

/* Fills `out` with the memory of the call's operands on the device and returns
 * their number. */
static uint32_t memory_fill(const struct call *call,
                            const struct device *device,
                            struct tandem_memory *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < call->input_count; i++, count++) {
        out[count] = (struct tandem_memory){NULL, 0};
        if (call->inputs[i] != NULL)
            out[count] = (struct tandem_memory){
                call->inputs[i]->storage->buffers[device->id],
                call->inputs[i]->desc.byte_offset};
    }
    for (uint32_t i = 0; i < call->output_count; i++, count++)
        out[count] = (struct tandem_memory){
            call->outputs[i]->storage->buffers[device->id],
            call->outputs[i]->desc.byte_offset};
    return count;
}

enum tandem_status call_enqueue(const struct call *call, struct device *device,
                                struct enqueued *out)
{
    struct tandem_memory memory[2 * TANDEM_MAX_OPERANDS];
    double scalars[TANDEM_MAX_ATTRIBUTES + 1];
    const uint32_t scalar_count = scalars_fill(call, scalars);
    const uint32_t count = memory_fill(call, device, memory);
    struct device_stream *stream;
    enum tandem_status status = call_prepare_on(call, device);

    if (status == TANDEM_OK)
        status = stream_acquire(device, HANG_DEADLINE, &stream);
    if (status != TANDEM_OK)
        return status;
    status = device->vtable->launch(
        stream->handle, call->entry->prepared[device->id], memory, count,
        scalar_count > 0 ? scalars : NULL, scalar_count);
    out->done = status == TANDEM_OK;
    if (!out->done) {
        status = device_call_failed(device, status, call->row->name);
        status = stream_recover(device, stream, status, &out->recovered);
    } else if (device->async) {
        out->launch = ++device->last_launch;
        device->busy = true;
    }
    stream_release(device, stream);
    return status;
}

/* ---- operands ---- */

/* Returns a mask of the inputs that must be moved to the device. */
static uint32_t inputs_to_move(const struct placement_request *request,
                               const struct device *device)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (operand->read && !storage_is_on_device(operand->storage, device))
            mask |= 1u << i;
    }
    return mask;
}

static enum tandem_status
inputs_move_now(const struct placement_request *request, uint32_t mask,
                struct device *device)
{
    enum tandem_status status = TANDEM_OK;

    for (; mask != 0 && status == TANDEM_OK; mask &= mask - 1)
        status = storage_to_device(
            request->operands[__builtin_ctz(mask)].storage, device);
    return status;
}

/* The inputs of a launch that computes are shared again after their move.
 * Another thread may then move them away, and the move starts again, at most
 * this many times; then they are not shared. */
#define MAX_MOVES 4u

/* Moves the inputs to the device.  Locks those alone that it moves. */
static enum tandem_status inputs_move(struct call *call,
                                      struct placement_request *request,
                                      struct device *device)
{
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < MAX_MOVES && status == TANDEM_OK; i++) {
        const uint32_t mask = inputs_to_move(request, device);

        if (mask == 0)
            return TANDEM_OK;
        if ((mask & ~request->alone) != 0)
            status = operands_relock(call, request, mask);
        if (status == TANDEM_OK)
            status = inputs_move_now(request, mask, device);
        if (status == TANDEM_OK && !device->async && i + 1 < MAX_MOVES)
            status = operands_relock(call, request, 0);
    }
    return status;
}

/* Allocates the outputs on the device. */
static enum tandem_status
outputs_prepare(const struct placement_request *request, struct device *device)
{
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < request->operand_count && status == TANDEM_OK;
         i++) {
        const struct operand *operand = &request->operands[i];
        struct storage *storage = operand->storage;

        if (!operand->written)
            continue;
        if (!operand->read) {
            storage_drop_poisoned_buffer(storage, device);
            status = storage_allocate_buffer(storage, device);
        }
        /* Other devices must not use the host copy while it is written. */
        if (status == TANDEM_OK && storage->host_used != 0 &&
            storage_is_zero_copy(storage, device))
            status = storage_wait_host_writable(
                storage,
                storage_zero_copy_devices(storage) & ~(1u << device->id),
                HANG_DEADLINE);
    }
    return status;
}

/* Records the layouts of outputs in wrapped memory that has gaps between the
 * elements.  Later downloads to this memory write only recorded elements. */
static enum tandem_status outputs_add_writable_layouts(const struct call *call)
{
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < call->output_count && status == TANDEM_OK; i++) {
        const struct tandem_tensor *output = call->outputs[i];

        if (output->storage->has_gaps)
            status =
                storage_add_writable_layout(output->storage, &output->desc);
    }
    return status;
}

enum tandem_status call_launch(struct call *call,
                               struct placement_decision *decision,
                               struct device *device, struct enqueued *out)
{
    struct placement_request *request = &decision->request;
    enum tandem_status status = outputs_add_writable_layouts(call);

    *out = (struct enqueued){.done = false};
    /* If earlier work failed, the outputs may need other buffers. */
    while (status == TANDEM_OK && !out->done) {
        status = inputs_move(call, request, device);
        if (status == TANDEM_OK)
            status = outputs_prepare(request, device);
        if (status == TANDEM_OK)
            status = call_enqueue(call, device, out);
    }
    return status;
}

void launch_note(const struct placement_request *request, struct device *device,
                 uint64_t launch)
{
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (device->async && storage_is_zero_copy(operand->storage, device))
            operand->storage->host_used |= 1u << device->id;
        if (operand->read)
            storage_note_device_read(operand->storage, device,
                                     request->workload.op);
        if (operand->written)
            storage_note_device_write(operand->storage, device, launch);
    }
}
