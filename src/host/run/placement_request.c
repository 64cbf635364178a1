/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a call's placement request: operands, sizes, current locations, and
 * the required device, if any, and locks the operands; see placement.h. */
#include <config.h>

#include "host/device/device_name.h"
#include "host/run/prepared_cache.h"
#include "host/run/placement.h"

#include <string.h>

/* Returns the operand for a tensor's storage.  Adds it if it is missing.
 * operand_locate sets its other fields. */
static struct operand *operand_add(struct operand *operands, uint32_t *count,
                                   const struct tandem_tensor *tensor)
{
    struct operand *operand = operands;

    for (uint32_t i = 0; i < *count; i++, operand++) {
        if (operand->storage == tensor->storage)
            return operand;
    }
    ++*count;
    operand->storage = tensor->storage;
    operand->bytes = (double)tensor->storage->bytes;
    operand->read = operand->written = operand->partial = false;
    return operand;
}

/* Fills `out` with the storages that the call uses and returns their number. */
static uint32_t operands_find(const struct call *call, struct operand *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] != NULL)
            operand_add(out, &count, call->inputs[i])->read = true;
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        struct operand *operand = operand_add(out, &count, call->outputs[i]);

        operand->written = true;
        /* The launch must keep the bytes that are not part of the output. */
        operand->partial |= !tensor_covers_storage(call->outputs[i]);
    }
    return count;
}

/* Updates an operand's locations and expected readers from its storage. */
static void operand_locate(struct operand *operand)
{
    const struct storage *storage = operand->storage;

    operand->current = storage->current;
    operand->host_accessible = storage_host_accessible_devices(storage);
    operand->host_writers =
        storage->host_writer != NULL ? 1u << storage->host_writer->id : 0;
    operand->host_read_expected =
        operand->written && storage_read_expected(storage);
    operand->next_reader = operand->written && !storage->context->deterministic
                               ? storage->first_reader
                               : 0;
    operand->next_reader_op = storage->first_reader_op;
    operand->read |= operand->partial && storage->current != 0;
}

enum tandem_status request_locate_operands(struct placement_request *request)
{
    for (uint32_t i = 0; i < request->operand_count; i++) {
        struct operand *operand = &request->operands[i];

        operand_locate(operand);
        if (operand->read && !(operand->current & HOST_BIT)) {
            const enum tandem_status status =
                storage_require_content(operand->storage);

            if (status != TANDEM_OK)
                return status;
            operand->current = operand->storage->current;
        }
    }
    return TANDEM_OK;
}

/* ---- locks ---- */

static void operands_unlock(struct placement_request *request)
{
    for (uint32_t i = 0; i < request->operand_count; i++)
        storage_unlock(request->operands[i].storage);
}

/* Fills `order` with the operands in the order of their storages' addresses. */
static void operands_sort(const struct placement_request *request,
                          uint8_t *order)
{
    const struct operand *operands = request->operands;

    for (uint32_t i = 0; i < request->operand_count; i++) {
        const uintptr_t address = (uintptr_t)operands[i].storage;
        uint32_t at = i;

        for (; at > 0 && (uintptr_t)operands[order[at - 1]].storage > address;
             at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Locks the storages of the operands, in the order of their addresses, so that
 * two calls never wait for each other. */
static enum tandem_status operands_lock(struct placement_request *request,
                                        uint32_t alone)
{
    uint8_t order[2 * TANDEM_MAX_OPERANDS];
    struct operand *operands = request->operands;

    for (uint32_t i = 0; i < request->operand_count; i++)
        alone |= (uint32_t)operands[i].written << i;
    request->alone = alone;
    operands_sort(request, order);
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const enum tandem_status status = storage_lock(
            operands[order[i]].storage, alone >> order[i] & 1, HANG_DEADLINE);

        if (status == TANDEM_OK)
            continue;
        while (i-- > 0)
            storage_unlock(operands[order[i]].storage);
        request->operand_count = 0;
        return status;
    }
    return TANDEM_OK;
}

/* Locks the operands of the call, and checks what other threads may have
 * changed before: a rebound tensor with another alignment needs another entry.
 * After an error the request has no operands. */
static enum tandem_status operands_lock_call(struct call *call,
                                             struct placement_request *request,
                                             uint32_t alone)
{
    enum tandem_status status = operands_lock(request, alone);

    if (status != TANDEM_OK)
        return status;
    status = call_check_handles(call);
    if (status == TANDEM_OK && !prepared_entry_fits(call)) {
        prepared_entry_put(call);
        status = prepared_cache_find(call);
    }
    if (status == TANDEM_OK)
        status = request_locate_operands(request);
    if (status != TANDEM_OK) {
        operands_unlock(request);
        request->operand_count = 0;
        return status;
    }
    request->run_cost = &call->entry->run_cost;
    return TANDEM_OK;
}

enum tandem_status operands_relock(struct call *call,
                                   struct placement_request *request,
                                   uint32_t alone)
{
    operands_unlock(request);
    return operands_lock_call(call, request, alone);
}

void call_release(struct call *call, struct placement_decision *decision)
{
    operands_unlock(&decision->request);
    prepared_entry_put(call);
    decision->request.run_cost = NULL; /* points into the entry */
}

/* ---- devices ---- */

enum tandem_status forced_device_resolve(const struct call *call,
                                         struct device **out_forced)
{
    struct tandem_context *context = call->context;
    const enum tandem_status status = forced_device_find(context);
    const uint32_t id =
        call->device != TANDEM_ANY_DEVICE ? call->device : context->forced;

    *out_forced = NULL;
    if (status != TANDEM_OK)
        return status;
    if (id == TANDEM_ANY_DEVICE)
        return devices_enumerate(context, context->backend_count);
    if (id >= context->device_count)
        return device_get(context, id, out_forced);
    *out_forced = context->devices[id];
    return TANDEM_OK;
}

enum tandem_status call_prepare_decision(struct call *call,
                                         struct placement_decision *decision,
                                         struct device **out_forced)
{
    struct placement_request *request = &decision->request;
    enum tandem_status status = prepared_cache_find(call);

    if (status == TANDEM_OK)
        status = forced_device_resolve(call, out_forced);
    if (status != TANDEM_OK) {
        prepared_entry_put(call);
        return status;
    }
    request->workload = call->entry->workload;
    decision->chosen = TANDEM_ANY_DEVICE;
    decision->forced = *out_forced != NULL;
    decision->measured_ns = 0;
    decision->predicted = 0;
    decision->failed = call->context->op_blocked[request->workload.op];
    memset(decision->status, TANDEM_UNSUPPORTED, sizeof(decision->status));
    decision->must_compile = 0;
    request->operand_count = operands_find(call, request->operands);
    status = operands_lock_call(call, request, 0);
    if (status != TANDEM_OK)
        call_release(call, decision);
    return status;
}
