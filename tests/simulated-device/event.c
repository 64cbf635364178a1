/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the simulated GPU: a stream and a number of commands. Any thread
 * may call these functions; the device's mutex protects all data.
 */
#include "common/last_error.h"
#include "internal.h"

struct handle_pool event_pool = HANDLE_POOL(struct sim_event, 0x53494d45u);

enum tandem_status event_record(struct tandem_stream *handle,
                                struct tandem_event **out_event)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim_event *event;
    enum tandem_status status;

    if (!out_event)
        return argument_error("event_record: out_event is NULL");
    *out_event = NULL;
    status = stream_lock(handle, &stream);
    if (status != TANDEM_OK)
        return status;
    device = stream->device;
    event = handle_new(&event_pool);
    if (!event)
        return device_unlock(device, memory_error("event_record: no memory"));
    event->device = device;
    event->stream = stream;
    event->position = stream->enqueued;
    event->flags = stream->flags;
    LIST_INSERT_HEAD(&device->events, event, link);
    COUNT(device, events, 1);
    *out_event = (struct tandem_event *)event;
    return device_unlock(device, TANDEM_OK);
}

void event_release(struct sim_event *event)
{
    LIST_REMOVE(event, link);
    COUNT(event->device, events_destroyed, 1);
    handle_free(&event_pool, event);
}

/* Returns a live event of a device that is not lost, with its device locked. */
static enum tandem_status event_lock(struct tandem_event *handle,
                                     struct sim_event **out_event)
{
    struct sim_event *event = (struct sim_event *)handle;
    struct sim_device *device;

    if (!handle_live(&event_pool, event))
        return argument_error("simulated: event %p is NULL or was destroyed",
                              (void *)handle);
    *out_event = event;
    return device_lock((struct tandem_device *)event->device, &device);
}

void event_destroy(struct tandem_event *handle)
{
    struct sim_event *event = (struct sim_event *)handle;
    struct sim_device *device;

    if (!handle_live(&event_pool, event))
        return;
    device = event->device;
    pthread_mutex_lock(&device->mutex);
    event_release(event);
    pthread_mutex_unlock(&device->mutex);
}

/* Locked. */
static enum tandem_status event_reach(struct sim_event *event,
                                      uint64_t timeout_ns)
{
    return event->stream
               ? stream_reach(event->stream, event->position, timeout_ns)
               : TANDEM_OK;
}

enum tandem_status event_wait(struct tandem_event *handle, uint64_t timeout_ns)
{
    struct sim_event *event;
    enum tandem_status status = event_lock(handle, &event);

    if (status != TANDEM_OK)
        return status;
    status = wait_begin(event->device, timeout_ns);
    if (status == TANDEM_OK)
        status = event_reach(event, timeout_ns);
    return device_unlock(event->device, status);
}

/* Locked. */
static enum tandem_status elapsed(const struct sim_event *start,
                                  const struct sim_event *end, uint64_t *out_ns)
{
    if (!(start->flags & end->flags & TANDEM_STREAM_PROFILING) ||
        start->device != end->device || start->stream != end->stream ||
        end->position < start->position)
        return argument_error("event_elapsed_ns: start and end are not in this "
                              "order of one profiling stream");
    if (end->stream && end->stream->executed < end->position)
        return last_error_set(TANDEM_NOT_READY,
                              "event_elapsed_ns: end has not passed");
    *out_ns =
        (end->position - start->position) * end->device->script.elapsed_ns;
    return TANDEM_OK;
}

enum tandem_status event_elapsed_ns(struct tandem_event *start_handle,
                                    struct tandem_event *end_handle,
                                    uint64_t *out_ns)
{
    struct sim_event *start = (struct sim_event *)start_handle, *end;
    enum tandem_status status;

    if (!out_ns)
        return argument_error("event_elapsed_ns: out_ns is NULL");
    *out_ns = 0;
    if (!handle_live(&event_pool, start))
        return argument_error(
            "event_elapsed_ns: start is NULL or was destroyed");
    status = event_lock(end_handle, &end);
    if (status != TANDEM_OK)
        return status;
    return device_unlock(end->device, elapsed(start, end, out_ns));
}
