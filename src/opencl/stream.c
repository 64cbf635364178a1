/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order queues, their errors, and whose memory waits for whom. */
#include "opencl/adrift.h"
#include "opencl/readback.h"
#include "opencl/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/status.h"

#define STREAM_MAGIC 0x7374726du

static struct handle_pool streams =
    HANDLE_POOL(struct tandem_stream, STREAM_MAGIC);

bool stream_live(const struct tandem_stream *stream)
{
    return handle_live(&streams, stream);
}

enum tandem_status stream_check(struct tandem_stream *stream)
{
    if (!handle_live(&streams, stream))
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "stream %p is NULL, destroyed or foreign",
                           (void *)stream);
    enum tandem_status status = device_check(stream->device);
    if (status != TANDEM_OK)
        return status;
    status = (enum tandem_status)atomic_load_explicit(&stream->status,
                                                      memory_order_relaxed);
    if (status != TANDEM_OK)
        return message_set(status, "earlier work of the stream failed: %s",
                           stream->message);
    return TANDEM_OK;
}

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    cl_int code = CL_SUCCESS;
    *out_stream = NULL;
    struct tandem_stream *stream = handle_new(&streams);
    if (stream == NULL)
        return message_set(TANDEM_OUT_OF_MEMORY,
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
    snprintf(stream->message, sizeof(stream->message), "%s", message_get());
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
    if (atomic_load(&stream->flushed) == issued)
        return TANDEM_OK;
    cl_int code = clFlush(stream->queue);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clFlush");
    atomic_store(&stream->flushed, issued);
    return TANDEM_OK;
}

/* ---- reuse of blocks across streams ---- */

/* Makes stream wait for the present end of other, whose work is not done. */
static enum tandem_status follow_end(struct tandem_stream *stream,
                                     struct tandem_stream *other)
{
    cl_event event = NULL;
    enum tandem_status status = stream_mark(other, &event);
    if (status != TANDEM_OK)
        return status;
    cl_int code = clFlush(other->queue);
    if (code == CL_SUCCESS)
        code = clEnqueueBarrierWithWaitList(stream->queue, 1, &event, NULL);
    clReleaseEvent(event);
    return status_from_cl(stream->device, code, "clEnqueueBarrier");
}

static enum tandem_status former_wait(struct tandem_stream *stream,
                                      uint64_t former, uint64_t serial)
{
    struct tandem_device *device = stream->device;
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&device->mutex);
    /* A destroyed stream is not listed: its work is done. */
    for (struct tandem_stream *other = device->streams;
         other != NULL && status == TANDEM_OK; other = other->next) {
        if (other == stream ||
            (former != STREAM_SEVERAL &&
             (other->id != former || atomic_load(&other->completed) >= serial)))
            continue;
        if (atomic_load(&other->completed) != atomic_load(&other->issued))
            status = follow_end(stream, other);
    }
    pthread_mutex_unlock(&device->mutex);
    return status;
}

enum tandem_status stream_use(struct tandem_stream *stream,
                              struct tandem_buffer *buffer)
{
    uint64_t former =
        atomic_load_explicit(&buffer->former_stream, memory_order_relaxed);
    if (former == 0 || former == stream->id ||
        atomic_load_explicit(&buffer->told_stream, memory_order_relaxed) ==
            stream->id)
        return TANDEM_OK;
    enum tandem_status status =
        former_wait(stream, former, atomic_load(&buffer->former_serial));
    if (status == TANDEM_OK)
        atomic_store(&buffer->told_stream, stream->id);
    return status;
}

void stream_used(struct tandem_stream *stream, struct tandem_buffer *buffer,
                 bool written)
{
    uint64_t serial =
        atomic_load_explicit(&stream->issued, memory_order_relaxed);
    uint64_t last =
        atomic_load_explicit(&buffer->used_stream, memory_order_relaxed);
    if (last != stream->id && last != STREAM_SEVERAL)
        atomic_store_explicit(&buffer->used_stream,
                              last == 0 ? stream->id : STREAM_SEVERAL,
                              memory_order_relaxed);
    atomic_store_explicit(&buffer->used_serial, serial, memory_order_relaxed);
    wait_grows(stream, buffer->bytes);
    if (!written)
        return;
    atomic_store_explicit(&buffer->written_stream, stream->id,
                          memory_order_relaxed);
    atomic_store_explicit(&buffer->written_serial, serial,
                          memory_order_relaxed);
}

/* ---- waits ---- */

/* After a wait has failed: what is under way must end all the same before
 * anyone may say that it has. */
static enum tandem_status drain(struct tandem_stream *stream,
                                enum tandem_status status)
{
    struct tandem_device *device = stream->device;
    uint64_t limit_ns = device->stuck_ns;
    if (device_drained(stream->queue,
                       limit_ns != 0 ? limit_ns / 1000000u : UINT64_MAX))
        return status;
    atomic_store(&device->lost, true);
    return stream_fail(
        stream, message_set(TANDEM_DEVICE_LOST,
                            "%s: the driver cannot say whether its work has "
                            "ended; the device is lost: close it and open "
                            "another",
                            device->hardware->info.name));
}

enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns)
{
    struct tandem_device *device = stream->device;
    cl_int code = CL_SUCCESS;
    enum tandem_status status = stream_flush(stream);
    if (status == TANDEM_OK)
        status = wait_event(device, event, timeout_ns, &code);
    if (status == TANDEM_NOT_READY)
        return status;
    if (status == TANDEM_OK)
        status = status_from_cl(device, code, "the stream's work");
    if (status == TANDEM_OK)
        return status;
    stream_fail(stream, status);
    return status == TANDEM_DEVICE_LOST ? status : drain(stream, status);
}

/* By a marker, as clFinish does not tell with every driver that something has
 * failed, nor can it be left.  NVIDIA's tells, and is the quickest wait for
 * what is brief. */
static enum tandem_status finish_enqueue(struct tandem_stream *stream,
                                         uint64_t timeout_ns,
                                         cl_event *out_event)
{
    *out_event = NULL;
    if (timeout_ns != TANDEM_FOREVER || !stream->device->hardware->nvidia ||
        !wait_brief(stream))
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
    if (status != TANDEM_OK) {
        stream_fail(stream, status);
        return status == TANDEM_DEVICE_LOST ? status : drain(stream, status);
    }
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
    return wait_busy(stream->device) ? finish(stream, timeout_ns) : TANDEM_OK;
}

enum tandem_status stream_query(struct tandem_stream *stream)
{
    enum tandem_status status = stream_check(stream);
    return status != TANDEM_OK ? status : finish(stream, 0);
}

enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns)
{
    if (!stream_live(stream))
        return stream_check(stream);
    enum tandem_status status = device_check(stream->device);
    if (status != TANDEM_OK)
        return status;
    /* A sticky error does not shorten the wait for what is under way. */
    status = finish(stream, timeout_ns);
    if (status == TANDEM_NOT_READY)
        return message_set(status,
                           "stream_synchronize: the stream's work is "
                           "not done after %llu ns",
                           (unsigned long long)timeout_ns);
    enum tandem_status sticky = (enum tandem_status)atomic_exchange(
        &stream->status, (uint32_t)TANDEM_OK);
    if (sticky == TANDEM_OK)
        return TANDEM_OK;
    stream_passed(stream, atomic_load(&stream->issued));
    return message_set(sticky, "the stream's work failed: %s", stream->message);
}

/* ---- the end ---- */

/* Out of the device's list, and no caller's any more. */
static void stream_unlist(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
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
    uint64_t limit_ns = device->stuck_ns;
    enum tandem_status status = TANDEM_DEVICE_LOST;
    if (!atomic_load(&device->lost))
        status = finish(stream, limit_ns != 0 ? limit_ns : TANDEM_FOREVER);
    if (status == TANDEM_DEVICE_LOST &&
        atomic_load(&stream->completed) != atomic_load(&stream->issued) &&
        !device_drained(stream->queue, DEVICE_ANSWER_MS))
        adrift_begin(device, stream->queue);
    if (status != TANDEM_NOT_READY)
        return !atomic_load(&device->stuck);
    atomic_store(&device->stuck, true);
    atomic_store(&device->lost, true);
    device_log(device, TANDEM_LOG_ERROR,
               "%s: work has not ended after %llu ms and is left alone with "
               "its memory; the device is lost",
               device->hardware->info.name,
               (unsigned long long)limit_ns / 1000000u);
    return false;
}

/* Of a stream whose work does not end nothing is released: the driver may use
 * all of it, and a release may wait. */
void stream_destroy(struct tandem_stream *stream)
{
    bool ends = stream_ends(stream);
    stream_unlist(stream);
    if (!ends) {
        handle_hide(stream);
        return;
    }
    staging_finish(stream);
    readback_finish(stream);
    stream_kernels_free(stream);
    clReleaseCommandQueue(stream->queue);
    handle_free(&streams, stream);
}

/* ---- all streams of a device ---- */

/* Streams belong to their threads, but a wait touches only what is atomic, and
 * the queue.  The list is not locked while waiting: a stream is found anew by
 * its id, which rises along it. */
static struct tandem_stream *stream_after(struct tandem_device *device,
                                          uint64_t id)
{
    struct tandem_stream *found = NULL;
    pthread_mutex_lock(&device->mutex);
    for (struct tandem_stream *at = device->streams; at != NULL; at = at->next)
        if (at->id > id && (found == NULL || at->id < found->id))
            found = at;
    pthread_mutex_unlock(&device->mutex);
    return found;
}

void streams_trim(struct tandem_device *device)
{
    pthread_mutex_lock(&device->mutex);
    for (struct tandem_stream *at = device->streams; at != NULL; at = at->next)
        staging_trim(at);
    pthread_mutex_unlock(&device->mutex);
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
        enum tandem_status status = stream_synchronize(stream, timeout_ns);
        if (first == TANDEM_OK && status != TANDEM_OK) {
            first = status;
            snprintf(message, sizeof(message), "%s", message_get());
        }
    }
    return first == TANDEM_OK ? first : message_set(first, "%s", message);
}
