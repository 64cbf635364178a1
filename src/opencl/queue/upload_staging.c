/* SPDX-License-Identifier: Apache-2.0 */
/* Ring of staging segments for uploads; see upload_staging.h. */
#include "opencl/queue/upload_staging.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/memory/deferred_release.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/event_poll.h"
#include "opencl/queue/stream.h"

#define PAGE_BYTES 4096u
/* Alignment of ranges in a segment: the cache line size in bytes. */
#define RANGE_ALIGNMENT 64u

/* ---- segments ---- */

/* Allocates a segment: host memory for a CPU device, else pinned memory. The
 * utility queue maps pinned memory, because a map in the stream's queue would
 * wait for the stream's commands. If memory is exhausted, sets segment->memory
 * to NULL and returns TANDEM_OK. */
static enum tandem_status segment_create(struct tandem_device *device,
                                         struct staging_segment *segment)
{
    cl_int code = CL_SUCCESS;
    cl_event event = NULL;
    memset(segment, 0, sizeof(*segment));
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU) {
        segment->memory = aligned_alloc(PAGE_BYTES, STAGING_SEGMENT_BYTES);
        return TANDEM_OK;
    }
    segment->mem = clCreateBuffer(device->context,
                                  CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  STAGING_SEGMENT_BYTES, NULL, &code);
    if (code != CL_SUCCESS)
        return TANDEM_OK;
    enum tandem_status status = TANDEM_OK;
    unsigned char *memory = clEnqueueMapBuffer(
        device->utility, segment->mem, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
        STAGING_SEGMENT_BYTES, 0, NULL, &event, &code);
    if (code == CL_SUCCESS)
        status =
            deferred_release_wait_mem(device, device->utility, segment->mem,
                                      event, device_timeout_ns(device), &code);
    if (status == TANDEM_OK && code == CL_SUCCESS)
        segment->memory = memory;
    else if (status != TANDEM_NOT_READY)
        clReleaseMemObject(segment->mem);
    return status == TANDEM_NOT_READY ? status : TANDEM_OK;
}

static void segment_free(struct tandem_device *device,
                         struct staging_segment *segment)
{
    if (segment->event != NULL)
        clReleaseEvent(segment->event);
    cl_event event = NULL;
    cl_int code;
    if (segment->mem == NULL)
        free(segment->memory);
    else if (atomic_load(&device->lost) ||
             clEnqueueUnmapMemObject(device->utility, segment->mem,
                                     segment->memory, 0, NULL,
                                     &event) != CL_SUCCESS ||
             deferred_release_wait_mem(device, device->utility, segment->mem,
                                       event, device_timeout_ns(device),
                                       &code) != TANDEM_NOT_READY)
        clReleaseMemObject(segment->mem);
}

/* Returns true if no command uses the segment.  If a write command that reads
 * the segment has failed, makes the failure the sticky error of the stream. */
static bool segment_is_free(struct tandem_stream *stream,
                            const struct staging_segment *segment)
{
    cl_int state = CL_QUEUED;
    if (segment->seqno <= atomic_load(&stream->completed_seqno))
        return true;
    if (segment->event == NULL ||
        event_get_state(segment->event, &state) != CL_SUCCESS)
        return false;
    if (state < 0)
        stream_fail(stream,
                    status_from_cl(stream->device, state, "an earlier upload"));
    return state <= CL_COMPLETE;
}

static void segment_drop_event(struct staging_segment *segment)
{
    if (segment->event != NULL)
        clReleaseEvent(segment->event);
    segment->event = NULL;
}

static void segment_reset(struct staging_segment *segment)
{
    segment_drop_event(segment);
    segment->used = 0;
}

/* Enqueues a marker for the segment, because an event per write is slower. */
static enum tandem_status segment_add_event(struct tandem_stream *stream,
                                            struct staging_segment *segment)
{
    if (segment->event != NULL || segment_is_free(stream, segment))
        return TANDEM_OK;
    enum tandem_status status = stream_enqueue_marker(stream, &segment->event);
    if (status == TANDEM_OK)
        stream_next_seqno(stream);
    return status;
}

static enum tandem_status segment_wait(struct tandem_stream *stream,
                                       struct staging_segment *segment)
{
    enum tandem_status status =
        stream_wait(stream, segment->event, device_timeout_ns(stream->device));
    if (status == TANDEM_OK)
        stream_mark_completed(stream, segment->seqno);
    if (status == TANDEM_NOT_READY)
        return last_error_set(
            status, "upload: earlier work still uses the stream's staging "
                    "memory: try again later, or close the device");
    return status;
}

