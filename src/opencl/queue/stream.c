/* SPDX-License-Identifier: Apache-2.0 */
/* Implements command numbers, sticky errors and waits of streams. */
#include "opencl/queue/stream.h"

#include <stdio.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/device/quirks.h"
#include "opencl/queue/pending_waits.h"

#define STREAM_MAGIC 0x7374726du

/* Guards the error messages of all streams (tandem_stream.message). */
static pthread_mutex_t message_mutex = PTHREAD_MUTEX_INITIALIZER;
struct handle_pool stream_handles =
    HANDLE_POOL(struct tandem_stream, STREAM_MAGIC);

bool stream_is_live(const struct tandem_stream *stream)
{
    return handle_live(&stream_handles, stream);
}

/* Returns `status` and sets the message to "WHAT failed: MESSAGE", where
 * MESSAGE is the message of the sticky error. */
static enum tandem_status report_error(struct tandem_stream *stream,
                                       enum tandem_status status,
                                       const char *what)
{
    if (status == TANDEM_OK)
        return status;
    pthread_mutex_lock(&message_mutex);
    last_error_set(status, "%s failed: %s", what, stream->message);
    pthread_mutex_unlock(&message_mutex);
    return status;
}

enum tandem_status stream_sticky_error(struct tandem_stream *stream,
                                       const char *what)
{
    return report_error(stream,
                        (enum tandem_status)atomic_load(&stream->status), what);
}

enum tandem_status stream_check(struct tandem_stream *stream)
{
    enum tandem_status status = handle_check(&stream_handles, stream, "stream",
                                             "a stream, or it was destroyed");
    if (status == TANDEM_OK)
        status = device_check(stream->device);
    return status == TANDEM_OK
               ? stream_sticky_error(stream, "earlier work of the stream")
               : status;
}

uint64_t stream_next_seqno(struct tandem_stream *stream)
{
    uint64_t seqno = atomic_load(&stream->issued_seqno) + 1;
    atomic_store_explicit(&stream->issued_seqno, seqno, memory_order_relaxed);
    return seqno;
}

enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status)
{
    pthread_mutex_lock(&message_mutex);
    snprintf(stream->message, sizeof(stream->message), "%s", last_error_get());
    pthread_mutex_unlock(&message_mutex);
    /* A failed kernel can leave arrival counters nonzero. Record this before
     * setting the status, because the stream can launch kernels as soon as
     * stream_synchronize has reset the status. */
    atomic_store(&stream->arrival_counters_are_zero, false);
    atomic_store(&stream->status, (uint32_t)status);
    pool_poison_writes(stream->device, stream->id,
                       atomic_load(&stream->completed_seqno), status);
    return status;
}

void stream_mark_completed(struct tandem_stream *stream, uint64_t seqno)
{
    if (seqno > atomic_load(&stream->completed_seqno))
        atomic_store_explicit(&stream->completed_seqno, seqno,
                              memory_order_relaxed);
    if (seqno == atomic_load(&stream->issued_seqno))
        atomic_store_explicit(&stream->pending_bytes, 0, memory_order_relaxed);
}

bool stream_trim_for_retry(struct tandem_stream *stream, cl_int code,
                           bool *retried)
{
    if (*retried ||
        (code != CL_MEM_OBJECT_ALLOCATION_FAILURE &&
         code != CL_OUT_OF_RESOURCES && code != CL_OUT_OF_HOST_MEMORY))
        return false;
    pool_trim(stream->device, 0);
    *retried = true;
    return true;
}

enum tandem_status stream_enqueue_marker(struct tandem_stream *stream,
                                         cl_event *out_event)
{
    cl_int code;
    bool retried = false;
    do
        code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, out_event);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code != CL_SUCCESS)
        *out_event = NULL;
    return status_from_cl(stream->device, code, "clEnqueueMarker");
}

enum tandem_status stream_flush(struct tandem_stream *stream)
{
    uint64_t issued = atomic_load(&stream->issued_seqno);
    /* Set flushed_seqno before clFlush: stream_drain in another thread lowers
     * flushed_seqno if it enqueues a marker that this clFlush can miss. */
    if (atomic_exchange(&stream->flushed_seqno, issued) == issued)
        return TANDEM_OK;
    cl_int code = clFlush(stream->queue);
    if (code == CL_SUCCESS)
        return TANDEM_OK;
    atomic_store(&stream->flushed_seqno, 0);
    return status_from_cl(stream->device, code, "clFlush");
}

/* ---- waits ---- */

/* Waits until the commands of the queue have ended, successfully or not.
 * Returns NOT_READY if limit_ns pass first, or DEVICE_LOST if a driver call
 * fails.  Sets no error message. */
static enum tandem_status queue_drain(cl_command_queue queue, uint64_t limit_ns)
{
    cl_event event = NULL;
    cl_int state = CL_QUEUED;
    if (clEnqueueMarkerWithWaitList(queue, 0, NULL, &event) != CL_SUCCESS)
        return TANDEM_DEVICE_LOST;
    cl_int code = clFlush(queue);
    if (code == CL_SUCCESS)
        code = poll_event(event, limit_ns, &state);
    clReleaseEvent(event);
    return code != CL_SUCCESS    ? TANDEM_DEVICE_LOST
           : state > CL_COMPLETE ? TANDEM_NOT_READY
                                 : TANDEM_OK;
}

