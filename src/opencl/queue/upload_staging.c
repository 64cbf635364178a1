/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of chunks from which a stream's uploads are written. */
#include "opencl/queue/upload_staging.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/memory/deferred_release.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

#define PAGE_BYTES 4096u
/* Pieces begin at cache lines. */
#define PIECE_BYTES 64u

/* ---- chunks ---- */

/* Mapped by the utility queue: the stream's would wait for its work.  A CPU
 * copies from any memory alike.  OK without memory where there is none. */
static enum tandem_status chunk_new(struct tandem_device *device,
                                    struct staging_chunk *chunk)
{
    cl_int code = CL_SUCCESS;
    cl_event event = NULL;
    memset(chunk, 0, sizeof(*chunk));
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU) {
        chunk->memory = aligned_alloc(PAGE_BYTES, STAGING_CHUNK_BYTES);
        return TANDEM_OK;
    }
    chunk->mem = clCreateBuffer(device->context,
                                CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                STAGING_CHUNK_BYTES, NULL, &code);
    if (code != CL_SUCCESS)
        return TANDEM_OK;
    enum tandem_status status = TANDEM_OK;
    unsigned char *memory = clEnqueueMapBuffer(
        device->utility, chunk->mem, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
        STAGING_CHUNK_BYTES, 0, NULL, &event, &code);
    if (code == CL_SUCCESS)
        status =
            deferred_release_wait_mem(device, device->utility, chunk->mem,
                                      event, device_timeout_ns(device), &code);
    if (status == TANDEM_OK && code == CL_SUCCESS)
        chunk->memory = memory;
    else if (status != TANDEM_NOT_READY)
        clReleaseMemObject(chunk->mem);
    return status == TANDEM_NOT_READY ? status : TANDEM_OK;
}

static void chunk_free(struct tandem_device *device,
                       struct staging_chunk *chunk)
{
    if (chunk->event != NULL)
        clReleaseEvent(chunk->event);
    if (atomic_load(&device->defers_release)) {
        deferred_release_add(chunk->mem, chunk->memory, NULL);
        return;
    }
    if (chunk->mem == NULL) {
        free(chunk->memory);
        return;
    }
    cl_event event = NULL;
    cl_int code;
    if (!atomic_load(&device->lost) &&
        clEnqueueUnmapMemObject(device->utility, chunk->mem, chunk->memory, 0,
                                NULL, &event) == CL_SUCCESS &&
        deferred_release_wait_mem(device, device->utility, chunk->mem, event,
                                  device_timeout_ns(device),
                                  &code) == TANDEM_NOT_READY)
        return;
    clReleaseMemObject(chunk->mem);
}

/* Whether its memory may be used again; out_code is below 0 where the write
 * from it failed. */
static bool chunk_over(struct tandem_stream *stream,
                       const struct staging_chunk *chunk, cl_int *out_code)
{
    cl_int state = CL_QUEUED;
    *out_code = CL_SUCCESS;
    if (chunk->seqno <=
        atomic_load_explicit(&stream->completed_seqno, memory_order_relaxed))
        return true;
    if (chunk->event == NULL ||
        clGetEventInfo(chunk->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                       sizeof(state), &state, NULL) != CL_SUCCESS)
        return false;
    if (state < 0)
        *out_code = state;
    return state <= CL_COMPLETE;
}

/* Likewise; a failure, which may be told here alone, is made the stream's. */
static bool chunk_passed(struct tandem_stream *stream,
                         const struct staging_chunk *chunk)
{
    cl_int code;
    bool over = chunk_over(stream, chunk, &code);
    if (code < 0)
        stream_fail(stream, status_from_cl(stream->device, code,
                                           "an upload under way"));
    return over;
}

static void event_drop(struct staging_chunk *chunk)
{
    if (chunk->event != NULL)
        clReleaseEvent(chunk->event);
    chunk->event = NULL;
}

static void chunk_clear(struct staging_chunk *chunk)
{
    event_drop(chunk);
    chunk->used = 0;
}

/* Events cost time, so the many pieces of a chunk share one. */
static enum tandem_status chunk_close(struct tandem_stream *stream,
                                      struct staging_chunk *chunk)
{
    if (chunk->event != NULL || chunk_passed(stream, chunk))
        return TANDEM_OK;
    enum tandem_status status = stream_enqueue_marker(stream, &chunk->event);
    if (status == TANDEM_OK)
        stream_next_seqno(stream);
    return status;
}

static enum tandem_status chunk_wait(struct tandem_stream *stream,
                                     struct staging_chunk *chunk)
{
    enum tandem_status status =
        stream_wait(stream, chunk->event, device_timeout_ns(stream->device));
    if (status == TANDEM_OK)
        stream_mark_completed(stream, chunk->seqno);
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                              "upload: the stream's staging memory is still in "
                              "use; the work before that may never end: try "
                              "again later, or close the device");
    return status;
}