/* ---- the ring ---- */

/* If there is memory, adds a segment to the ring after the current one and
 * makes the new segment current. */
static enum tandem_status ring_grow(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    struct staging_segment segment;
    uint32_t at = staging->count == 0 ? 0 : staging->current + 1;
    if (staging->count == MAX_STAGING_SEGMENTS)
        return TANDEM_OK;
    enum tandem_status status = segment_create(stream->device, &segment);
    if (status != TANDEM_OK || segment.memory == NULL)
        return status;
    memmove(&staging->segments[at + 1], &staging->segments[at],
            (staging->count - at) * sizeof(segment));
    staging->segments[at] = segment;
    staging->current = at;
    staging->count++;
    return TANDEM_OK;
}

/* Makes an empty segment current. Without memory, the ring can stay empty. */
static enum tandem_status ring_advance(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    const uint32_t count = staging->count;
    if (count == 0)
        return ring_grow(stream);
    enum tandem_status status =
        segment_add_event(stream, &staging->segments[staging->current]);
    if (status != TANDEM_OK)
        return status;
    uint32_t next = (staging->current + 1) % count;
    struct staging_segment *oldest = &staging->segments[next];
    if (!segment_is_free(stream, oldest)) {
        status = ring_grow(stream);
        if (status != TANDEM_OK || staging->count != count)
            return status;
        status = segment_wait(stream, oldest);
        if (status != TANDEM_OK)
            return status;
    }
    if (atomic_load(&stream->status) != TANDEM_OK)
        return stream_check(stream);
    segment_reset(oldest);
    staging->current = next;
    return TANDEM_OK;
}

enum tandem_status staging_reserve(struct tandem_stream *stream, uint64_t bytes,
                                   struct staging_range *out_range)
{
    struct staging *staging = &stream->staging;
    struct staging_segment *segment = &staging->segments[staging->current];
    memset(out_range, 0, sizeof(*out_range));
    if (bytes > STAGING_SEGMENT_BYTES)
        bytes = STAGING_SEGMENT_BYTES;
    /* If the current segment is free, reuse it: it is in the CPU caches. */
    if (staging->count != 0 && segment_is_free(stream, segment))
        segment_reset(segment);
    if (atomic_load(&stream->status) != TANDEM_OK)
        return stream_check(stream);
    if (staging->count == 0 || bytes > STAGING_SEGMENT_BYTES - segment->used) {
        enum tandem_status status = ring_advance(stream);
        if (status != TANDEM_OK || staging->count == 0)
            return status;
        segment = &staging->segments[staging->current];
    }
    out_range->memory = segment->memory + segment->used;
    out_range->bytes = bytes;
    /* The segment's event belongs to an earlier write, not to the next one. */
    segment_drop_event(segment);
    /* If the segment has no space for another write of this size, request the
     * event of this write, because a separate marker costs more time. */
    if (segment->used + 2 * bytes > STAGING_SEGMENT_BYTES)
        out_range->event = &segment->event;
    return TANDEM_OK;
}

void staging_commit(struct tandem_stream *stream,
                    const struct staging_range *range)
{
    struct staging *staging = &stream->staging;
    struct staging_segment *segment = &staging->segments[staging->current];
    segment->used +=
        (range->bytes + RANGE_ALIGNMENT - 1) & ~(uint64_t)(RANGE_ALIGNMENT - 1);
    segment->seqno = atomic_load(&stream->issued_seqno);
}

void staging_start(struct staging *staging)
{
    pthread_mutex_init(&staging->mutex, NULL);
    staging->count = staging->current = 0;
}

void staging_finish(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    for (uint32_t i = 0; i < staging->count; i++)
        segment_free(stream->device, &staging->segments[i]);
    pthread_mutex_destroy(&staging->mutex);
}

/* Frees segments without holding the mutex, because the driver may block. */
void staging_trim(struct tandem_stream *stream)
{
    struct staging *staging = &stream->staging;
    struct staging_segment segments[MAX_STAGING_SEGMENTS];
    uint32_t count = 0;
    if (pthread_mutex_trylock(&staging->mutex) != 0)
        return;
    while (count < staging->count &&
           segment_is_free(stream, &staging->segments[count]))
        count++;
    if (count == staging->count)
        staging->count = staging->current = 0;
    else
        count = 0;
    memcpy(segments, staging->segments, count * sizeof(segments[0]));
    pthread_mutex_unlock(&staging->mutex);
    for (uint32_t i = 0; i < count; i++)
        segment_free(stream->device, &segments[i]);
}
