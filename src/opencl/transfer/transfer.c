/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers, copies, fills and maps. */
#include "opencl/transfer/transfer.h"

#include <string.h>

#include "common/argument_check.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/readback_buffer.h"
#include "opencl/device/cl_status.h"

/* Judges one range of a buffer and makes the stream wait for its memory. */
static enum tandem_status range_begin(struct tandem_stream *stream,
                                      struct tandem_buffer *buffer,
                                      uint64_t offset, uint64_t bytes,
                                      const char *what)
{
    enum tandem_status status = buffer_check(stream->device, buffer, what);
    if (status == TANDEM_OK)
        status = check_range(what, offset, bytes, buffer->bytes);
    if (status == TANDEM_OK && bytes != 0)
        status = stream_use(stream, buffer);
    return status;
}

/* After a write that left no byte as it was. */
static void cure(struct tandem_buffer *buffer, uint64_t bytes)
{
    if (bytes == buffer->bytes)
        atomic_store_explicit(&buffer->poison, TANDEM_OK, memory_order_relaxed);
}

/* The content of a buffer that was written in part is nobody's. */
static void spoil(struct tandem_buffer *buffer, enum tandem_status status)
{
    if (status == TANDEM_NOT_READY)
        status = TANDEM_FAILED;
    atomic_store_explicit(&buffer->poison, (uint32_t)status,
                          memory_order_relaxed);
}

enum tandem_status transfer_write(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, const void *source,
                                  uint64_t bytes, cl_bool blocking,
                                  cl_event *event)
{
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = clEnqueueWriteBuffer(stream->queue, buffer->mem, blocking,
                                    (size_t)offset, (size_t)bytes, source, 0,
                                    NULL, event);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueWriteBuffer");
    stream_issue(stream);
    stream_used(stream, buffer, true);
    return TANDEM_OK;
}

/* The driver is given a transfer once there is nothing left to wait for: the
 * wait is then ours and has a limit, no command is left with the caller's
 * memory, and what the transfer fails with is its own. */
static enum tandem_status write_blocking(struct tandem_stream *stream,
                                         struct tandem_buffer *buffer,
                                         uint64_t offset, const void *source,
                                         uint64_t bytes)
{
    enum tandem_status status =
        stream_settle(stream, device_timeout_ns(stream->device));
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                           "upload: the stream's earlier work is under way and "
                           "may never end: try again later, or close the "
                           "device");
    if (status != TANDEM_OK)
        return status;
    status = haul_serves(stream->device, bytes)
                 ? bulk_upload(stream, buffer, offset, source, bytes)
                 : transfer_write(stream, buffer, offset, source, bytes,
                                  CL_TRUE, NULL);
    if (status == TANDEM_OK)
        stream_passed(stream, atomic_load(&stream->issued));
    else
        spoil(buffer, status);
    return status;
}

/* Copies the source, piece by piece, to where it is written from.  A large one
 * is flushed, so that it is on its way while the next is copied. */
static enum tandem_status
write_staged(struct tandem_stream *stream, struct tandem_buffer *buffer,
             uint64_t offset, const unsigned char *source, uint64_t bytes)
{
    enum tandem_status status = TANDEM_OK;
    struct staging_room room;
    bool begun = false;
    pthread_mutex_lock(&stream->staging.mutex);
    while (status == TANDEM_OK && bytes != 0) {
        status = staging_take(stream, bytes, &room);
        if (status != TANDEM_OK)
            break;
        if (room.memory == NULL) {
            status = write_blocking(stream, buffer, offset, source, bytes);
            break;
        }
        haul_fill(stream->device, room.memory, source, room.bytes);
        status = transfer_write(stream, buffer, offset, room.memory, room.bytes,
                               CL_FALSE, room.event);
        if (status != TANDEM_OK)
            break;
        begun = true;
        staging_written(stream, &room);
        offset += room.bytes;
        source += room.bytes;
        bytes -= room.bytes;
        if (bytes != 0 || room.bytes >= HAUL_BYTES)
            status = stream_flush(stream);
    }
    pthread_mutex_unlock(&stream->staging.mutex);
    if (begun && status != TANDEM_OK)
        spoil(buffer, status);
    return status;
}

/* With nothing to wait for, so much is written sooner than it is copied: to a
 * GPU, and on a processor, whose driver takes longer to begin. */
#define DIRECT_BYTES HAUL_BYTES
#define CPU_DIRECT_BYTES ((uint64_t)512 << 10)

/* Whether to copy the source first, so that the upload waits for no work.
 * What is larger than the staging memory would wait anyhow, for room in it. */
