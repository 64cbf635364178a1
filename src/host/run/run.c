/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operators: chooses a device, and the next one if the first fails; see
 * run.h. */
#include <config.h>

#include "host/run/run.h"
#include "common/last_error.h"
#include "common/struct_size.h"
#include "host/run/launch.h"
#include "host/run/placement.h"
#include "host/run/prepared_cache.h"
#include "host/device/stream.h"

#include <stdio.h>

static void observer_call(struct tandem_context *context,
                          struct placement_decision *decision, bool after)
{
    struct tandem_explanation explanation;
    tandem_observer_fn observer;
    void *user;

    if (!context->is_observed)
        return;
    explanation_fill(context, decision, &explanation);
    pthread_mutex_lock(&context->mutex);
    observer = context->observer;
    user = context->observer_user;
    pthread_mutex_unlock(&context->mutex);
    if (observer != NULL)
        observer(user, &explanation, after);
}

/* Runs the call on the device: moves the operands, launches the operator, and
 * measures the time if the context asks for it.  May wait. */
static enum tandem_status call_execute(struct call *call,
                                       struct placement_decision *decision,
                                       struct device *device)
{
    struct tandem_context *context = call->context;
    const bool measure = context->time_operators;
    struct enqueued enqueued;
    uint64_t start = 0;
    enum tandem_status status = device_open(device);

    if (status != TANDEM_OK)
        return status;
    decision->chosen = device->id;
    observer_call(context, decision, false);
    if (measure)
        start = clock_ns();
    status = call_launch(call, decision, device, &enqueued);
    if (status != TANDEM_OK)
        return status;
    chooser_note_launch(decision, device);
    launch_note(&decision->request, device, enqueued.launch);
    if (measure) {
        status = wait_idle(device, HANG_DEADLINE);
        if (status != TANDEM_OK)
            device_store_async_error(device, status);
        decision->measured_ns = (double)(clock_ns() - start);
    }
    observer_call(context, decision, true);
    return TANDEM_OK;
}

static void candidate_exclude(struct call *call,
                              struct placement_decision *decision,
                              const struct device *device,
                              enum tandem_status status)
{
    decision->failed |= 1u << device->id;
    decision->status[device->id] = (uint8_t)status;
    log_message(&call->context->log,
                status == TANDEM_UNSUPPORTED ? TANDEM_LOG_DEBUG
                                             : TANDEM_LOG_WARNING,
                "%s: not run on %s: %s", call->row->name, device->label,
                last_error_get());
}

/* Returns true if the device can run the call without compiling code first.
 * Otherwise, a device that supports the call starts to compile in the
 * background and is marked in decision->must_compile.  A device that does not
 * support the call or fails to compile is excluded from the call. */
static bool candidate_is_ready(struct call *call,
                               struct placement_decision *decision,
                               struct device *device)
{
    const bool core = device->info.caps & TANDEM_CAP_CORE_OPERATORS;
    enum tandem_status status;

    if ((device->is_zero_copy && core && !device->jit_compiles) ||
        (call->entry->ready_devices >> device->id & 1))
        return true;
    status = call_make_ready(call, device);
    if (status == TANDEM_OK) {
        call->entry->ready_devices |= 1u << device->id;
        return true;
    }
    if (status == TANDEM_NOT_READY)
        decision->must_compile |= 1u << device->id;
    else if (!device_rejects_options(device))
        candidate_exclude(call, decision, device, status);
    return false;
}

/* Returns an error if cl-probe found that the required device computes this
 * operator wrong, because the call would silently return wrong results. */
static enum tandem_status
forced_device_check_blocked(const struct call *call,
                            const struct placement_decision *decision,
                            const struct device *device)
{
    if (!(decision->failed >> device->id & 1))
        return TANDEM_OK;
    return last_error_set(
        TANDEM_UNSUPPORTED,
        "%s: %s failed verification (%.256s): use another device, or update "
        "its driver and run cl-probe --verify again",
        call->row->name, device->label,
        device->profile_path != NULL ? device->profile_path : "");
}

/* Returns the error of a call that no device could run.  `last` is the error of
 * the device that was tried last, with its message set, or TANDEM_NO_DEVICE if
 * no device was tried.  If a device could not be opened, its error is the
 * cause of this call and of later ones. */
static enum tandem_status
no_device_fail(const struct call *call,
               const struct placement_decision *decision,
               enum tandem_status last)
{
    const struct tandem_context *context = call->context;

    if (last != TANDEM_NO_DEVICE && last != TANDEM_UNSUPPORTED)
        return last;
    for (uint32_t i = 0; i < context->device_count; i++) {
        if (context->devices[i]->state == DEVICE_FAILED)
            return device_open(context->devices[i]);
    }
    if (last != TANDEM_NO_DEVICE)
        return last;
    if (context->device_count == 0)
        return last_error_set(last, "%s: there is no device: %s",
                              call->row->name,
                              context->load_error_count > 0
                                  ? context->load_errors[0]
                                  : "the plugins that are loaded have none");
    if (decision->failed != 0)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: no device supports it with these operands%s", call->row->name,
            call->context->op_blocked[call->op->id] != 0
                ? ", except one that failed verification by cl-probe"
                : "");
    return last_error_set(last, "%s: no usable device is left",
                          call->row->name);
}

/* Updates the operands' locations after a failed launch.  Returns true if all
 * inputs can still be read.  Keeps the error message of the failed launch. */
static bool inputs_are_readable(struct placement_decision *decision,
                                enum tandem_status failure)
{
    char message[512];
    bool readable;

    snprintf(message, sizeof(message), "%s", last_error_get());
    readable = request_locate_operands(&decision->request) == TANDEM_OK;
    last_error_set(failure, "%s", message);
    return readable;
}

