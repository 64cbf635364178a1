/* SPDX-License-Identifier: Apache-2.0 */
/* Implements events; see event.h. */
#include "opencl/queue/event.h"

#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/pending_waits.h"
#include "opencl/queue/stream_lifecycle.h"

#define EVENT_MAGIC 0x65766e74u

static struct handle_pool events =
    HANDLE_POOL(struct tandem_event, EVENT_MAGIC);
/* Guards the list of all events that have not been destroyed. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tandem_event *first_event;

static void list_add(struct tandem_event *event)
{
    pthread_mutex_lock(&mutex);
    event->next = first_event;
    event->link = &first_event;
    if (first_event != NULL)
        first_event->link = &event->next;
    first_event = event;
    pthread_mutex_unlock(&mutex);
}

static void list_remove(struct tandem_event *event)
{
    *event->link = event->next;
    if (event->next != NULL)
        event->next->link = event->link;
}

enum tandem_status event_check(const struct tandem_event *event)
{
    enum tandem_status status =
        handle_check(&events, event, "event", "an event, or it was destroyed");
    return status == TANDEM_OK ? device_check(event->device) : status;
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
        return memory_error("event_record: out of host memory");
    status = stream_enqueue_marker(stream, &event->event);
    if (status != TANDEM_OK) {
        handle_free(&events, event);
        return status;
    }
    event->device = stream->device;
    event->stream = stream->id;
    event->seqno = stream_next_seqno(stream);
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
    for (struct tandem_event *event = first_event, *next; event != NULL;
         event = next) {
        next = event->next;
        if (event->device == device) {
            list_remove(event);
            release(event);
        }
    }
    pthread_mutex_unlock(&mutex);
}

/* Flushes the event's stream, unless the stream was destroyed or has a sticky
 * error. Returns the sticky error. */
static enum tandem_status flush_stream(struct tandem_event *event)
{
    struct tandem_stream *stream = stream_acquire(event->device, event->stream);
    if (stream == NULL)
        return TANDEM_OK;
    enum tandem_status status =
        stream_sticky_error(stream, "the event's stream");
    if (status == TANDEM_OK &&
        atomic_load(&stream->flushed_seqno) < event->seqno)
        status = stream_flush(stream);
    stream_release(stream);
    return status;
}

/* Makes the event's error `code` the sticky error of the event's stream. */
static enum tandem_status event_failed(struct tandem_event *event, cl_int code)
{
    struct tandem_device *device = event->device;
    enum tandem_status status =
        status_from_cl(device, code, "the work before the event");
    struct tandem_stream *stream = stream_acquire(device, event->stream);
    if (stream != NULL) {
        stream_fail(stream, status);
        stream_release(stream);
    }
    return status;
}

/* Waits in the driver and records a failure. */
static enum tandem_status wait_and_record(struct tandem_event *event,
                                          uint64_t timeout_ns)
{
    struct pending_wait wait;
    cl_int code = CL_SUCCESS;
    pending_wait_begin(&wait, event->stream, event->seqno);
    enum tandem_status status =
        wait_event(event->device, event->event, timeout_ns, &code);
    if (status == TANDEM_OK && code < 0)
        status = event_failed(event, code);
    pending_wait_end(&wait);
    return status;
}

enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns)
{
    enum tandem_status status = event_check(event);
    return status == TANDEM_OK ? event_wait_live(event, timeout_ns) : status;
}

enum tandem_status event_wait_live(struct tandem_event *event,
                                   uint64_t timeout_ns)
{
    enum tandem_status status = flush_stream(event);
    if (status != TANDEM_OK || atomic_load(&event->completed))
        return status;
    status = wait_and_record(event, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    /* Another thread can have recorded the failure of an earlier command. */
    pending_waits_settle(event->stream, event->seqno);
    status = flush_stream(event);
    if (status == TANDEM_OK)
        atomic_store(&event->completed, true);
    return status;
}

enum tandem_status event_enqueue_wait(struct tandem_stream *stream,
                                      struct tandem_event *event)
{
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = event_check(event);
    if (status != TANDEM_OK)
        return status;
    if (event->device != stream->device)
        return argument_error("stream_wait_event: the event belongs to another "
                              "device than the stream");
    if (event->stream == stream->id || atomic_load(&event->completed))
        return TANDEM_OK;
    status = flush_stream(event);
    if (status != TANDEM_OK)
        return status;
    cl_int code =
        clEnqueueBarrierWithWaitList(stream->queue, 1, &event->event, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueBarrier");
    stream_next_seqno(stream);
    return TANDEM_OK;
}

static enum tandem_status end_time(struct tandem_event *event, cl_ulong *out_ns)
{
    cl_int state = CL_QUEUED;
    cl_int code = event_get_state(event->event, &state);
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return last_error_set(TANDEM_NOT_READY,
                              "event_elapsed_ns: event %p has not completed",
                              (void *)event);
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
        return argument_error("event_elapsed_ns: the events must belong to one "
                              "stream with TANDEM_STREAM_PROFILING");
    status = end_time(start, &from);
    if (status == TANDEM_OK)
        status = end_time(end, &to);
    if (status == TANDEM_OK)
        *out_ns = to > from ? to - from : 0;
    return status;
}
