/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose memory waits for whom: a block that had another owner is used on
 * another stream only after the work that the owner left.
 */
#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

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

/* out_over: there was nothing left to wait for. */
static enum tandem_status former_wait(struct tandem_stream *stream,
                                      uint64_t former, uint64_t serial,
                                      bool *out_over)
{
    struct tandem_device *device = stream->device;
    enum tandem_status status = TANDEM_OK;
    *out_over = true;
    pthread_mutex_lock(&device->mutex);
    /* A destroyed stream is not listed: its work is done. */
    for (struct tandem_stream *other = device->streams;
         other != NULL && status == TANDEM_OK; other = other->next) {
        if (other == stream ||
            (former != STREAM_SEVERAL &&
             (other->id != former || atomic_load(&other->completed) >= serial)))
            continue;
        if (atomic_load(&other->completed) == atomic_load(&other->issued))
            continue;
        *out_over = false;
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
        atomic_load_explicit(&buffer->synced_stream, memory_order_relaxed) ==
            stream->id)
        return TANDEM_OK;
    bool over;
    enum tandem_status status = former_wait(
        stream, former, atomic_load(&buffer->former_serial), &over);
    if (status == TANDEM_OK)
        atomic_store(&buffer->synced_stream, stream->id);
    /* Nor is there for any other stream; of several, those that came to use it
     * since may be behind it. */
    if (over && former != STREAM_SEVERAL)
        atomic_store(&buffer->former_stream, 0);
    return status;
}

bool stream_has(struct tandem_stream *stream,
                const struct tandem_buffer *buffer)
{
    struct tandem_device *device = stream->device;
    uint64_t writer = atomic_load(&buffer->written_stream);
    uint64_t serial = atomic_load(&buffer->written_seqno);
    bool done = true;
    if (writer == stream->id)
        return true;
    pthread_mutex_lock(&device->mutex);
    /* A destroyed stream is not listed: its work is done. */
    for (struct tandem_stream *other = device->streams; other != NULL;
         other = other->next)
        if (other->id == writer && atomic_load(&other->completed) < serial)
            done = false;
    pthread_mutex_unlock(&device->mutex);
    return done;
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
    atomic_store_explicit(&buffer->written_seqno, serial,
                          memory_order_relaxed);
}
