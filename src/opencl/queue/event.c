/* SPDX-License-Identifier: Apache-2.0 */
/* Events: markers in a stream, waited for, followed and timed. */
#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

#define EVENT_MAGIC 0x65766e74u

static struct handle_pool events =
    HANDLE_POOL(struct tandem_event, EVENT_MAGIC);
/* The live events, for close. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tandem_event *first;

static void list_add(struct tandem_event *event)
{
    pthread_mutex_lock(&mutex);
    event->next = first;
    if (first != NULL)
        first->previous = event;
    first = event;
    pthread_mutex_unlock(&mutex);
}

static void list_remove(struct tandem_event *event)
{
    if (event->previous != NULL)
        event->previous->next = event->next;
    else
        first = event->next;
    if (event->next != NULL)
        event->next->previous = event->previous;
}

static enum tandem_status event_check(const struct tandem_event *event)
{
    if (!handle_live(&events, event))
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "event %p is NULL, destroyed or foreign",
                           (const void *)event);
    return device_check(event->device);
}

enum tandem_status event_record(struct tandem_stream *stream,
                                struct tandem_event **out_event)
{
    *out_event = NULL;
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    struct tandem_event *event = handle_new(&events);
    if (event == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                           "event_record: out of host memory");
    status = stream_mark(stream, &event->event);
    if (status != TANDEM_OK) {
        handle_free(&events, event);
        return status;
    }
    event->device = stream->device;
    event->stream = stream->id;
    event->serial = stream_issue(stream);
    event->profiling = (stream->flags & TANDEM_STREAM_PROFILING) != 0;
    list_add(event);
    *out_event = event;
    return TANDEM_OK;
}

static void release(struct tandem_event *event)
{
    clReleaseEvent(event->event);
    handle_free(&events, event);
}

void event_destroy(struct tandem_event *event)
{
    if (!handle_live(&events, event) || fork_detected())
        return;
    pthread_mutex_lock(&mutex);
    list_remove(event);
    pthread_mutex_unlock(&mutex);
    release(event);
}

void events_finish(struct tandem_device *device)
{
    pthread_mutex_lock(&mutex);
    for (struct tandem_event *event = first, *next; event != NULL;
         event = next) {
        next = event->next;
        if (event->device == device) {
            list_remove(event);
            release(event);
        }
    }
    pthread_mutex_unlock(&mutex);
}

/* Flushes the event's stream, if it still is, and says whether that has an
 * error. */
static enum tandem_status source_flush(struct tandem_event *event)
{
    struct tandem_stream *stream = stream_hold(event->device, event->stream);
    if (stream == NULL)
        return TANDEM_OK;
    enum tandem_status status =
        (enum tandem_status)atomic_load(&stream->status);
    if (status != TANDEM_OK)
        stream_tell(stream, status, "the event's stream");
    else if (atomic_load(&stream->flushed) < event->serial)
        status = stream_flush(stream);
    stream_leave(stream);
    return status;
}

/* Makes what an event's failure means known to its stream. */
static enum tandem_status event_failed(struct tandem_event *event, cl_int code)
{
    struct tandem_device *device = event->device;
    enum tandem_status status =
        status_from_cl(device, code, "the work before the event");
    struct tandem_stream *stream = stream_hold(device, event->stream);
    if (stream != NULL) {
        stream_fail(stream, status);
        stream_leave(stream);
    }
    return status;
}

enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns)
{
    cl_int code = CL_SUCCESS;
    enum tandem_status status = event_check(event);
    if (status == TANDEM_OK)
        status = source_flush(event);
    if (status != TANDEM_OK || atomic_load(&event->passed))
        return status;
    status = wait_event(event->device, event->event, timeout_ns, &code);
    if (status != TANDEM_OK)
        return status;
    if (code < 0)
        return event_failed(event, code);
    atomic_store(&event->passed, true);
    return TANDEM_OK;
}

enum tandem_status event_follow(struct tandem_stream *stream,
                                struct tandem_event *event)
{
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = event_check(event);
    if (status != TANDEM_OK)
        return status;
    if (event->device != stream->device)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "stream_wait_event: the event is another device's");
    if (event->stream == stream->id || atomic_load(&event->passed))
        return TANDEM_OK;
    status = source_flush(event);
    if (status != TANDEM_OK)
        return status;
    cl_int code =
        clEnqueueBarrierWithWaitList(stream->queue, 1, &event->event, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueBarrier");
    stream_issue(stream);
    return TANDEM_OK;
}

static enum tandem_status time_of(struct tandem_event *event, cl_ulong *out_ns)
{
    cl_int state = CL_QUEUED;
    cl_int code =
        clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                       sizeof(state), &state, NULL);
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return last_error_set(TANDEM_NOT_READY,
                           "event_elapsed_ns: an event has not passed");
    if (code == CL_SUCCESS && state < 0)
        return event_failed(event, state);
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_END,
                                       sizeof(*out_ns), out_ns, NULL);
    return status_from_cl(event->device, code, "clGetEventProfilingInfo");
}

enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                 struct tandem_event *end, uint64_t *out_ns)
{
    cl_ulong from = 0, to = 0;
    *out_ns = 0;
    enum tandem_status status = event_check(start);
    if (status == TANDEM_OK)
        status = event_check(end);
    if (status != TANDEM_OK)
        return status;
    if (start->device != end->device || start->stream != end->stream ||
        !start->profiling)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "event_elapsed_ns: the events are not of one stream "
                           "made with TANDEM_STREAM_PROFILING");
    status = time_of(start, &from);
    if (status == TANDEM_OK)
        status = time_of(end, &to);
    if (status == TANDEM_OK)
        *out_ns = to > from ? to - from : 0;
    return status;
}
