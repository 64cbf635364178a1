/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, destroys and finds streams; see stream_lifecycle.h. */
#include "opencl/queue/stream_lifecycle.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/memory/deferred_release.h"
#include "opencl/queue/stream_kernels.h"

static void list_add(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    stream->id = ++device->next_stream_id;
    stream->next = device->streams;
    stream->link = &device->streams;
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    device->streams = stream;
    pthread_mutex_unlock(&device->mutex);
}

/* Removes the stream from the device's list.  Its handle becomes invalid. */
static void list_remove(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    handle_hide(stream);
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    pthread_mutex_unlock(&device->mutex);
}

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream)
{
    cl_int code = CL_SUCCESS;
    *out_stream = NULL;
    cl_command_queue_properties properties =
        (flags & TANDEM_STREAM_PROFILING) != 0 ? CL_QUEUE_PROFILING_ENABLE : 0;
    cl_command_queue queue = clCreateCommandQueue(
        device->context, device->hardware->id, properties, &code);
    return code == CL_SUCCESS
               ? stream_adopt(device, queue, flags, out_stream)
               : status_from_cl(device, code, "clCreateCommandQueue");
}

enum tandem_status stream_adopt(struct tandem_device *device,
                                cl_command_queue queue, uint32_t flags,
                                struct tandem_stream **out_stream)
{
    *out_stream = NULL;
    struct tandem_stream *stream = handle_new(&stream_handles);
    if (stream == NULL) {
        clReleaseCommandQueue(queue);
        return memory_error("stream_create: out of host memory");
    }
    stream->queue = queue;
    stream->device = device;
    stream->flags = flags;
    stream->references = 1;
    ring_start(&stream->ring);
    list_add(stream);
    *out_stream = stream;
    return TANDEM_OK;
}

void stream_release(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    pthread_mutex_lock(&device->mutex);
    bool last = --stream->references == 0;
    pthread_mutex_unlock(&device->mutex);
    if (!last)
        return;
    ring_finish(stream);
    stream_kernels_free(stream);
    clReleaseCommandQueue(stream->queue);
    free(stream->host_memory);
    handle_free(&stream_handles, stream);
}

static void stream_release_deferred(void *stream)
{
    stream_release(stream);
}

/* Waits for the commands of the stream.  If they exceed the timeout, marks the
 * device as lost.  Returns false if commands can still be running. */
static bool drain_before_destroy(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    enum tandem_status status = TANDEM_DEVICE_LOST;
    if (!atomic_load(&device->lost))
        status = stream_drain(stream, device_timeout_ns(device));
    if (status != TANDEM_NOT_READY)
        return status != TANDEM_DEVICE_LOST ||
               atomic_load(&stream->completed_seqno) ==
                   atomic_load(&stream->issued_seqno);
    atomic_store(&device->lost, true);
    device_log(device, TANDEM_LOG_ERROR,
               "%s: work has not completed after %llu ms; the device is lost",
               device->hardware->info.name,
               (unsigned long long)device->blocking_timeout_ns / 1000000u);
    return false;
}

void stream_destroy(struct tandem_stream *stream)
{
    bool drained = drain_before_destroy(stream);
    list_remove(stream);
    if (stream->arrival_counters != NULL)
        buffer_destroy(stream->arrival_counters);
    if (drained)
        stream_release(stream);
    else
        deferred_release_add(stream->device, stream->queue,
                             stream_release_deferred, stream);
}

/* ---- all streams of a device ---- */

/* Acquires the stream with the lowest id from `first` to `last`, or returns
 * NULL if there is none. The caller need not hold device.mutex to use the
 * acquired stream. */
static struct tandem_stream *acquire_in_range(struct tandem_device *device,
                                              uint64_t first, uint64_t last)
{
    struct tandem_stream *found = NULL;
    pthread_mutex_lock(&device->mutex);
    for (struct tandem_stream *at = device->streams; at != NULL; at = at->next)
        if (at->id >= first && at->id <= last &&
            (found == NULL || at->id < found->id))
            found = at;
    if (found != NULL)
        found->references++;
    pthread_mutex_unlock(&device->mutex);
    return found;
}

struct tandem_stream *stream_acquire(struct tandem_device *device, uint64_t id)
{
    return acquire_in_range(device, id, id);
}

void streams_trim(struct tandem_device *device)
{
    uint64_t id = 0;
    struct tandem_stream *stream;
    while ((stream = acquire_in_range(device, id + 1, UINT64_MAX)) != NULL) {
        id = stream->id;
        ring_trim(stream);
        stream_release(stream);
    }
}
