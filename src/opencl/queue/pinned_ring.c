/* SPDX-License-Identifier: Apache-2.0 */
/* Ring of pinned memory for transfers; see pinned_ring.h. */
#include "opencl/queue/pinned_ring.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/event_poll.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/stream.h"

#define PAGE_BYTES 4096u
#define CACHE_LINE_BYTES 64u

/* ---- chunks ---- */

/* Allocates the memory of a chunk.  If memory is exhausted, returns TANDEM_OK
 * and sets *out_memory to NULL. */
static enum tandem_status chunk_alloc(struct tandem_device *device,
                                      uint64_t bytes, void **out_memory)
{
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU) {
        *out_memory = aligned_alloc(PAGE_BYTES, (size_t)bytes);
        return TANDEM_OK;
    }
    enum tandem_status status =
        pinned_alloc(device, bytes, device_timeout_ns(device), out_memory);
    return status == TANDEM_NOT_READY ? status : TANDEM_OK;
}

static void chunk_free(struct tandem_device *device, struct ring_chunk *chunk)
{
    if (chunk->event != NULL)
        clReleaseEvent(chunk->event);
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU)
        free(chunk->memory);
    else
        pinned_free(device, chunk->memory);
}

/* Returns true if the chunk is not held and no command uses it.  If a command
 * that used the chunk has failed, makes the failure the sticky error. */
static bool chunk_is_free(struct tandem_stream *stream,
                          const struct ring_chunk *chunk)
{
    cl_int state = CL_QUEUED;
    if (chunk->held != 0)
        return false;
    if (chunk->seqno <= atomic_load(&stream->completed_seqno))
        return true;
    if (chunk->event == NULL ||
        event_get_state(chunk->event, &state) != CL_SUCCESS)
        return false;
    if (state < 0)
        stream_fail(stream, status_from_cl(stream->device, state,
                                           "an earlier transfer"));
    return state <= CL_COMPLETE;
}

static void chunk_drop_event(struct ring_chunk *chunk)
{
    if (chunk->event != NULL)
        clReleaseEvent(chunk->event);
    chunk->event = NULL;
}

static void chunk_reset(struct ring_chunk *chunk)
{
    chunk_drop_event(chunk);
    chunk->used = 0;
}

/* Enqueues a marker for the chunk, because an event per command is slower. */
static enum tandem_status chunk_add_event(struct tandem_stream *stream,
                                          struct ring_chunk *chunk)
{
    if (chunk->event != NULL || chunk->held != 0 ||
        chunk_is_free(stream, chunk))
        return TANDEM_OK;
    enum tandem_status status = stream_enqueue_marker(stream, &chunk->event);
    if (status == TANDEM_OK)
        stream_next_seqno(stream);
    return status;
}

/* ---- the ring ---- */

/* If there is memory, adds a chunk after the current one and makes the new
 * chunk current. */
static enum tandem_status ring_grow(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    const uint64_t bytes = ring->count == 0 ? FIRST_CHUNK_BYTES : CHUNK_BYTES;
    void *memory = NULL;
    if (ring->exhausted || ring->count == MAX_RING_CHUNKS)
        return TANDEM_OK;
    enum tandem_status status = chunk_alloc(stream->device, bytes, &memory);
    ring->exhausted = status == TANDEM_OK && memory == NULL;
    if (memory == NULL)
        return status;
    struct ring_chunk *chunk = &ring->chunks[ring->count++];
    *chunk = (struct ring_chunk){.memory = memory, .bytes = bytes};
    chunk->next = ring->current != NULL ? ring->current->next : chunk;
    if (ring->current != NULL)
        ring->current->next = chunk;
    ring->current = chunk;
    return TANDEM_OK;
}

/* Makes an empty chunk current, unless the ring is full. */
static enum tandem_status ring_advance(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    struct ring_chunk *oldest = ring->current->next;
    enum tandem_status status = chunk_add_event(stream, ring->current);
    if (status != TANDEM_OK)
        return status;
    if (!chunk_is_free(stream, oldest))
        return ring_grow(stream);
    chunk_reset(oldest);
    ring->current = oldest;
    return stream_check(stream);
}

