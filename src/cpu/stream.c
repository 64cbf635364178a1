/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events.  Every operation completes before its call returns.  A
 * stream is therefore always idle, a recorded event is complete, and no wait
 * blocks.  May be called from any thread. */
#include "config.h"

#include <time.h>

#include "common/last_error.h"
#include "cpu/objects.h"

/* Allocates a stream or an event, and adds the object to a list of the device.
 * Returns NULL if memory is exhausted. */
static void *owned_new(struct handle_pool *pool, struct tandem_device *device,
                       struct owned **list)
{
    struct owned *object = handle_new(pool);
    if (object == NULL)
        return NULL;
    object->device = device;
    pthread_mutex_lock(&device->mutex);
    owned_link(list, object);
    pthread_mutex_unlock(&device->mutex);
    return object;
}

static void owned_free(struct handle_pool *pool, struct owned **list,
                       void *object)
{
    struct owned *owned = object;
    pthread_mutex_lock(&owned->device->mutex);
    owned_unlink(list, owned);
    pthread_mutex_unlock(&owned->device->mutex);
    handle_free(pool, object);
}

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    if (out_stream == NULL)
        return argument_error("stream_create: out_stream is NULL");
    *out_stream = NULL;
    enum tandem_status status = device_check(device);
    if (status != TANDEM_OK)
        return status;
    status = check_flags("stream_create", flags, TANDEM_STREAM_PROFILING);
    if (status != TANDEM_OK)
        return status;
    struct tandem_stream *stream =
        owned_new(&stream_pool, device, &device->streams);
    if (stream == NULL)
        return memory_error("stream_create: out of host memory");
    stream->flags = flags;
    *out_stream = stream;
    return TANDEM_OK;
}

void stream_destroy(struct tandem_stream *stream)
{
    if (handle_live(&stream_pool, stream))
        owned_free(&stream_pool, &stream->owned.device->streams, stream);
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    (void)timeout_ns;
    return stream_check(stream);
}

enum tandem_status stream_wait_event(struct tandem_stream *stream,
                                     struct tandem_event *event)
{
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = event_check(event);
    if (status == TANDEM_OK && event->owned.device != stream->owned.device)
        return argument_error("stream_wait_event: the event belongs to another "
                              "device than the stream");
    return status;
}

enum tandem_status event_record(struct tandem_stream *stream,
                                struct tandem_event **out_event)
{
    if (out_event == NULL)
        return argument_error("event_record: out_event is NULL");
    *out_event = NULL;
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    struct tandem_device *device = stream->owned.device;
    struct tandem_event *event =
        owned_new(&event_pool, device, &device->events);
    if (event == NULL)
        return memory_error("event_record: out of host memory");
    event->stream = stream;
    event->profiling = (stream->flags & TANDEM_STREAM_PROFILING) != 0;
    if (event->profiling) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        event->at_ns =
            (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    *out_event = event;
    return TANDEM_OK;
}

void event_destroy(struct tandem_event *event)
{
    if (handle_live(&event_pool, event))
        owned_free(&event_pool, &event->owned.device->events, event);
}

enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return event_check(event);
}

enum tandem_status event_callback(struct tandem_event *event,
                                  tandem_event_fn fn, void *user)
{
    enum tandem_status status = event_check(event);
    if (status != TANDEM_OK)
        return status;
    if (fn == NULL)
        return argument_error("event_callback: fn is NULL");
    fn(user, TANDEM_OK);
    return TANDEM_OK;
}

enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                    struct tandem_event *end, uint64_t *out_ns)
{
    if (out_ns == NULL)
        return argument_error("event_elapsed_ns: out_ns is NULL");
    *out_ns = 0;
    enum tandem_status status = event_check(start);
    if (status == TANDEM_OK)
        status = event_check(end);
    if (status != TANDEM_OK)
        return status;
    if (start->stream != end->stream || !start->profiling || !end->profiling)
        return argument_error("event_elapsed_ns: both events must be recorded "
                              "on one stream that has TANDEM_STREAM_PROFILING");
    if (end->at_ns < start->at_ns)
        return argument_error("event_elapsed_ns: the end event was recorded "
                              "before the start event");
    *out_ns = end->at_ns - start->at_ns;
    return TANDEM_OK;
}
