/* SPDX-License-Identifier: Apache-2.0 */
/* Makes streams wait for each other if they use the same memory block. */
#include "opencl/queue/hazard_tracking.h"

#include "opencl/device/cl_status.h"

/* Makes `stream` wait for all commands in the queue of `other`. */
static enum tandem_status wait_for_stream(struct tandem_stream *stream,
                                          struct tandem_stream *other)
{
    cl_event event = NULL;
    enum tandem_status status = stream_enqueue_marker(other, &event);
    if (status != TANDEM_OK)
        return status;
    cl_int code = clFlush(other->queue);
    if (code == CL_SUCCESS)
        code = clEnqueueBarrierWithWaitList(stream->queue, 1, &event, NULL);
    clReleaseEvent(event);
    return status_from_cl(stream->device, code, "clEnqueueBarrier");
}

/* Makes `stream` wait for the commands of the stream with id `prior` up to
 * number `seqno`.  If `prior` is MULTIPLE_STREAMS, makes `stream` wait for all
 * commands of all other streams.  *out_completed is true if there was no need
 * to wait. */
static enum tandem_status wait_for_prior(struct tandem_stream *stream,
                                         uint64_t prior, uint64_t seqno,
                                         bool *out_completed)
{
    struct tandem_device *device = stream->device;
    enum tandem_status status = TANDEM_OK;
    *out_completed = true;
    pthread_mutex_lock(&device->mutex);
    for (struct tandem_stream *other = device->streams;
         other != NULL && status == TANDEM_OK; other = other->next) {
        uint64_t completed = atomic_load(&other->completed_seqno);
        if (other == stream || completed == atomic_load(&other->issued_seqno) ||
            (prior != MULTIPLE_STREAMS &&
             (other->id != prior || completed >= seqno)))
            continue;
        *out_completed = false;
        status = wait_for_stream(stream, other);
    }
    pthread_mutex_unlock(&device->mutex);
    return status;
}

enum tandem_status stream_begin_use(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer)
{
    uint64_t prior = atomic_load(&buffer->prior_stream);
    if (prior == 0 || prior == stream->id ||
        atomic_load(&buffer->synced_stream) == stream->id)
        return TANDEM_OK;
    bool completed;
    enum tandem_status status = wait_for_prior(
        stream, prior, atomic_load(&buffer->prior_seqno), &completed);
    if (status == TANDEM_OK)
        atomic_store(&buffer->synced_stream, stream->id);
    /* If the commands of stream `prior` have completed, no stream needs to wait
     * for them. Keep MULTIPLE_STREAMS, because `stream` can be one of these
     * streams, and other streams must still wait for its commands. */
    if (completed && prior != MULTIPLE_STREAMS)
        atomic_store(&buffer->prior_stream, 0);
    return status;
}

bool stream_sees_last_write(struct tandem_stream *stream,
                            const struct tandem_buffer *buffer)
{
    struct tandem_device *device = stream->device;
    uint64_t writer = atomic_load(&buffer->written_stream);
    uint64_t seqno = atomic_load(&buffer->written_seqno);
    bool completed = true;
    if (writer == stream->id)
        return true;
    pthread_mutex_lock(&device->mutex);
    /* Streams leave the list only after their commands have completed. */
    for (struct tandem_stream *other = device->streams; other != NULL;
         other = other->next)
        if (other->id == writer && atomic_load(&other->completed_seqno) < seqno)
            completed = false;
    pthread_mutex_unlock(&device->mutex);
    return completed;
}

/* Poisons a written buffer if the stream has a sticky error.  Another thread
 * that waits for an event can record the failure of an earlier command, and
 * poison the buffers that were written since, in the middle of a launch. */
static void poison_if_failed(const struct tandem_stream *stream,
                             struct tandem_buffer *buffer)
{
    const uint32_t status = atomic_load(&stream->status);
    if (status != TANDEM_OK)
        buffer_poison(buffer, (enum tandem_status)status);
}

void stream_note_use(struct tandem_stream *stream, struct tandem_buffer *buffer,
                     bool written)
{
    uint64_t seqno = atomic_load(&stream->issued_seqno);
    uint64_t last = atomic_load(&buffer->used_stream);
    if (last != stream->id && last != MULTIPLE_STREAMS)
        atomic_store_explicit(&buffer->used_stream,
                              last == 0 ? stream->id : MULTIPLE_STREAMS,
                              memory_order_relaxed);
    atomic_store_explicit(&buffer->used_seqno, seqno, memory_order_relaxed);
    stream_add_pending(stream, buffer->bytes);
    if (!written)
        return;
    atomic_store_explicit(&buffer->written_stream, stream->id,
                          memory_order_relaxed);
    atomic_store(&buffer->written_seqno, seqno);
    poison_if_failed(stream, buffer);
}

void stream_note_overwrite(const struct tandem_stream *stream,
                           struct tandem_buffer *buffer, uint64_t bytes)
{
    buffer_clear_poison(buffer, bytes);
    poison_if_failed(stream, buffer);
}
