/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running operators; see run.h.
 */
#include <config.h>

#include "host/run.h"
#include "common/check.h"
#include "common/message.h"
#include "host/judged.h"

#include <stdlib.h>
#include <string.h>

/* ---- judging ------------------------------------------------------------------ */

static bool tensor_good(const struct tandem_tensor *tensor,
                        const struct tandem_context *context)
{
    return handle_live(&tensor_pool, tensor) && tensor->context == context;
}

static enum tandem_status operand_fail(const struct tandem_tensor *tensor,
                                        const struct tandem_context *context,
                                        const char *op, const char *side,
                                        uint32_t index)
{
    char what[64];

    memcpy(what, op, strnlen(op, 32) + 1);
    what[strnlen(op, 32)] = '\0';
    memcpy(what + strlen(what), side, strlen(side) + 1);
    what[strlen(what) + 1] = '\0';
    what[strlen(what)] = (char)('0' + index);
    return tensor_check(tensor, context, what);
}

enum tandem_status call_make(struct call *call, struct tandem_context *context,
                             uint32_t device, const struct tandem_op *op,
                             struct tandem_tensor *const *inputs,
                             uint32_t input_count,
                             struct tandem_tensor *const *outputs,
                             uint32_t output_count)
{
    if (!context_good(context))
        return context_check(context);
    if (op == NULL)
        return message_set(TANDEM_INVALID_ARGUMENT, "op: NULL");
    call->row = operator_row(op->id);
    if (call->row == NULL)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "op: there is no operator %u", op->id);
    if (op->id == TANDEM_OP_GEMM)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "gemm: products of tensors go through "
                           "tandem_matmul");
    if (input_count > TANDEM_MAX_OPERANDS || output_count > TANDEM_MAX_OPERANDS)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: %u inputs and %u outputs, at most %u of each",
                           call->row->name, input_count, output_count,
                           TANDEM_MAX_OPERANDS);
    if ((inputs == NULL && input_count > 0) ||
        (outputs == NULL && output_count > 0))
        return message_set(TANDEM_INVALID_ARGUMENT, "%s: %s: NULL",
                           call->row->name,
                           inputs == NULL ? "inputs" : "outputs");
    call->context = context;
    call->op = op;
    call->inputs = inputs;
    call->outputs = outputs;
    call->input_count = input_count;
    call->output_count = output_count;
    call->device = device;
    call->gemm = NULL;
    for (uint32_t i = 0; i < input_count; i++) {
        call->input_descs[i] = NULL;
        if (inputs[i] == NULL)
            continue;
        if (!tensor_good(inputs[i], context))
            return operand_fail(inputs[i], context, call->row->name,
                                ": input ", i);
        call->input_descs[i] = &inputs[i]->desc;
    }
    for (uint32_t i = 0; i < output_count; i++) {
        if (!tensor_good(outputs[i], context))
            return operand_fail(outputs[i], context, call->row->name,
                                ": output ", i);
        call->output_descs[i] = &outputs[i]->desc;
    }
    return TANDEM_OK;
}

/* What stands for a tensor's memory: its buffer on a device, or for checks
 * (TANDEM_ANY_DEVICE) its storage. */
static struct tandem_buffer *buffer_of(const struct tandem_tensor *tensor,
                                       uint32_t device)
{
    return device == TANDEM_ANY_DEVICE
               ? (struct tandem_buffer *)tensor->storage
               : tensor->storage->buffers[device];
}

static void buffers_set(const struct call *call, uint32_t device)
{
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i] != NULL)
            call->inputs[i]->desc.buffer = buffer_of(call->inputs[i], device);
    }
    for (uint32_t i = 0; i < call->output_count; i++)
        call->outputs[i]->desc.buffer = buffer_of(call->outputs[i], device);
}

/* A memory_span_fn: a descriptor's buffer is its storage. */
static enum tandem_status storage_span(const void *user,
                                       const struct tandem_buffer *buffer,
                                       struct memory_span *out)
{
    const struct storage *storage = (const struct storage *)buffer;

    (void)user;
    out->base = storage->address;
    out->bytes = storage->bytes;
    return TANDEM_OK;
}

static enum tandem_status call_check(const struct call *call)
{
    enum tandem_status status;

    buffers_set(call, TANDEM_ANY_DEVICE);
    if (call->gemm != NULL)
        status = check_gemm(call->gemm, storage_span, NULL);
    else
        status = check_op(call->op, call->input_descs, call->input_count,
                          call->output_descs, call->output_count, storage_span,
                          NULL);
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i]->storage->read_only)
            return message_set(TANDEM_INVALID_ARGUMENT,
                               "%s: output %u: its memory was wrapped "
                               "read-only",
                               call->row->name, i);
    }
    return TANDEM_OK;
}

/* ---- the query ------------------------------------------------------------------ */

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