static bool is_staged(struct tandem_stream *stream, const void *source,
                      uint64_t bytes)
{
    bool cpu = stream->device->hardware->info.kind == TANDEM_DEVICE_CPU;
    bool idle = atomic_load(&stream->completed) == atomic_load(&stream->issued);
    return bytes <= STAGING_BYTES &&
           (!idle || bytes < (cpu ? CPU_DIRECT_BYTES : DIRECT_BYTES) ||
            haul_stages(stream->device, source, bytes));
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    enum tandem_status status =
        range_begin(stream, buffer, offset, bytes, "upload");
    if (status == TANDEM_OK)
        status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "upload: source is NULL");
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        status = transfer_write(stream, buffer, offset, source, bytes, CL_FALSE,
                               NULL);
    else if (is_staged(stream, source, bytes))
        status = write_staged(stream, buffer, offset, source, bytes);
    else
        status = write_blocking(stream, buffer, offset, source, bytes);
    if (status == TANDEM_OK)
        cure(buffer, bytes);
    return status;
}

enum tandem_status transfer_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 cl_bool blocking, cl_event *event)
{
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = clEnqueueReadBuffer(stream->queue, buffer->mem, blocking,
                                   (size_t)offset, (size_t)bytes, target, 0,
                                   NULL, event);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueReadBuffer");
    stream_issue(stream);
    stream_used(stream, buffer, false);
    return TANDEM_OK;
}

enum tandem_status transfer_fetch(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, void *target,
                                  uint64_t bytes, uint64_t timeout_ns)
{
    cl_event event = NULL;
    enum tandem_status status = transfer_read(stream, buffer, offset, target,
                                              bytes, CL_FALSE, &event);
    if (status != TANDEM_OK)
        return status;
    status = stream_wait(stream, event, timeout_ns);
    clReleaseEvent(event);
    return status;
}

/* A large transfer that has begun is given so long, and as many ns as it has
 * bytes: who polls for it would never have it else. */
#define BEGUN_NS 1000000000u

/* Of wait_clock. */
static uint64_t deadline_after(uint64_t timeout_ns, uint64_t bytes)
{
    const uint64_t now = wait_clock();
    if (timeout_ns < BEGUN_NS + bytes)
        timeout_ns = BEGUN_NS + bytes;
    return timeout_ns < TANDEM_TIMEOUT_INFINITE - now ? now + timeout_ns
                                             : TANDEM_TIMEOUT_INFINITE;
}

static enum tandem_status read_wait(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, void *target,
                                    uint64_t bytes, uint64_t timeout_ns)
{
    const uint64_t deadline_ns = timeout_ns == TANDEM_TIMEOUT_INFINITE
                                     ? timeout_ns
                                     : deadline_after(timeout_ns, bytes);
    enum tandem_status status = TANDEM_OK;
    bool hauls = haul_serves(stream->device, bytes);
    bool settles = hauls || wait_busy(stream->device);
    /* So that the wait is ours, as in write_blocking. */
    if (settles)
        status = stream_settle(stream, timeout_ns);
    if (status == TANDEM_OK && hauls)
        status = haul_download(stream, buffer, offset, target, bytes,
                               deadline_ns);
    else if (status == TANDEM_OK && settles &&
             timeout_ns == TANDEM_TIMEOUT_INFINITE)
        status = transfer_read(stream, buffer, offset, target, bytes, CL_TRUE,
                               NULL);
    else if (status == TANDEM_OK)
        status = transfer_fetch(stream, buffer, offset, target, bytes,
                                timeout_ns);
    if (status == TANDEM_OK)
        stream_passed(stream, atomic_load(&stream->issued));
    return status;
}

enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    enum tandem_status status =
        range_begin(stream, buffer, offset, bytes, "download");
    if (status == TANDEM_OK)
        status = check_flags("download", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = buffer_poisoned(buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (target == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "download: target is NULL");
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        return transfer_read(stream, buffer, offset, target, bytes, CL_FALSE,
                            NULL);
    if (readback_serves(stream, bytes, timeout_ns))
        return readback_read(stream, buffer, offset, target, bytes, timeout_ns);
    return read_wait(stream, buffer, offset, target, bytes, timeout_ns);
}

enum tandem_status transfer_copy(struct tandem_stream *stream,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes)
{
    enum tandem_status status =
        range_begin(stream, target, target_offset, bytes, "copy: target");
    if (status == TANDEM_OK)
        status =
            range_begin(stream, source, source_offset, bytes, "copy: source");
    if (status == TANDEM_OK)
        status = buffer_poisoned(source);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    uint64_t to = target->address + target_offset;
    uint64_t from = source->address + source_offset;
    if (to < from + bytes && from < to + bytes)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "copy: %llu bytes from offset %llu to %llu of one "
                           "buffer overlap",
                           (unsigned long long)bytes,
                           (unsigned long long)source_offset,
                           (unsigned long long)target_offset);
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = clEnqueueCopyBuffer(
            stream->queue, source->mem, target->mem, (size_t)source_offset,
            (size_t)target_offset, (size_t)bytes, 0, NULL, NULL);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueCopyBuffer");
    stream_issue(stream);
    stream_used(stream, target, true);
    stream_used(stream, source, false);
    return TANDEM_OK;
}

