/* SPDX-License-Identifier: Apache-2.0 */
/* Implements waits for devices with deadlines; see device_wait.h. */
#include <config.h>

#include "host/device/device_wait.h"
#include "common/last_error.h"

/* Timeout of stream_recover for the work that is still on the stream. */
#define RECOVERY_TIMEOUT_NS UINT64_C(10000000000)
/* The hang timeout is extended by this factor times the predicted time of the
 * pending work, because work can take longer than predicted. */
#define BACKLOG_FACTOR 10

/* Converts HANG_DEADLINE to the clock_ns time at which a wait that starts now
 * ends.  Returns any other deadline unchanged. */
static uint64_t deadline_resolve(const struct device *device,
                                 uint64_t deadline_ns)
{
    const struct tandem_context *context = device->context;
    double backlog;

    if (deadline_ns != HANG_DEADLINE)
        return deadline_ns;
    if (context->hang_timeout_ns == TANDEM_TIMEOUT_INFINITE)
        return TANDEM_TIMEOUT_INFINITE;
    backlog = BACKLOG_FACTOR *
              (device->predicted_busy_until_ns - context->predicted_now_ns);
    if (!(backlog > 0))
        backlog = 0;
    return backlog < 1e18
               ? clock_deadline(context->hang_timeout_ns + (uint64_t)backlog)
               : TANDEM_TIMEOUT_INFINITE;
}

/* Sets the error message for a wait that reached its deadline and returns the
 * error.  If the deadline was HANG_DEADLINE, marks the device as hung. */
static enum tandem_status wait_timed_out(struct device *device,
                                         uint64_t deadline_ns)
{
    if (deadline_ns == HANG_DEADLINE)
        return device_mark_hung(device);
    return last_error_set(TANDEM_NOT_READY, "%s: work is still running",
                          device->label);
}

static void stream_acquire(struct device *device)
{
    device->stream_owned = true;
    device->context->unlock_epoch++;
    context_unlock(device->context);
}

static void stream_release(struct device *device)
{
    context_lock(device->context);
    device->stream_owned = false;
    pthread_cond_broadcast(&device->context->stream_released);
}

enum tandem_status stream_owner_wait(struct device *device,
                                     uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_resolve(device, deadline_ns);

    while (device->stream_owned) {
        if (device->state != DEVICE_OPEN)
            return device_lost_error(device);
        if (!context_wait_released(device->context, deadline) &&
            device->stream_owned)
            return wait_timed_out(device, deadline_ns);
    }
    return TANDEM_OK;
}

enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns)
{
    struct tandem_context *context = device->context;
    struct tandem_event *event = NULL;
    uint64_t deadline;
    enum tandem_status status;

    /* If no other thread uses the context, skip the wait, because the caller's
     * next operation on the stream is allowed to block.  With HANG_DEADLINE,
     * wait anyway, so that no operation is enqueued on a hung stream. */
    if (!device->busy || !(context->is_shared || deadline_ns == HANG_DEADLINE))
        return TANDEM_OK;
    status = device->vtable->event_record(device->stream, &event);
    if (status != TANDEM_OK)
        return TANDEM_OK;
    deadline = deadline_resolve(device, deadline_ns);
    context->unlock_epoch++;
    context_unlock(context);
    status = device->vtable->event_wait(event, clock_left(deadline));
    device->vtable->event_destroy(event);
    context_lock(context);
    return status == TANDEM_NOT_READY ? wait_timed_out(device, deadline_ns)
                                      : TANDEM_OK;
}

enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_resolve(device, deadline_ns);
    enum tandem_status status = stream_owner_wait_if_held(device, deadline_ns);

    if (status != TANDEM_OK)
        return status;
    if (device->state != DEVICE_OPEN)
        return TANDEM_OK;
    if (device->async)
        stream_acquire(device);
    status = device->vtable->stream_synchronize(
        device->stream,
        device->async ? clock_left(deadline) : TANDEM_TIMEOUT_INFINITE);
    if (device->async)
        stream_release(device);
    if (status == TANDEM_NOT_READY)
        return wait_timed_out(device, deadline_ns);
    if (device->state != DEVICE_OPEN)
        return device_lost_error(device);
    if (status == TANDEM_OK) {
        device_mark_idle(device);
        return TANDEM_OK;
    }
    device_mark_launches_unconfirmed(device);
    /* Marks a lost device, which may still run the work, while it is busy: its
     * memory is then not freed. */
    status = device_call_failed(device, status, "work");
    device->busy = false;
    return status;
}

enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_resolve(device, deadline_ns);
    enum tandem_status status;

    stream_acquire(device);
    status = device->vtable->download(device->stream, buffer, 0, target, bytes,
                                      0, clock_left(deadline));
    stream_release(device);
    if (status == TANDEM_NOT_READY)
        return wait_timed_out(device, deadline_ns);
    if (device->state != DEVICE_OPEN)
        return device_lost_error(device);
    if (status != TANDEM_OK)
        return device_call_failed(device, status, "reading the tensor");
    device_mark_idle(device);
    return TANDEM_OK;
}

enum tandem_status stream_recover(struct device *device,
                                  enum tandem_status error, bool *recovered)
{
    struct tandem_event *event = NULL;
    enum tandem_status status;

    if (*recovered || device->state != DEVICE_OPEN)
        return error;
    /* A stream with an error accepts no event, also while it has work. */
    status = device->vtable->event_record(device->stream, &event);
    if (status == TANDEM_OK) {
        device->vtable->event_destroy(event);
        return error;
    }
    device_store_async_error(device, status);
    if (status == TANDEM_DEVICE_LOST) {
        device_mark_lost(device);
        return error;
    }
    stream_acquire(device);
    status =
        device->vtable->stream_synchronize(device->stream, RECOVERY_TIMEOUT_NS);
    /* The first call has cleared the error unless the device is lost. */
    if (status != TANDEM_OK && status != TANDEM_NOT_READY)
        status = device->vtable->stream_synchronize(device->stream, 0);
    stream_release(device);
    if (status == TANDEM_DEVICE_LOST)
        device_mark_lost(device);
    *recovered = device->state == DEVICE_OPEN && status == TANDEM_OK;
    return *recovered ? TANDEM_OK : error;
}
