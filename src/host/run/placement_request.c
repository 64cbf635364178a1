/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a call's placement request: operands, sizes, current locations, and
 * the required device, if any; see run.h.  The context's mutex must be held. */
#include <config.h>

#include "common/op_class.h"
#include "host/device/device_name.h"
#include "host/run/call_cache.h"
#include "host/run/run.h"

#include <string.h>

/* Returns the operand for a tensor's storage.  Adds it if it is missing. */
static struct operand *operand_add(struct operand *operands, uint32_t *count,
                                   const struct tandem_tensor *tensor)
{
    struct operand *operand = operands;

    for (uint32_t i = 0; i < *count; i++, operand++) {
        if (operand->storage == tensor->storage)
            return operand;
    }
    ++*count;
    memset(operand, 0, sizeof(*operand));
    operand->storage = tensor->storage;
    operand->bytes = (double)tensor->storage->bytes;
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
        if (call->gemm != NULL && call->gemm->beta != 0)
            operand->read = true;
    }
    return count;
}

static void workload_compute(const struct call *call, struct workload *out)
{
    const struct op_call op_call = {.info = call->row,
                                    .op = call->op,
                                    .inputs = call->input_descs,
                                    .outputs = call->output_descs,
                                    .input_count = call->input_count,
                                    .output_count = call->output_count};
    const struct tandem_gemm *gemm = call->gemm;
    struct op_work work;

    op_work_compute(&op_call, &work);
    *out = (struct workload){.op = call->op->id,
                             .cost_class = work.cost_class,
                             .elements = work.elements,
                             .bytes = work.bytes};
    memcpy(out->gemm_size, work.gemm_size, sizeof(out->gemm_size));
    if (gemm != NULL) {
        out->gemm_size[0] = (double)gemm->m;
        out->gemm_size[1] = (double)gemm->n;
        out->gemm_size[2] = (double)gemm->k;
        out->gemm_size[3] = (double)gemm->batch;
    }
}

/* Checks the call unless it is in the call cache.  Fills the request's fields
 * except its operands.  *out_cached is the cache entry, or NULL. */
static enum tandem_status call_check_cached(const struct call *call,
                                            struct placement_request *request,
                                            struct call_descriptor **out_cached)
{
    bool found;
    struct call_descriptor *cached = call_cache_find(call, &found);

    *out_cached = cached;
    request->run_cost = cached != NULL ? &cached->run_cost : NULL;
    if (found) {
        request->workload = cached->workload;
    } else {
        const enum tandem_status status = call_check(call);

        if (status != TANDEM_OK)
            return status;
        workload_compute(call, &request->workload);
        if (cached != NULL) {
            memset(cached, 0, sizeof(*cached));
            call_key_make(call, cached->key);
            cached->workload = request->workload;
            cached->operand_count = operands_find(call, cached->operands);
        }
    }
    return TANDEM_OK;
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

/* Sets *out_forced to the device that the call or the context requires, or to
 * NULL if any device may run the call.  Enumerates devices if necessary. */
static enum tandem_status forced_device_resolve(struct call *call,
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
                                         struct device **out_forced,
                                         struct call_descriptor **out_cached)
{
    struct placement_request *request = &decision->request;
    enum tandem_status status = call_check_cached(call, request, out_cached);

    if (status == TANDEM_OK)
        status = forced_device_resolve(call, out_forced);
    if (status != TANDEM_OK)
        return status;
    decision->chosen = TANDEM_ANY_DEVICE;
    decision->forced = *out_forced != NULL;
    decision->measured_ns = 0;
    decision->predicted = 0;
    decision->failed = call->context->op_blocked[request->workload.op];
    memset(decision->status, TANDEM_UNSUPPORTED, sizeof(decision->status));
    decision->must_compile = 0;
    if (*out_cached != NULL) {
        request->operand_count = (*out_cached)->operand_count;
        memcpy(request->operands, (*out_cached)->operands,
               request->operand_count * sizeof(request->operands[0]));
    } else {
        request->operand_count = operands_find(call, request->operands);
    }
    return request_locate_operands(request);
}
