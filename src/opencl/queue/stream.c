/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order queues, their errors, and whose memory waits for whom. */
#include "opencl/memory/deferred_release.h"
#include "opencl/device/quirks.h"
#include "opencl/queue/readback_buffer.h"
#include "opencl/queue/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/device/cl_status.h"

#define STREAM_MAGIC 0x7374726du

/* Guards the streams' messages, which other threads may leave and read. */
static pthread_mutex_t message_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_pool streams =
    HANDLE_POOL(struct tandem_stream, STREAM_MAGIC);

bool stream_live(const struct tandem_stream *stream)
{
    return handle_live(&streams, stream);
}

enum tandem_status stream_check(struct tandem_stream *stream)
{
    if (!handle_live(&streams, stream))
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "stream %p is NULL, destroyed or foreign",
                           (void *)stream);
    enum tandem_status status = device_check(stream->device);
    if (status != TANDEM_OK)
        return status;
    status = (enum tandem_status)atomic_load_explicit(&stream->status,
                                                      memory_order_relaxed);
    return status == TANDEM_OK
               ? status
               : stream_tell(stream, status, "earlier work of the stream");
}

enum tandem_status stream_tell(struct tandem_stream *stream,
                               enum tandem_status status, const char *what)
{
    pthread_mutex_lock(&message_mutex);
    last_error_set(status, "%s failed: %s", what, stream->message);
    pthread_mutex_unlock(&message_mutex);
    return status;
}

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    cl_int code = CL_SUCCESS;
    *out_stream = NULL;
    struct tandem_stream *stream = handle_new(&streams);
    if (stream == NULL)
        return last_error_set(TANDEM_OUT_OF_MEMORY,
                           "stream_create: out of host memory");
    cl_command_queue_properties properties =
        (flags & TANDEM_STREAM_PROFILING) != 0 ? CL_QUEUE_PROFILING_ENABLE : 0;
    stream->queue = clCreateCommandQueue(device->context, device->hardware->id,
                                         properties, &code);
    if (code != CL_SUCCESS) {
        handle_free(&streams, stream);
        return status_from_cl(device, code, "clCreateCommandQueue");
    }
    stream->device = device;
    stream->flags = flags;
    stream->users = 1;
    staging_start(&stream->staging);
    pthread_mutex_lock(&device->mutex);
    stream->id = ++device->next_stream_id;
    stream->next = device->streams;
    if (stream->next != NULL)
        stream->next->previous = stream;
    device->streams = stream;
    pthread_mutex_unlock(&device->mutex);
    *out_stream = stream;
    return TANDEM_OK;
}

uint64_t stream_issue(struct tandem_stream *stream)
{
    uint64_t serial =
        atomic_load_explicit(&stream->issued, memory_order_relaxed) + 1;
    atomic_store_explicit(&stream->issued, serial, memory_order_relaxed);
    return serial;
}

enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status)
{
    pthread_mutex_lock(&message_mutex);
    snprintf(stream->message, sizeof(stream->message), "%s", message_get());
    pthread_mutex_unlock(&message_mutex);
    /* A kernel may have ended between.  Before the status: whoever takes that
     * may launch again. */
    atomic_store(&stream->counters_clear, false);
    atomic_store(&stream->status, (uint32_t)status);
    pool_poison(stream->device, stream->id, atomic_load(&stream->completed),
                status);
    return status;
}

void stream_passed(struct tandem_stream *stream, uint64_t serial)
{
    if (serial > atomic_load_explicit(&stream->completed, memory_order_relaxed))
        atomic_store_explicit(&stream->completed, serial, memory_order_relaxed);
    if (serial == atomic_load_explicit(&stream->issued, memory_order_relaxed))
        atomic_store_explicit(&stream->pending, 0, memory_order_relaxed);
}

bool stream_relieve(struct tandem_stream *stream, cl_int code)
{
    if (code != CL_MEM_OBJECT_ALLOCATION_FAILURE &&
        code != CL_OUT_OF_RESOURCES && code != CL_OUT_OF_HOST_MEMORY)
        return false;
    pool_trim(stream->device, 0);
    return true;
}

enum tandem_status stream_mark(struct tandem_stream *stream,
                               cl_event *out_event)
{
    cl_int code =
        clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, out_event);
    if (code != CL_SUCCESS && stream_relieve(stream, code))
        code = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, out_event);
    if (code != CL_SUCCESS)
        *out_event = NULL;
    return status_from_cl(stream->device, code, "clEnqueueMarker");
}