/* ---- the ring ---- */

/* A new chunk behind the present one, before the oldest, if there is memory
 * for it. */
static enum tandem_status ring_grow(struct tandem_stream *stream,
                                    bool *out_grown)
{
    struct staging *staging = &stream->staging;
    struct staging_chunk chunk;
    uint32_t at = staging->count == 0 ? 0 : staging->at + 1;
    *out_grown = false;
    if (staging->count == STAGING_CHUNKS)
        return TANDEM_OK;
    enum tandem_status status = chunk_new(stream->device, &chunk);
    if (status != TANDEM_OK || chunk.memory == NULL)
        return status;
    memmove(&staging->chunks[at + 1], &staging->chunks[at],
            (staging->count - at) * sizeof(chunk));
    staging->chunks[at] = chunk;
    staging->at = at;
    staging->count++;
    *out_grown = true;
    return TANDEM_OK;
}

/* Makes an empty chunk the present one.  OK with count 0: there is none. */
static enum tandem_status ring_advance(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    bool grown;
    if (staging->count == 0)
        return ring_grow(stream, &grown);
    enum tandem_status status =
        chunk_close(stream, &staging->chunks[staging->at]);
    if (status != TANDEM_OK)
        return status;
    uint32_t next = (staging->at + 1) % staging->count;
    struct staging_chunk *oldest = &staging->chunks[next];
    if (!chunk_passed(stream, oldest)) {
        status = ring_grow(stream, &grown);
        if (status != TANDEM_OK || grown)
            return status;
        status = chunk_wait(stream, oldest);
        if (status != TANDEM_OK)
            return status;
    }
    if (atomic_load(&stream->status) != TANDEM_OK)
        return stream_check(stream);
    chunk_clear(oldest);
    staging->at = next;
    return TANDEM_OK;
}

enum tandem_status staging_take(struct tandem_stream *stream, uint64_t bytes,
                                struct staging_room *out_room)
{
    struct staging *staging = &stream->staging;
    struct staging_chunk *chunk = &staging->chunks[staging->at];
    memset(out_room, 0, sizeof(*out_room));
    if (bytes > STAGING_CHUNK_BYTES)
        bytes = STAGING_CHUNK_BYTES;
    /* The same memory again is still in the host's cache. */
    if (staging->count != 0 && chunk_passed(stream, chunk))
        chunk_clear(chunk);
    if (atomic_load(&stream->status) != TANDEM_OK)
        return stream_check(stream);
    if (staging->count == 0 || bytes > STAGING_CHUNK_BYTES - chunk->used) {
        enum tandem_status status = ring_advance(stream);
        if (status != TANDEM_OK || staging->count == 0)
            return status;
        chunk = &staging->chunks[staging->at];
    }
    out_room->memory = chunk->memory + chunk->used;
    out_room->bytes = bytes;
    /* An event of an earlier write says nothing of this one. */
    event_drop(chunk);
    /* A marker for the chunk later, when the next piece has no room, would cost
     * more. */
    if (chunk->used + 2 * bytes > STAGING_CHUNK_BYTES)
        out_room->event = &chunk->event;
    return TANDEM_OK;
}

void staging_written(struct tandem_stream *stream,
                     const struct staging_room *room)
{
    struct staging_chunk *chunk = &stream->staging.chunks[stream->staging.at];
    chunk->used +=
        (room->bytes + PIECE_BYTES - 1) & ~(uint64_t)(PIECE_BYTES - 1);
    chunk->seqno =
        atomic_load_explicit(&stream->issued_seqno, memory_order_relaxed);
}

/* ---- its life ---- */

void staging_start(struct staging *staging)
{
    pthread_mutex_init(&staging->mutex, NULL);
    staging->count = 0;
    staging->at = 0;
}

void staging_finish(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    for (uint32_t i = 0; i < staging->count; i++)
        chunk_free(stream->device, &staging->chunks[i]);
    pthread_mutex_destroy(&staging->mutex);
}

/* A driver may take its time to free a chunk: the stream's thread has another
 * one meanwhile. */
void staging_trim(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    struct staging_chunk chunks[STAGING_CHUNKS];
    uint32_t count = 0;
    bool passed = true;
    if (pthread_mutex_trylock(&staging->mutex) != 0)
        return;
    for (uint32_t i = 0; i < staging->count; i++)
        passed = passed && chunk_passed(stream, &staging->chunks[i]);
    if (passed) {
        count = staging->count;
        memcpy(chunks, staging->chunks, count * sizeof(chunks[0]));
        staging->count = 0;
        staging->at = 0;
    }
    pthread_mutex_unlock(&staging->mutex);
    for (uint32_t i = 0; i < count; i++)
        chunk_free(stream->device, &chunks[i]);
}