/* The storages that the call reads and writes. */
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
        /* What the output leaves alone must be there, too. */
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

/* Element-wise work and copies: one curve where every operand is row-major,
 * another where one is not. */
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

/* What the chooser needs to know of the call's shapes. */
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
    /* Of the data, gather reads as much as it writes. */
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

/* Judges the call, or remembers that it was good, and fills the part of the
 * query that depends on its shapes alone. */
static enum tandem_status call_judge(const struct call *call,
                                     struct query *query,
                                     struct judged **out_judged)
{
    struct judged own;
    bool found;
    struct judged *judged = judged_find(call, &found);

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

/* Where an operand is now. */
static void operand_locate(struct operand *operand)
{
    const struct storage *storage = operand->storage;

    operand->current = storage->current;
    operand->writer = storage->host_writer != NULL
                          ? 1u << storage->host_writer->id
                          : 0;
    operand->expected = operand->written && storage_read_expected(storage);
    operand->reader = operand->written && !storage->context->deterministic
                          ? storage->reader
                          : 0;
    operand->reader_op = storage->reader_op;
    operand->read |= operand->partial && storage->current != 0;
}

static enum tandem_status query_locate(struct query *query)
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

static enum tandem_status forced_find(struct call *call,
                                      struct device **out_forced)
{
    struct tandem_context *context = call->context;
    uint32_t id = call->device;

    *out_forced = NULL;
    if (context->forced_name != NULL) {
        struct device *device = device_find(context, context->forced_name);

        if (device == NULL)
            return TANDEM_NO_DEVICE;
        context->forced = device->id;
        free(context->forced_name);
        context->forced_name = NULL;
    }
    if (id == TANDEM_ANY_DEVICE)
        id = context->forced;
    if (id == TANDEM_ANY_DEVICE) {
        devices_enumerate(context, context->backend_count);
        return TANDEM_OK;
    }
    *out_forced = id < context->device_count ? context->devices[id]
                                             : device_get(context, id);
    return *out_forced != NULL ? TANDEM_OK : TANDEM_INVALID_ARGUMENT;
}

enum tandem_status call_start(struct call *call, struct record *record,
                              struct device **out_forced,
                              struct judged **out_judged)
{
    struct query *query = &record->query;
    enum tandem_status status = call_judge(call, query, out_judged);

    if (status == TANDEM_OK)
        status = forced_find(call, out_forced);
    if (status != TANDEM_OK)
        return status;
    record->chosen = TANDEM_ANY_DEVICE;
    record->forced = *out_forced != NULL;
    record->measured_ns = 0;
    record->predicted = 0;
    record->failed = 0;
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

/* ---- launching ---------------------------------------------------------------- */

enum tandem_status call_supported(const struct call *call,
                                  struct device *device)
{
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    if (call->gemm != NULL)
        status = device->table->supports(device->handle, call->op, NULL, 0,
                                         NULL, 0);
    else
        status = device->table->supports(
            device->handle, call->op, call->input_descs, call->input_count,
            call->output_descs, call->output_count);
    if (status != TANDEM_OK)
        message_set(status, "%s: %s", device->label,
                    device->table->last_error());
    return status;
}

enum tandem_status call_ready(const struct call *call, struct device *device)
{
    const struct tandem_backend *table = device->table;

    if (call->gemm != NULL)
        return table->ready(device->handle, call->op, NULL, 0, NULL, 0);
    return table->ready(device->handle, call->op, call->input_descs,
                        call->input_count, call->output_descs,
                        call->output_count);
}

static void call_prepare(const struct call *call, struct device *device)
{
    const struct tandem_backend *table = device->table;

    if (call->gemm != NULL)
        table->prepare(device->handle, call->op, NULL, 0, NULL, 0);
    else
        table->prepare(device->handle, call->op, call->input_descs,
                       call->input_count, call->output_descs,
                       call->output_count);
}

static enum tandem_status gemm_launch(const struct call *call,
                                      struct device *device)
{
    struct tandem_gemm *gemm = call->gemm;

    gemm->a.buffer = buffer_of(call->inputs[0], device->id);
    gemm->b.buffer = buffer_of(call->inputs[1], device->id);
    if (call->input_count > 2)
        gemm->bias = buffer_of(call->inputs[2], device->id);
    gemm->c.buffer = buffer_of(call->outputs[0], device->id);
    return device->table->gemm(device->stream, gemm);
}

static enum tandem_status launch_once(const struct call *call,
                                      struct device *device)
{
    if (call->gemm != NULL)
        return gemm_launch(call, device);
    buffers_set(call, device->id);
    return device->table->launch(device->stream, call->op, call->input_descs,
                                 call->input_count, call->output_descs,
                                 call->output_count);
}

/* Puts every operand where the device can use it. */
static enum tandem_status operands_place(const struct query *query,
                                         struct device *device)
{
    struct tandem_context *context = device->context;
    enum tandem_status status = TANDEM_OK;

    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];
        struct storage *storage = operand->storage;

