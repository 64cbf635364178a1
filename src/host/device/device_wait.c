/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for devices with deadlines and stream ownership; see device_wait.h.
 */
#include <config.h>

#include "host/device/device_wait.h"
#include "common/last_error.h"

/* The timeout for the work that is left on a stream after an error. */
#define RECOVER_NS UINT64_C(10000000000)
/* The hang timeout is extended by the predicted time of the pending work times
 * this factor, because work may take longer than predicted. */
#define BACKLOG_FACTOR 10

/* ---- limits ---- */

/* Converts WAIT_LIMIT to a point in time; returns other deadlines unchanged. */
static uint64_t deadline_find(const struct device *device, uint64_t deadline_ns)
{
    const struct tandem_context *context = device->context;
    double backlog;

    if (deadline_ns != WAIT_LIMIT)
        return deadline_ns;
    if (context->hang_ns == TANDEM_TIMEOUT_INFINITE)
        return TANDEM_TIMEOUT_INFINITE;
    backlog = BACKLOG_FACTOR * (device->busy_until_ns - context->now_ns);
    if (!(backlog > 0))
        backlog = 0;
    return backlog < 1e18 ? clock_deadline(context->hang_ns + (uint64_t)backlog)
                          : TANDEM_TIMEOUT_INFINITE;
}

/* Handles a wait that reached its deadline: marks the device as hung if the
 * deadline was WAIT_LIMIT.  Returns an error with its message set. */
static enum tandem_status wait_over(struct device *device, uint64_t deadline_ns)
{
    if (deadline_ns == WAIT_LIMIT)
        return device_hang(device);
    return last_error_set(TANDEM_NOT_READY, "%s: work is still under way",
                          device->label);
}

/* ---- holding ---- */

static void hold_begin(struct device *device)
{
    device->held = true;
    device->context->unlocks++;
    context_unlock(device->context);
}

static void hold_end(struct device *device)
{
    context_lock(device->context);
    device->held = false;
    pthread_cond_broadcast(&device->context->freed);
}

enum tandem_status stream_owner_wait(struct device *device,
                                     uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_find(device, deadline_ns);

    while (device->held) {
        if (device->state != DEVICE_OPEN)
            return last_error_set(TANDEM_DEVICE_LOST, "%s is lost",
                                  device->label);
        if (!context_sleep(device->context, deadline) && device->held)
            return wait_over(device, deadline_ns);
    }
    return TANDEM_OK;
}

/* ---- waiting ---- */

enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns)
{
    struct tandem_context *context = device->context;
    struct tandem_event *event = NULL;
    uint64_t deadline;
    enum tandem_status status;

    /* If no other thread uses the context, the caller's operation may block on
     * the stream itself.  With WAIT_LIMIT wait first, so that the operation is
     * not enqueued on a stream that hangs. */
    if (!device->busy || !(context->threaded || deadline_ns == WAIT_LIMIT))
        return TANDEM_OK;
    status = device->table->event_record(device->stream, &event);
    if (status != TANDEM_OK)
        return TANDEM_OK;
    deadline = deadline_find(device, deadline_ns);
    context->unlocks++;
    context_unlock(context);
    status = device->table->event_wait(event, clock_left(deadline));
    device->table->event_destroy(event);
    context_lock(context);
    return status == TANDEM_NOT_READY ? wait_over(device, deadline_ns)
                                      : TANDEM_OK;
}

enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_find(device, deadline_ns);
    enum tandem_status status = wait_free(device, deadline_ns);

    if (status != TANDEM_OK)
        return status;
    if (device->state != DEVICE_OPEN)
        return TANDEM_OK;
    if (device->async) {
        hold_begin(device);
        status = device->table->stream_synchronize(device->stream,
                                                   clock_left(deadline));
        hold_end(device);
    } else {
        status = device->table->stream_synchronize(device->stream,
                                                   TANDEM_TIMEOUT_INFINITE);
    }
    if (status == TANDEM_NOT_READY)
        return wait_over(device, deadline_ns);
    if (device->state != DEVICE_OPEN)
        return last_error_set(TANDEM_DEVICE_LOST, "%s is lost", device->label);
    if (status == TANDEM_OK) {
        device_waited(device);
        return TANDEM_OK;
    }
    device_mark_launches_unconfirmed(device);
    device->busy = false;
    return device_failed(device, status, "work");
}

enum tandem_status wait_download(struct device *device,
                                 struct tandem_buffer *buffer, void *target,
                                 uint64_t bytes, uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_find(device, deadline_ns);
    enum tandem_status status;

    hold_begin(device);
    status = device->table->download(device->stream, buffer, 0, target, bytes,
                                     0, clock_left(deadline));
    hold_end(device);
    if (status == TANDEM_NOT_READY)
        return wait_over(device, deadline_ns);
    if (device->state != DEVICE_OPEN)
        return last_error_set(TANDEM_DEVICE_LOST, "%s is lost", device->label);
    if (status != TANDEM_OK)
        return device_failed(device, status, "reading the tensor");
    device_waited(device);
    return TANDEM_OK;
}

bool wait_recover(struct device *device)
{
    enum tandem_status status;

    if (device->state != DEVICE_OPEN)
        return false;
    status = device->table->stream_query(device->stream);
    if (status == TANDEM_OK || status == TANDEM_NOT_READY)
        return false;
    device_store_async_error(device, status);
    if (status == TANDEM_DEVICE_LOST) {
        device_lose(device);
        return false;
    }
    hold_begin(device);
    device->table->stream_synchronize(device->stream, RECOVER_NS);
    status = device->table->stream_query(device->stream);
    hold_end(device);
    if (status == TANDEM_DEVICE_LOST)
        device_lose(device);
    return device->state == DEVICE_OPEN &&
           (status == TANDEM_OK || status == TANDEM_NOT_READY);
}