static enum tandem_status
call_run_on_fastest(struct call *call, struct placement_decision *decision)
{
    struct tandem_context *context = call->context;
    enum tandem_status status = TANDEM_NO_DEVICE;

    for (;;) {
        struct device *device =
            chooser_pick(context, decision, context->usable);

        if (device == NULL && decision->must_compile != 0) {
            /* No device is ready, so choose one that must compile first. */
            const uint32_t must_compile = decision->must_compile;

            decision->must_compile = 0;
            device =
                chooser_pick(context, decision, must_compile & context->usable);
        } else if (device != NULL &&
                   !candidate_is_ready(call, decision, device)) {
            if (device_rejects_options(device))
                return device_open(device);
            continue;
        }
        if (device == NULL)
            return no_device_fail(call, decision, status);
        status = call_execute(call, decision, device);
        if (status == TANDEM_OK || status == TANDEM_INVALID_ARGUMENT)
            return status;
        candidate_exclude(call, decision, device, status);
        if (device->state == DEVICE_FAILED)
            status = TANDEM_NO_DEVICE; /* see no_device_fail */
        if (decision->request.operand_count == 0)
            return status; /* operands_relock failed */
        /* Devices may have been lost, and operands moved. */
        decision->predicted = 0;
        if (!inputs_are_readable(decision, status))
            return status;
    }
}

/* Returns true if the expected next reader needs the output on a device. */
static bool output_leaves_host(const struct operand *operand)
{
    return operand->next_reader != 0 &&
           !(operand->host_accessible >> (operand->next_reader - 1) & 1);
}

/* Takes the host fast path: if all inputs are on the host and the device that
 * computes there is the fastest, launches the call at once.  Most small
 * operators take this path.  Returns false if the caller must choose a device
 * instead. */
static bool host_fast_path_run(struct call *call,
                               struct placement_decision *decision,
                               enum tandem_status *out_status)
{
    struct tandem_context *context = call->context;
    const struct placement_request *request = &decision->request;
    struct device *host_device = host_fast_path_device(context, call->entry);
    struct enqueued enqueued = {.recovered = true};
    struct run_time time;

    if (host_device == NULL || context->time_operators)
        return false;
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct operand *operand = &request->operands[i];

        if (operand->storage->buffers[host_device->id] == NULL ||
            operand->host_writers != 0 || operand->storage->host_used != 0 ||
            operand->storage->migrated_to != 0 || output_leaves_host(operand) ||
            (operand->read && !(operand->current & HOST_BIT)))
            return false;
    }
    time = chooser_predict_run_time(&request->workload, &call->entry->run_cost,
                                    host_device);
    decision->predictions[host_device->id] = (struct prediction){
        .run = time, .total_ns = time.launch_ns + time.execute_ns};
    decision->predicted = 1u << host_device->id;
    decision->chosen = host_device->id;
    observer_call(context, decision, false);
    if (call_enqueue(call, host_device, &enqueued) != TANDEM_OK) {
        decision->predicted = 0;
        decision->chosen = TANDEM_ANY_DEVICE;
        return false;
    }
    launch_note(request, host_device, enqueued.launch);
    decision->unclocked_ns += time.launch_ns + time.execute_ns;
    observer_call(context, decision, true);
    *out_status = TANDEM_OK;
    return true;
}

/* Runs the call on any device, unless `forced` is not NULL. */
static enum tandem_status call_run_locked(struct call *call,
                                          struct placement_decision *decision,
                                          struct device *forced)
{
    enum tandem_status status = TANDEM_OK;

    if (forced == NULL && host_fast_path_run(call, decision, &status))
        return status;
    virtual_clock_add(call->context, decision->unclocked_ns);
    decision->unclocked_ns = 0;
    if (forced == NULL)
        return call_run_on_fastest(call, decision);
    chooser_predict(decision, forced);
    status = forced_device_check_blocked(call, decision, forced);
    return status == TANDEM_OK ? call_execute(call, decision, forced) : status;
}

enum tandem_status call_run(struct call *call)
{
    struct tandem_context *context = call->context;
    const struct float_env host = float_env_enter();
    struct placement_decision own, *decision = placement_decision_get(context);
    struct device *forced;
    enum tandem_status status;

    if (decision == NULL) {
        decision = &own;
        own.unclocked_ns = 0;
    }
    context_note_thread(context);
    status = call_prepare_decision(call, decision, &forced);
    if (status == TANDEM_OK) {
        status = call_run_locked(call, decision, forced);
        call_release(call, decision);
    }
    if (status != TANDEM_OK)
        decision->serial = 0;
    float_env_leave(host);
    return status;
}

/* Reads the options, which may be NULL or of an older version of the struct. */
static enum tandem_status options_read(const struct tandem_run_options *from,
                                       uint32_t *out_device)
{
    enum tandem_status status;

    *out_device = TANDEM_ANY_DEVICE;
    if (from == NULL)
        return TANDEM_OK;
    status = input_struct_check("run: options", "tandem_run_options", from,
                                sizeof(*from), sizeof(*from));
    if (status == TANDEM_OK)
        status = check_flags("run", from->flags, 0);
    if (status == TANDEM_OK)
        *out_device = from->device;
    return status;
}

enum tandem_status
tandem_run(struct tandem_context *context, const struct tandem_op *op,
           struct tandem_tensor *const *inputs, uint32_t input_count,
           struct tandem_tensor *const *outputs, uint32_t output_count,
           const struct tandem_run_options *options)
{
    struct call call;
    uint32_t device;
    enum tandem_status status = options_read(options, &device);

    if (status == TANDEM_OK)
        status = call_init(&call, context, device, op, inputs, input_count,
                           outputs, output_count);
    return status == TANDEM_OK ? call_run(&call) : status;
}