        if ((storage->current & device->bit) &&
            storage->buffers[device->id] != NULL && storage->host_used == 0 &&
            storage->host_writer == NULL && device->doubted == 0)
            continue;
        /* Others that compute in host memory may be at it still. */
        if (operand->written && device->shares_host) {
            status = storage_host_release(
                storage, context->sharing & ~(1u << device->id),
                TANDEM_FOREVER);
            if (status != TANDEM_OK)
                return status;
        }
        if (operand->read) {
            status = storage_to_device(storage, device);
        } else {
            storage_buffer_renew(storage, device);
            status = storage_buffer_make(storage, device);
        }
        if (status != TANDEM_OK)
            return status;
    }
    return status;
}

static enum tandem_status call_launch(const struct call *call,
                                      const struct query *query,
                                      struct device *device)
{
    enum tandem_status status;

    for (uint32_t attempt = 0;; attempt++) {
        status = operands_place(query, device);
        if (status != TANDEM_OK)
            return status;
        status = launch_once(call, device);
        if (status == TANDEM_OK)
            return TANDEM_OK;
        device_failed(device, status, call->row->name);
        if (attempt > 0 || !device_recover(device))
            return status;
    }
}

/* The launch succeeded. */
static void call_launched(const struct call *call, struct record *record,
                          struct device *device)
{
    const struct query *query = &record->query;

    device->sequence++;
    if (!device->async)
        device->clean = device->sequence;
    chooser_launched(record, device);
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];

        if (device->async && device->shares_host)
            operand->storage->host_used |= 1u << device->id;
        if (operand->read)
            storage_device_reads(operand->storage, device, query->op);
        if (operand->written)
            storage_device_wrote(operand->storage, device);
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        struct tandem_tensor *output = call->outputs[i];

        if (output->storage->gaps)
            storage_claim(output->storage, &output->desc);
    }
}

/* ---- running -------------------------------------------------------------------- */

static void observers_call(struct call *call, struct record *record, bool after)
{
    struct tandem_context *context = call->context;
    struct tandem_explanation explanation;

    explanation_fill(context, record, &explanation);
    if (!after)
        explanation.measured_ns = 0;
    context->observer(context->observer_user, &explanation, after);
}

/* Runs it on device: moves, launches and, where asked to, measures. */
static enum tandem_status call_execute(struct call *call,
                                       struct record *record,
                                       struct device *device)
{
    struct tandem_context *context = call->context;
    const bool measure = context->measure;
    uint64_t start = 0;
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    record->chosen = device->id;
    if (context->observer != NULL)
        observers_call(call, record, false);
    if (measure)
        start = clock_ns();
    status = call_launch(call, &record->query, device);
    if (status != TANDEM_OK)
        return status;
    call_launched(call, record, device);
    if (measure) {
        status = device_wait(device, TANDEM_FOREVER);
        if (status != TANDEM_OK)
            device_late(device, status);
        record->measured_ns = (double)(clock_ns() - start);
    }
    if (context->observer != NULL)
        observers_call(call, record, true);
    return TANDEM_OK;
}

/* device could not run it: the next best may. */
static void candidate_drop(struct call *call, struct record *record,
                           const struct device *device,
                           enum tandem_status status)
{
    record->failed |= 1u << device->id;
    record->status[device->id] = (uint8_t)status;
    log_message(&call->context->log,
                status == TANDEM_UNSUPPORTED ? TANDEM_LOG_DEBUG
                                             : TANDEM_LOG_WARNING,
                "%s: not on %s: %s", call->row->name, device->label,
                message_get());
}

/* Whether device, the best by cost, serves the operator and needs no compiler;
 * else it is dropped, or marked as not ready. */
static bool candidate_good(struct call *call, struct record *record,
                           struct judged *judged, struct device *device)
{
    const bool core = device->info.caps & TANDEM_CAP_CORE_OPERATORS;
    enum tandem_status status;

    if ((device->shares_host && core && !device->compiles) ||
        (judged != NULL && (judged->good >> device->id & 1)))
        return true;
    status = call_supported(call, device);
    if (status != TANDEM_OK) {
        candidate_drop(call, record, device, status);
        return false;
    }
    if (device->compiles && !call->context->deterministic)
        status = call_ready(call, device);
    if (status == TANDEM_OK) {
        if (judged != NULL)
            judged->good |= 1u << device->id;
        return true;
    }
    if (status == TANDEM_NOT_READY) {
        call_prepare(call, device);
        record->unready |= 1u << device->id;
        return false;
    }
    device_failed(device, status, "compiling");
    candidate_drop(call, record, device, status);
    return false;
}