/* Makes `status`, the failure of a command, the sticky error and waits until
 * the other commands have completed. The caller's wait began at start_ns and
 * has the timeout timeout_ns. Returns `status` if they complete, NOT_READY if
 * this timeout expires first, or else DEVICE_LOST. */
static enum tandem_status wait_failed(struct tandem_stream *stream,
                                      enum tandem_status status,
                                      uint64_t start_ns, uint64_t timeout_ns)
{
    struct tandem_device *device = stream->device;
    const uint64_t limit_ns = device_timeout_ns(device);
    uint64_t left_ns = timeout_ns;
    stream_fail(stream, status);
    if (status == TANDEM_DEVICE_LOST)
        return status;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE) {
        const uint64_t spent_ns = monotonic_ns() - start_ns;
        left_ns = spent_ns < timeout_ns ? timeout_ns - spent_ns : 0;
    }
    enum tandem_status drained =
        queue_drain(stream->queue, left_ns < limit_ns ? left_ns : limit_ns);
    if (drained == TANDEM_OK)
        return status;
    if (drained == TANDEM_NOT_READY && left_ns < limit_ns)
        return last_error_set(drained, "a command has failed, and later "
                                       "commands have not completed");
    atomic_store(&device->lost, true);
    last_error_set(TANDEM_DEVICE_LOST,
                   "%s: a command has failed, and the driver does not report "
                   "that the rest has completed; the device is lost: close it "
                   "and open another",
                   device->hardware->info.name);
    return stream_fail(stream, TANDEM_DEVICE_LOST);
}

enum tandem_status stream_confirm(struct tandem_stream *stream)
{
    pending_waits_settle(stream->id, atomic_load(&stream->issued_seqno) + 1);
    return stream_sticky_error(stream, "the stream's work");
}

enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns)
{
    struct tandem_device *device = stream->device;
    const uint64_t start_ns =
        timeout_ns != TANDEM_TIMEOUT_INFINITE ? monotonic_ns() : 0;
    cl_int code = CL_SUCCESS;
    enum tandem_status status = stream_flush(stream);
    if (status == TANDEM_OK)
        status = wait_event(device, event, timeout_ns, &code);
    if (status == TANDEM_NOT_READY)
        return status;
    if (status == TANDEM_OK)
        status = status_from_cl(device, code, "the stream's work");
    return status == TANDEM_OK
               ? stream_confirm(stream)
               : wait_failed(stream, status, start_ns, timeout_ns);
}

/* Enqueues a marker and sets *out_event to its event, for which the caller must
 * wait. If the timeout is infinite, the work is short, and clFinish reports
 * failed commands, calls the faster clFinish and sets *out_event to NULL. */
static enum tandem_status finish_enqueue(struct tandem_stream *stream,
                                         uint64_t timeout_ns,
                                         cl_event *out_event)
{
    *out_event = NULL;
    const uint32_t quirks = stream->device->hardware->quirks;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE ||
        (quirks & QUIRK_FINISH_REPORTS_ERRORS) == 0 ||
        !stream_wait_is_short(stream))
        return stream_enqueue_marker(stream, out_event);
    return status_from_cl(stream->device, clFinish(stream->queue), "clFinish");
}

enum tandem_status stream_drain(struct tandem_stream *stream,
                                uint64_t timeout_ns)
{
    uint64_t seqno = atomic_load(&stream->issued_seqno);
    cl_event event;
    if (atomic_load(&stream->completed_seqno) == seqno)
        return TANDEM_OK;
    enum tandem_status status = finish_enqueue(stream, timeout_ns, &event);
    if (status != TANDEM_OK)
        return wait_failed(stream, status, monotonic_ns(), timeout_ns);
    if (event != NULL) {
        atomic_store(&stream->flushed_seqno, seqno - 1);
        status = stream_wait(stream, event, timeout_ns);
        clReleaseEvent(event);
    } else {
        status = stream_confirm(stream);
    }
    if (status == TANDEM_OK)
        stream_mark_completed(stream, seqno);
    return status;
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    if (!stream_is_live(stream))
        return stream_check(stream);
    enum tandem_status status = device_check(stream->device);
    if (status != TANDEM_OK)
        return status;
    /* Wait for all commands, even if the stream has a sticky error. */
    status = stream_drain(stream, timeout_ns);
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                              "stream_synchronize: the stream's work has not "
                              "completed after %llu ns",
                              (unsigned long long)timeout_ns);
    enum tandem_status sticky = (enum tandem_status)atomic_exchange(
        &stream->status, (uint32_t)TANDEM_OK);
    if (sticky == TANDEM_OK)
        return TANDEM_OK;
    /* Commands of a lost device can still run; stream_destroy awaits them. */
    if (status != TANDEM_DEVICE_LOST)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    return report_error(stream, sticky, "the stream's work");
}