/* Returns the position of the chunk's next range, if its size is `bytes`. */
static uint64_t range_start(const struct ring_chunk *chunk, uint64_t bytes)
{
    const uint64_t alignment =
        bytes < PAGE_BYTES ? CACHE_LINE_BYTES : PAGE_BYTES;
    return (chunk->used + alignment - 1) & ~(alignment - 1);
}

static bool chunk_has_space(const struct ring_chunk *chunk, uint64_t bytes)
{
    return chunk->used == 0 ||
           range_start(chunk, bytes) + bytes <= chunk->bytes;
}

enum tandem_status ring_begin(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&ring->mutex);
    if (ring->count == 0)
        status = ring_grow(stream);
    if (ring->count != 0)
        return TANDEM_OK;
    pthread_mutex_unlock(&ring->mutex);
    return status == TANDEM_OK ? TANDEM_UNSUPPORTED : status;
}

void ring_end(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    for (uint32_t i = 0; i < ring->count; i++)
        ring->chunks[i].held = 0;
    pthread_mutex_unlock(&ring->mutex);
}

enum tandem_status ring_reserve(struct tandem_stream *stream, uint64_t bytes,
                                struct ring_range *out_range)
{
    struct pinned_ring *ring = &stream->ring;
    memset(out_range, 0, sizeof(*out_range));
    /* If the current chunk is free, reuse it: it is in the CPU caches. */
    if (chunk_is_free(stream, ring->current))
        chunk_reset(ring->current);
    if (atomic_load(&stream->status) != TANDEM_OK)
        return stream_check(stream);
    if (!chunk_has_space(ring->current, bytes)) {
        enum tandem_status status = ring_advance(stream);
        if (status != TANDEM_OK || ring->current->used != 0)
            return status;
    }
    struct ring_chunk *chunk = ring->current;
    const uint64_t start = range_start(chunk, bytes);
    /* The chunk's event belongs to an earlier command, not to the next one. */
    chunk_drop_event(chunk);
    if (bytes > chunk->bytes - start)
        bytes = chunk->bytes - start;
    chunk->used = start + bytes;
    chunk->held++;
    *out_range = (struct ring_range){chunk->memory + start, bytes, chunk};
    return TANDEM_OK;
}

cl_event *ring_write_event(struct tandem_stream *stream,
                           const struct ring_range *range)
{
    struct ring_chunk *chunk = range->chunk;
    chunk_drop_event(chunk);
    /* If the chunk has no space for another write of this size, request the
     * event of this write, because a separate marker costs more time. */
    return chunk != stream->ring.current ||
                   chunk->used + range->bytes > chunk->bytes
               ? &chunk->event
               : NULL;
}

void ring_commit(struct tandem_stream *stream, const struct ring_range *range)
{
    range->chunk->seqno = atomic_load(&stream->issued_seqno);
}

void ring_release(const struct ring_range *range)
{
    range->chunk->held--;
}

enum tandem_status ring_wait(struct tandem_stream *stream, uint64_t timeout_ns)
{
    struct ring_chunk *oldest = stream->ring.current->next;
    enum tandem_status status = chunk_add_event(stream, oldest);
    if (status == TANDEM_OK && oldest->event != NULL)
        status = stream_wait(stream, oldest->event, timeout_ns);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, oldest->seqno);
    return status;
}

void ring_start(struct pinned_ring *ring)
{
    pthread_mutex_init(&ring->mutex, NULL);
}

void ring_finish(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    for (uint32_t i = 0; i < ring->count; i++)
        chunk_free(stream->device, &ring->chunks[i]);
    pthread_mutex_destroy(&ring->mutex);
}

/* Frees chunks without holding the mutex, because the driver may block. */
void ring_trim(struct tandem_stream *stream)
{
    struct pinned_ring *ring = &stream->ring;
    struct ring_chunk chunks[MAX_RING_CHUNKS];
    uint32_t count = 0;
    if (pthread_mutex_trylock(&ring->mutex) != 0)
        return;
    ring->exhausted = false;
    while (count < ring->count && chunk_is_free(stream, &ring->chunks[count]))
        count++;
    if (count != ring->count)
        count = 0;
    memcpy(chunks, ring->chunks, count * sizeof(chunks[0]));
    if (count != 0) {
        ring->count = 0;
        ring->current = NULL;
    }
    pthread_mutex_unlock(&ring->mutex);
    for (uint32_t i = 0; i < count; i++)
        chunk_free(stream->device, &chunks[i]);
}