/* No device could run it; last: why the last one that was tried could not. */
static enum tandem_status call_fail(const struct call *call,
                                    const struct record *record,
                                    enum tandem_status last)
{
    if (last != TANDEM_NO_DEVICE)
        return last;
    if (record->failed != 0)
        return message_set(TANDEM_UNSUPPORTED,
                           "%s: no device serves it with these operands",
                           call->row->name);
    return message_set(last, "%s: no device is left to run it",
                       call->row->name);
}

static enum tandem_status call_place(struct call *call, struct record *record,
                                     struct judged *judged)
{
    struct tandem_context *context = call->context;
    enum tandem_status status = TANDEM_NO_DEVICE;

    for (;;) {
        struct device *device =
            chooser_pick(context, record, context->usable);

        if (device == NULL && record->unready != 0) {
            /* Nothing else serves it: its compiler is worth waiting for. */
            const uint32_t unready = record->unready;

            record->unready = 0;
            device = chooser_pick(context, record, unready & context->usable);
        } else if (device != NULL &&
                   !candidate_good(call, record, judged, device)) {
            continue;
        }
        if (device == NULL)
            return call_fail(call, record, status);
        status = call_execute(call, record, device);
        if (status == TANDEM_OK || status == TANDEM_INVALID_ARGUMENT)
            return status;
        candidate_drop(call, record, device, status);
    }
}

/* Whether the operand's next reader is expected to be elsewhere than in host
 * memory. */
static bool leaves_home(const struct tandem_context *context,
                        const struct operand *operand)
{
    return operand->reader != 0 &&
           !(context->sharing >> (operand->reader - 1) & 1);
}

/* The way of most small operators: nobody can beat the device that computes in
 * host memory, and what is read is there.  false: any other case. */
static bool home_run(struct call *call, struct record *record,
                     struct judged *judged, enum tandem_status *out_status)
{
    struct tandem_context *context = call->context;
    const struct query *query = &record->query;
    struct device *home = judged_home(context, judged);
    struct prediction *prediction;

    if (home == NULL || context->measure || context->observer != NULL)
        return false;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];

        if (operand->storage->buffers[home->id] == NULL ||
            operand->writer != 0 || operand->storage->host_used != 0 ||
            operand->storage->moved != 0 || leaves_home(context, operand) ||
            (operand->read && !(operand->current & HOST_BIT)))
            return false;
    }
    if (launch_once(call, home) != TANDEM_OK)
        return false;
    home->clean = ++home->sequence;
    prediction = &record->predictions[home->id];
    memset(prediction, 0, sizeof(*prediction));
    prediction->launch_ns = judged->launch_ns;
    prediction->run_ns = judged->run_ns;
    prediction->total_ns = judged->launch_ns + judged->run_ns;
    record->predicted = 1u << home->id;
    record->chosen = home->id;
    context->now_ns += prediction->total_ns;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        struct storage *storage = query->operands[i].storage;

        if (query->operands[i].read)
            storage_device_reads(storage, home, query->op);
        if (query->operands[i].written)
            storage_device_wrote(storage, home);
    }
    *out_status = TANDEM_OK;
    return true;
}

enum tandem_status call_run(struct call *call)
{
    struct tandem_context *context = call->context;
    struct record *record;
    struct judged *judged;
    struct device *forced;
    enum tandem_status status;

    context_lock(context);
    record = record_get(context);
    status = call_start(call, record, &forced, &judged);
    if (status == TANDEM_OK && forced == NULL) {
        if (judged == NULL || !home_run(call, record, judged, &status))
            status = call_place(call, record, judged);
    } else if (status == TANDEM_OK) {
        chooser_predict(record, forced);
        status = call_execute(call, record, forced);
    }
    /* The entry may be another call's when this one is explained. */
    record->query.work = NULL;
    if (status != TANDEM_OK)
        record->context = NULL;
    context_unlock(context);
    return status;
}

enum tandem_status tandem_run_on(struct tandem_context *context,
                                 uint32_t device, const struct tandem_op *op,
                                 struct tandem_tensor *const *inputs,
                                 uint32_t input_count,
                                 struct tandem_tensor *const *outputs,
                                 uint32_t output_count)
{
    struct call call;
    const enum tandem_status status =
        call_make(&call, context, device, op, inputs, input_count, outputs,
                  output_count);

    return status == TANDEM_OK ? call_run(&call) : status;
}

enum tandem_status tandem_run(struct tandem_context *context,
                              const struct tandem_op *op,
                              struct tandem_tensor *const *inputs,
                              uint32_t input_count,
                              struct tandem_tensor *const *outputs,
                              uint32_t output_count)
{
    return tandem_run_on(context, TANDEM_ANY_DEVICE, op, inputs, input_count,
                         outputs, output_count);
}
