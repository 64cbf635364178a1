/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs operators: chooses a device and tries the next one after a failure; see
 * run.h.  The caller of a static function must hold the context's mutex.
 */
#include <config.h>

#include "host/run/run.h"
#include "common/last_error.h"
#include "host/run/call_cache.h"
#include "host/device/device_wait.h"

#include <stdio.h>
#include <string.h>

static void observers_call(struct call *call, struct record *record, bool after)
{
    struct tandem_context *context = call->context;
    struct tandem_explanation explanation;

    explanation_fill(context, record, &explanation);
    if (!after)
        explanation.measured_ns = 0;
    context->observer(context->observer_user, &explanation, after);
}

/* Runs the call on the device: moves operands, launches, and measures the time
 * if the context asks for it.  May wait. */
static enum tandem_status call_execute(struct call *call, struct record *record,
                                       struct device *device)
{
    struct tandem_context *context = call->context;
    const bool measure = context->time_operators;
    uint64_t start = 0;
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    record->chosen = device->id;
    if (context->observer != NULL)
        observers_call(call, record, false);
    if (measure)
        start = clock_ns();
    status = call_launch(call, record, device);
    if (status != TANDEM_OK)
        return status;
    call_launched(record, device);
    if (measure) {
        status = wait_idle(device, WAIT_LIMIT);
        if (status != TANDEM_OK)
            device_store_async_error(device, status);
        record->measured_ns = (double)(clock_ns() - start);
    }
    if (context->observer != NULL)
        observers_call(call, record, true);
    return TANDEM_OK;
}

/* Excludes a device that could not run the call and logs the reason. */
static void candidate_drop(struct call *call, struct record *record,
                           const struct device *device,
                           enum tandem_status status)
{
    record->failed |= 1u << device->id;
    record->status[device->id] = (uint8_t)status;
    log_message(
        &call->context->log,
        status == TANDEM_UNSUPPORTED ? TANDEM_LOG_DEBUG : TANDEM_LOG_WARNING,
        "%s: not on %s: %s", call->row->name, device->label, message_get());
}

/* Returns true if the device supports the call and need not compile first.
 * Otherwise excludes the device, or marks it as not ready and starts the
 * compilation in the background. */
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

/* Fails if the forced device is blocked because it computes the operator wrong.
 * Running anyway would give wrong results silently. */
static enum tandem_status rejection_check(const struct call *call,
                                          const struct record *record,
                                          const struct device *device)
{
    if (!(record->failed >> device->id & 1))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_UNSUPPORTED,
        "%s: %s computes it wrong, as cl-probe found (%.256s): "
        "use another device, or mend its driver and run "
        "cl-probe --verify again",
        call->row->name, device->label,
        device->profile != NULL ? device->profile : "");
}

/* Returns the error after all devices failed: `last`, whose message is set, or,
 * if `last` is TANDEM_NO_DEVICE, the reason why no device was tried. */
static enum tandem_status call_fail(const struct call *call,
                                    const struct record *record,
                                    enum tandem_status last)
{
    if (last != TANDEM_NO_DEVICE)
        return last;
    if (record->failed != 0)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: no device serves it with these operands%s",
                              call->row->name,
                              call->context->rejecting[call->op->id] != 0
                                  ? ", but for one that computes it wrong, as "
                                    "cl-probe found"
                                  : "");
    return last_error_set(last, "%s: no device is left to run it",
                          call->row->name);
}

/* Updates the operand locations after a failure.  Returns true if all inputs
 * can still be read.  Preserves the error message of the failure. */
static bool inputs_kept(struct record *record, enum tandem_status failure)
{
    char message[512];
    bool kept;

    snprintf(message, sizeof(message), "%s", message_get());
    kept = query_locate(&record->query) == TANDEM_OK;
    last_error_set(failure, "%s", message);
    return kept;
}

/* Runs the call on the fastest device that can run it. */
static enum tandem_status call_place(struct call *call, struct record *record,
                                     struct judged *judged)
{
    struct tandem_context *context = call->context;
    const uint64_t unlocks = context->unlocks;
    enum tandem_status status = TANDEM_NO_DEVICE;

    for (;;) {
        struct device *device = chooser_pick(context, record, context->usable);

        if (device == NULL && record->unready != 0) {
            /* No ready device is left, so wait for the compilation. */
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
        if (unlocks == context->unlocks)
            continue;
        /* The mutex was released: another call may have replaced the cache
         * entry, and devices may be lost. */
        judged = NULL;
        record->predicted = 0;
        if (!inputs_kept(record, status))
            return status;
    }
}

/* Returns true if the expected next reader cannot use the host copy. */
static bool leaves_home(const struct operand *operand)
{
    return operand->reader != 0 &&
           !(operand->home >> (operand->reader - 1) & 1);
}

/* Host fast path, which most small operators take: launches the call at once if
 * the inputs are on the host and no device can beat the one that computes in
 * host memory.  Returns false if the caller must use call_place instead. */
static bool host_fast_path_run(struct call *call, struct record *record,
                               struct judged *judged,
                               enum tandem_status *out_status)
{
    struct tandem_context *context = call->context;
    const struct query *query = &record->query;
    struct device *home = judged_home(context, judged);
    struct prediction *prediction;

    if (home == NULL || context->time_operators || context->observer != NULL)
        return false;
    for (uint32_t i = 0; i < query->operand_count; i++) {
        const struct operand *operand = &query->operands[i];

        if (operand->storage->buffers[home->id] == NULL ||
            operand->writer != 0 || operand->storage->host_used != 0 ||
            operand->storage->moved != 0 || leaves_home(operand) ||
            (operand->read && !(operand->current & HOST_BIT)))
            return false;
    }
    if (call_launch_once(call, home) != TANDEM_OK)
        return false;
    home->clean = ++home->sequence;
    prediction = &record->predictions[home->id];
    memset(prediction, 0, sizeof(*prediction));
    prediction->launch_ns = judged->launch_ns;
    prediction->execute_ns = judged->execute_ns;
    prediction->total_ns = judged->launch_ns + judged->execute_ns;
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
    struct record *record, own;
    struct judged *judged;
    struct device *forced;
    enum tandem_status status;

    record = record_get(context);
    if (record == NULL) {
        record = &own;
        own.context = NULL;
    }
    context_lock(context);
    status = call_start(call, record, &forced, &judged);
    if (status == TANDEM_OK && forced == NULL) {
        if (judged == NULL ||
            !host_fast_path_run(call, record, judged, &status))
            status = call_place(call, record, judged);
    } else if (status == TANDEM_OK) {
        chooser_predict(record, forced);
        status = record->failed != 0 ? rejection_check(call, record, forced)
                                     : TANDEM_OK;
        if (status == TANDEM_OK)
            status = call_execute(call, record, forced);
    }
    /* Another call may replace the cache entry before this one is explained. */
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
    const enum tandem_status status = call_make(
        &call, context, device, op, inputs, input_count, outputs, output_count);

    return status == TANDEM_OK ? call_run(&call) : status;
}

enum tandem_status
tandem_run(struct tandem_context *context, const struct tandem_op *op,
           struct tandem_tensor *const *inputs, uint32_t input_count,
           struct tandem_tensor *const *outputs, uint32_t output_count)
{
    return tandem_run_on(context, TANDEM_ANY_DEVICE, op, inputs, input_count,
                         outputs, output_count);
}
