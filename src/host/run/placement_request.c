/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares the placement request of a call: its operands, their sizes and
 * locations, and the device that is forced, if any; see run.h.  The context's
 * mutex must be held.
 */
#include <config.h>

#include "common/last_error.h"
#include "host/device/forced_device.h"
#include "host/run/call_cache.h"
#include "host/run/run.h"

#include <string.h>

/* Returns the entry of the tensor's storage; appends an entry if necessary. */
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

/* Lists the storages that the call uses and returns their number. */
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
        /* Content that the output does not cover must be kept. */
        operand->partial |= !tensor_covers(call->outputs[i]);
        if (call->gemm != NULL && call->gemm->beta != 0)
            operand->read = true;
    }
    return count;
}

static void query_count(struct judged *out, const struct tandem_tensor *tensor)
{
    const double elements = (double)tensor->elements;

    out->bytes += (double)tensor->bytes;
    if (elements > out->elements)
        out->elements = elements;
}

/* Returns the cost class.  Elementwise operators and copies belong to
 * TANDEM_COST_STRIDED if an operand is not row-major. */
static uint32_t cost_class_find(const struct call *call, bool contiguous)
{
    switch (call->row->op_class) {
    case TANDEM_CLASS_COPY:
        return contiguous ? TANDEM_COST_ELEMENTWISE : TANDEM_COST_STRIDED;
    case TANDEM_CLASS_UNARY:
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
    case TANDEM_CLASS_CAST:
    case TANDEM_CLASS_GRADIENT:
        return contiguous ? call->row->cost_class : TANDEM_COST_STRIDED;
    default:
        return call->row->cost_class;
    }
}

/* Computes the cost class and the sizes of the call from the shapes. */
static void shapes_measure(const struct call *call, struct judged *out)
{
    bool contiguous = true;

    out->elements = 0;
    out->bytes = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] == NULL)
            continue;
        query_count(out, call->inputs[i]);
        contiguous &= call->inputs[i]->contiguous;
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        query_count(out, call->outputs[i]);
        contiguous &= call->outputs[i]->contiguous;
    }
    /* Gather reads only as many data elements as it writes. */
    if (call->row->op_class == TANDEM_CLASS_GATHER) {
        out->bytes -= (double)call->inputs[0]->bytes;
        out->bytes += (double)call->outputs[0]->bytes;
    }
    out->cost_class = cost_class_find(call, contiguous);
    memset(out->product, 0, sizeof(out->product));
    if (call->gemm != NULL) {
        out->product[0] = (double)call->gemm->m;
        out->product[1] = (double)call->gemm->n;
        out->product[2] = (double)call->gemm->k;
        out->product[3] = (double)call->gemm->batch;
    }
}

/* Checks the call unless it is cached, and fills the fields of the query that
 * depend only on the shapes.  *out_judged is the cache entry, or NULL. */
static enum tandem_status call_judge(const struct call *call,
                                     struct query *query,
                                     struct judged **out_judged)
{
    struct judged own;
    bool found;
    struct judged *judged = call_cache_find(call, &found);

    *out_judged = judged;
    if (!found) {
        const enum tandem_status status = call_check(call);

        if (status != TANDEM_OK)
            return status;
        if (judged != NULL) {
            judged_key_make(call, &judged->key);
            judged->usable = 0;
            judged->good = 0;
            judged->work.known = 0;
            judged->work.last = 0;
            judged->operand_count = operands_find(call, judged->operands);
        } else {
            judged = &own;
            judged->key.op = call->op->id;
        }
        shapes_measure(call, judged);
    }
    judged_query(judged, query);
    if (judged == &own)
        query->work = NULL;
    return TANDEM_OK;
}

/* Updates the location and the expected readers of an operand. */
static void operand_locate(struct operand *operand)
{
    const struct storage *storage = operand->storage;

    operand->current = storage->current;
    operand->home = storage_home(storage);
    operand->writer =
        storage->host_writer != NULL ? 1u << storage->host_writer->id : 0;
    operand->expected = operand->written && storage_read_expected(storage);
    operand->reader = operand->written && !storage->context->deterministic
                          ? storage->reader
                          : 0;
    operand->reader_op = storage->reader_op;
    operand->read |= operand->partial && storage->current != 0;
}

enum tandem_status query_locate(struct query *query)
{
    for (uint32_t i = 0; i < query->operand_count; i++) {
        struct operand *operand = &query->operands[i];

        operand_locate(operand);
        if (operand->read && !(operand->current & HOST_BIT)) {
            const enum tandem_status status =
                storage_readable(operand->storage);

            if (status != TANDEM_OK)
                return status;
            operand->current = operand->storage->current;
        }
    }
    return TANDEM_OK;
}

/* Sets *out_forced to the device that the call or the context demands, or NULL.
 * Enumerates devices if necessary. */
static enum tandem_status device_settle(struct call *call,
                                        struct device **out_forced)
{
    struct tandem_context *context = call->context;
    const enum tandem_status status = forced_find(context);
    uint32_t id = call->device;

    *out_forced = NULL;
    if (status != TANDEM_OK)
        return status;
    if (id == TANDEM_ANY_DEVICE)
        id = context->forced;
    if (id == TANDEM_ANY_DEVICE)
        return devices_enumerate(context, context->backend_count);
    if (id >= context->device_count)
        return device_get(context, id, out_forced);
    *out_forced = context->devices[id];
    return TANDEM_OK;
}

/* Sets the status of the devices that are blocked for the operator. */
static void rejections_note(struct record *record)
{
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        if (record->failed >> i & 1)
            record->status[i] = TANDEM_UNSUPPORTED;
    }
}

enum tandem_status call_start(struct call *call, struct record *record,
                              struct device **out_forced,
                              struct judged **out_judged)
{
    struct query *query = &record->query;
    enum tandem_status status = call_judge(call, query, out_judged);

    if (status == TANDEM_OK)
        status = device_settle(call, out_forced);
    if (status != TANDEM_OK)
        return status;
    record->chosen = TANDEM_ANY_DEVICE;
    record->forced = *out_forced != NULL;
    record->measured_ns = 0;
    record->predicted = 0;
    record->failed = call->context->rejecting[query->op];
    if (record->failed != 0)
        rejections_note(record);
    record->unready = 0;
    if (*out_judged != NULL) {
        query->operand_count = (*out_judged)->operand_count;
        memcpy(query->operands, (*out_judged)->operands,
               query->operand_count * sizeof(query->operands[0]));
    } else {
        query->operand_count = operands_find(call, query->operands);
    }
    return query_locate(query);
}