static enum tandem_status check_pattern(uint64_t offset, uint64_t bytes,
                                        const void *pattern,
                                        uint32_t pattern_bytes)
{
    if (pattern == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT, "fill: pattern is NULL");
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
        pattern_bytes != 8)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "fill: pattern_bytes is %u, not 1, 2, 4 or 8",
                           pattern_bytes);
    if (offset % pattern_bytes != 0 || bytes % pattern_bytes != 0)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "fill: offset %llu or bytes %llu is no multiple of "
                           "pattern_bytes %u",
                           (unsigned long long)offset,
                           (unsigned long long)bytes, pattern_bytes);
    return TANDEM_OK;
}

enum tandem_status transfer_fill(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 uint64_t bytes, const void *pattern,
                                 uint32_t pattern_bytes)
{
    enum tandem_status status =
        check_pattern(offset, bytes, pattern, pattern_bytes);
    if (status == TANDEM_OK)
        status = range_begin(stream, buffer, offset, bytes, "fill");
    if (status != TANDEM_OK || bytes == 0)
        return status;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = clEnqueueFillBuffer(stream->queue, buffer->mem, pattern,
                                   pattern_bytes, (size_t)offset,
                                   (size_t)bytes, 0, NULL, NULL);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueFillBuffer");
    stream_issue(stream);
    stream_used(stream, buffer, true);
    cure(buffer, bytes);
    return TANDEM_OK;
}

/* Where a map of no bytes is, of which drivers know nothing. */
static char nothing;

enum tandem_status transfer_map(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, uint64_t offset,
                                uint64_t bytes, uint32_t flags,
                                uint64_t timeout_ns, void **out_memory)
{
    enum tandem_status status =
        range_begin(stream, buffer, offset, bytes, "map");
    if (status == TANDEM_OK)
        status =
            check_flags("map", flags, TANDEM_MAP_READ | TANDEM_MAP_WRITE);
    if (status == TANDEM_OK && (flags & TANDEM_MAP_READ) != 0)
        status = buffer_poisoned(buffer);
    if (status != TANDEM_OK)
        return status;
    if (flags == 0)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "map: flags are 0; TANDEM_MAP_READ or "
                           "TANDEM_MAP_WRITE is needed");
    if (bytes == 0) {
        atomic_fetch_add(&buffer->maps, 1);
        *out_memory = &nothing;
        return TANDEM_OK;
    }
    cl_map_flags how = (flags & TANDEM_MAP_READ) != 0 ? CL_MAP_READ : 0;
    how |= (flags & TANDEM_MAP_WRITE) != 0 ? CL_MAP_WRITE : 0;
    cl_int code = CL_SUCCESS;
    cl_event event = NULL;
    void *memory = NULL;
    for (int attempt = 0; attempt < 2; attempt++) {
        memory = clEnqueueMapBuffer(stream->queue, buffer->mem, CL_FALSE, how,
                                    (size_t)offset, (size_t)bytes, 0, NULL,
                                    &event, &code);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueMapBuffer");
    uint64_t serial = stream_issue(stream);
    stream_used(stream, buffer, (flags & TANDEM_MAP_WRITE) != 0);
    status = stream_wait(stream, event, timeout_ns);
    clReleaseEvent(event);
    if (status != TANDEM_OK) {
        clEnqueueUnmapMemObject(stream->queue, buffer->mem, memory, 0, NULL,
                                NULL);
        stream_issue(stream);
        return status;
    }
    stream_passed(stream, serial);
    atomic_fetch_add(&buffer->maps, 1);
    *out_memory = memory;
    return TANDEM_OK;
}

enum tandem_status transfer_unmap(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer, void *memory)
{
    if (!buffer_live(buffer) || buffer->device != stream->device ||
        atomic_load(&buffer->maps) == 0 || memory == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                           "unmap: buffer %p is not mapped", (void *)buffer);
    if (memory == &nothing) {
        atomic_fetch_sub(&buffer->maps, 1);
        return TANDEM_OK;
    }
    cl_int code = clEnqueueUnmapMemObject(stream->queue, buffer->mem, memory, 0,
                                          NULL, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueUnmapMemObject");
    stream_issue(stream);
    stream_used(stream, buffer, true);
    atomic_fetch_sub(&buffer->maps, 1);
    return TANDEM_OK;
}