enum tandem_status stream_flush(struct tandem_stream *stream)
{
    uint64_t issued = atomic_load(&stream->issued);
    /* Noted before it is done, as finish takes the note back for a marker that
     * another thread's flush may not have seen. */
    if (atomic_exchange(&stream->flushed, issued) == issued)
        return TANDEM_OK;
    cl_int code = clFlush(stream->queue);
    if (code == CL_SUCCESS)
        return TANDEM_OK;
    atomic_store(&stream->flushed, 0);
    return status_from_cl(stream->device, code, "clFlush");
}

/* ---- waits ---- */

/* After a wait has failed: what is under way must end all the same before
 * anyone may say that it has.  NOT_READY where left_ns ran out: the error stays
 * on the stream for the next wait. */
static enum tandem_status drain(struct tandem_stream *stream,
                                enum tandem_status status, uint64_t left_ns)
{
    struct tandem_device *device = stream->device;
    const uint64_t limit_ns = device_timeout_ns(device);
    enum tandem_status drained = command_queue_drain(
        stream->queue, left_ns < limit_ns ? left_ns : limit_ns);
    if (drained == TANDEM_OK)
        return status;
    if (drained == TANDEM_NOT_READY && left_ns < limit_ns)
        return last_error_set(drained,
                           "work has failed, and some behind it is under way");
    if (drained == TANDEM_NOT_READY)
        atomic_store(&device->stuck, true);
    atomic_store(&device->lost, true);
    return stream_fail(
        stream, last_error_set(TANDEM_DEVICE_LOST,
                            "%s: work has failed, and the driver does not say "
                            "that the rest has ended; the device is lost: "
                            "close it and open another",
                            device->hardware->info.name));
}

/* A failure that a wait found. */
static enum tandem_status wait_failed(struct tandem_stream *stream,
                                      enum tandem_status status,
                                      uint64_t start_ns, uint64_t timeout_ns)
{
    stream_fail(stream, status);
    if (status == TANDEM_DEVICE_LOST)
        return status;
    if (timeout_ns == TANDEM_TIMEOUT_INFINITE)
        return drain(stream, status, timeout_ns);
    const uint64_t spent_ns = wait_clock() - start_ns;
    return drain(stream, status,
                 spent_ns < timeout_ns ? timeout_ns - spent_ns : 0);
}

enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns)
{
    struct tandem_device *device = stream->device;
    const uint64_t start_ns =
        timeout_ns != TANDEM_TIMEOUT_INFINITE ? wait_clock() : 0;
    cl_int code = CL_SUCCESS;
    enum tandem_status status = stream_flush(stream);
    if (status == TANDEM_OK)
        status = wait_event(device, event, timeout_ns, &code);
    if (status == TANDEM_NOT_READY)
        return status;
    if (status == TANDEM_OK)
        status = status_from_cl(device, code, "the stream's work");
    return status == TANDEM_OK
               ? status
               : wait_failed(stream, status, start_ns, timeout_ns);
}

/* Uses a marker, because clFinish does not report failed commands with every
 * driver and has no timeout.  Where clFinish does report them, it is the
 * fastest wait for short work. */
static enum tandem_status finish_enqueue(struct tandem_stream *stream,
                                         uint64_t timeout_ns,
                                         cl_event *out_event)
{
    *out_event = NULL;
    const uint32_t quirks = stream->device->hardware->quirks;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE ||
        (quirks & QUIRK_FINISH_REPORTS_ERRORS) == 0 || !wait_brief(stream))
        return stream_mark(stream, out_event);
    return status_from_cl(stream->device, clFinish(stream->queue), "clFinish");
}

static enum tandem_status finish(struct tandem_stream *stream,
                                 uint64_t timeout_ns)
{
    uint64_t serial = atomic_load(&stream->issued);
    cl_event event;
    if (atomic_load(&stream->completed) == serial)
        return TANDEM_OK;
    enum tandem_status status = finish_enqueue(stream, timeout_ns, &event);
    if (status != TANDEM_OK)
        return wait_failed(stream, status, wait_clock(), timeout_ns);
    if (event != NULL) {
        atomic_store(&stream->flushed, serial - 1);
        status = stream_wait(stream, event, timeout_ns);
        clReleaseEvent(event);
    }
    if (status == TANDEM_OK)
        stream_passed(stream, serial);
    return status;
}

enum tandem_status stream_settle(struct tandem_stream *stream,
                                 uint64_t timeout_ns)
{
    return finish(stream, timeout_ns);
}

enum tandem_status stream_query(struct tandem_stream *stream)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    status = finish(stream, 0);
    /* Not a wait: an error is told though more is under way. */
    enum tandem_status sticky =
        (enum tandem_status)atomic_load(&stream->status);
    return status == TANDEM_NOT_READY && sticky != TANDEM_OK
               ? stream_tell(stream, sticky, "the stream's work")
               : status;
}

