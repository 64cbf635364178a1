/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a device supports an operator call, moves the operands there, and
 * launches the operator; see launch.h.  The context's mutex must be held. */
#include <config.h>

#include "common/op_class.h"
#include "common/last_error.h"
#include "host/loader/plugin_reply.h"
#include "host/run/launch.h"
#include "host/run/prepared_cache.h"
#include "host/device/device_wait.h"

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

enum tandem_status call_enqueue(const struct call *call, struct device *device)
{
    struct tandem_memory memory[2 * TANDEM_MAX_OPERANDS];
    double scalars[TANDEM_MAX_ATTRIBUTES + 1];
    const uint32_t scalar_count = scalars_fill(call, scalars);
    uint32_t count = 0;
    enum tandem_status status = call_prepare_on(call, device);

    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < call->input_count; i++, count++) {
        memory[count] = (struct tandem_memory){NULL, 0};
        if (call->inputs[i] != NULL)
            memory[count] = (struct tandem_memory){
                call->inputs[i]->storage->buffers[device->id],
                call->inputs[i]->desc.byte_offset};
    }
    for (uint32_t i = 0; i < call->output_count; i++, count++)
        memory[count] = (struct tandem_memory){
            call->outputs[i]->storage->buffers[device->id],
            call->outputs[i]->desc.byte_offset};
    return device->vtable->launch(
        device->stream, call->entry->prepared[device->id], memory, count,
        scalar_count > 0 ? scalars : NULL, scalar_count);
}

/* Moves inputs to the device and allocates outputs there.  If this function
 * waited, call it again: another thread may have moved operands. */
static enum tandem_status operands_move(const struct placement_request *request,
                                        struct device *device)
{
    enum tandem_status status =
        stream_owner_wait_if_held(device, HANG_DEADLINE);

    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];
        struct storage *storage = operand->storage;

        if ((storage->current & storage_location_bit(storage, device)) &&
            storage->buffers[device->id] != NULL && storage->host_used == 0 &&
            storage->host_writer == NULL && device->unconfirmed_until == 0)
            continue;
        if (operand->read) {
            status = storage_to_device(storage, device);
        } else {
            storage_drop_poisoned_buffer(storage, device);
            status = storage_allocate_buffer(storage, device);
        }
        /* Other devices must not use the host copy while it is written. */
        if (status == TANDEM_OK && operand->written &&
            storage_is_zero_copy(storage, device))
            status = storage_wait_host_writable(
                storage,
                storage_zero_copy_devices(storage) & ~(1u << device->id),
                HANG_DEADLINE);
        if (status != TANDEM_OK)
            return status;
    }
    return status;
}

/* Repeats operands_move until all operands are moved without a wait. */
static enum tandem_status
operands_make_resident(struct placement_decision *decision,
                       struct device *device)
{
    struct tandem_context *context = device->context;
    uint64_t unlock_epoch = context->unlock_epoch;
    enum tandem_status status = operands_move(&decision->request, device);

    while (unlock_epoch != context->unlock_epoch) {
        /* Another thread may have replaced the cache entry of run_cost. */
        decision->request.run_cost = NULL;
        if (status != TANDEM_OK)
            return status;
        if (device->state != DEVICE_OPEN)
            return device_lost_error(device);
        unlock_epoch = context->unlock_epoch;
        status = operands_move(&decision->request, device);
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

enum tandem_status call_launch(const struct call *call,
                               struct placement_decision *decision,
                               struct device *device)
{
    enum tandem_status status = outputs_add_writable_layouts(call);
    bool recovered = false;

    if (status != TANDEM_OK)
        return status;
    for (;;) {
        status = operands_make_resident(decision, device);
        if (status != TANDEM_OK)
            return status;
        status = call_enqueue(call, device);
        if (status == TANDEM_OK)
            return TANDEM_OK;
        status = device_call_failed(device, status, call->row->name);
        status = stream_recover(device, status, &recovered);
        if (status != TANDEM_OK)
            return status;
        decision->request.run_cost = NULL;
    }
}

void launch_note(const struct placement_request *request, struct device *device)
{
    device->last_launch++;
    if (!device->async)
        device->confirmed = device->last_launch;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (device->async && storage_is_zero_copy(operand->storage, device))
            operand->storage->host_used |= 1u << device->id;
        if (operand->read)
            storage_note_device_read(operand->storage, device,
                                     request->workload.op);
        if (operand->written)
            storage_note_device_write(operand->storage, device);
    }
}