static enum tandem_status synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    enum tandem_status status = device_check(stream->device);
    if (status != TANDEM_OK)
        return status;
    /* A sticky error does not shorten the wait for what is under way. */
    status = finish(stream, timeout_ns);
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                           "stream_synchronize: the stream's work is "
                           "not done after %llu ns",
                           (unsigned long long)timeout_ns);
    enum tandem_status sticky = (enum tandem_status)atomic_exchange(
        &stream->status, (uint32_t)TANDEM_OK);
    if (sticky == TANDEM_OK)
        return TANDEM_OK;
    /* A lost device's may be under way yet: stream_ends asks. */
    if (status != TANDEM_DEVICE_LOST)
        stream_passed(stream, atomic_load(&stream->issued));
    return stream_tell(stream, sticky, "the stream's work");
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    return stream_live(stream) ? synchronize(stream, timeout_ns)
                               : stream_check(stream);
}

/* ---- the end ---- */

/* Out of the device's list, and no caller's any more. */
static void stream_unlist(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    handle_hide(stream);
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        device->streams = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&device->mutex);
}

/* Whether what the stream holds may be given back: waits for its work. */
static bool stream_ends(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    enum tandem_status status = TANDEM_DEVICE_LOST;
    if (!atomic_load(&device->lost))
        status = finish(stream, device_timeout_ns(device));
    if (status == TANDEM_DEVICE_LOST && !atomic_load(&device->stuck) &&
        atomic_load(&stream->completed) != atomic_load(&stream->issued) &&
        command_queue_drain(stream->queue, HEALTH_CHECK_TIMEOUT_NS) !=
            TANDEM_OK)
        deferred_release_begin(device, stream->queue);
    if (status != TANDEM_NOT_READY)
        return !atomic_load(&device->stuck);
    atomic_store(&device->stuck, true);
    atomic_store(&device->lost, true);
    device_log(device, TANDEM_LOG_ERROR,
               "%s: work has not ended after %llu ms and is left alone with "
               "its memory; the device is lost",
               device->hardware->info.name,
               (unsigned long long)device->blocking_timeout_ns / 1000000u);
    return false;
}

/* Whoever leaves it last frees it: its owner, or one who has something to do
 * with it meanwhile. */
void stream_leave(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    bool last = --stream->users == 0;
    pthread_mutex_unlock(&device->mutex);
    if (!last)
        return;
    staging_finish(stream);
    readback_finish(stream);
    if (stream->counters != NULL)
        buffer_destroy(stream->counters);
    stream_kernels_free(stream);
    clReleaseCommandQueue(stream->queue);
    handle_free(&streams, stream);
}

/* Of a stream whose work does not end nothing is released: the driver may use
 * all of it, and a release may wait. */
void stream_destroy(struct tandem_stream *stream)
{
    bool ends = stream_ends(stream);
    stream_unlist(stream);
    if (ends)
        stream_leave(stream);
}

/* ---- all streams of a device ---- */

/* Streams belong to their threads, but a wait touches only what is atomic, and
 * the queue.  The list is not locked while waiting: a stream is found anew by
 * its id, which rises along it, and lives until it is left. */
static struct tandem_stream *stream_after(struct tandem_device *device,
                                          uint64_t id)
{
    struct tandem_stream *found = NULL;
    pthread_mutex_lock(&device->mutex);
    for (struct tandem_stream *at = device->streams; at != NULL; at = at->next)
        if (at->id > id && (found == NULL || at->id < found->id))
            found = at;
    if (found != NULL)
        found->users++;
    pthread_mutex_unlock(&device->mutex);
    return found;
}

struct tandem_stream *stream_hold(struct tandem_device *device, uint64_t id)
{
    pthread_mutex_lock(&device->mutex);
    struct tandem_stream *stream = device->streams;
    while (stream != NULL && stream->id != id)
        stream = stream->next;
    if (stream != NULL)
        stream->users++;
    pthread_mutex_unlock(&device->mutex);
    return stream;
}

void streams_trim(struct tandem_device *device)
{
    uint64_t id = 0;
    struct tandem_stream *stream;
    while ((stream = stream_after(device, id)) != NULL) {
        id = stream->id;
        staging_trim(stream);
        stream_leave(stream);
    }
}

enum tandem_status streams_synchronize(struct tandem_device *device,
                                       uint64_t timeout_ns)
{
    enum tandem_status first = TANDEM_OK;
    char message[512] = "";
    uint64_t id = 0;
    struct tandem_stream *stream;
    while ((stream = stream_after(device, id)) != NULL) {
        id = stream->id;
        enum tandem_status status = synchronize(stream, timeout_ns);
        if (first == TANDEM_OK && status != TANDEM_OK) {
            first = status;
            snprintf(message, sizeof(message), "%s", message_get());
        }
        stream_leave(stream);
    }
    return first == TANDEM_OK ? first : last_error_set(first, "%s", message);
}
