/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues commands on buffers; see buffer_commands.h. */
#include "opencl/queue/buffer_commands.h"

#include "common/argument_check.h"
#include "common/last_error.h"
#include "opencl/device/cl_status.h"
#include "opencl/queue/hazard_tracking.h"

enum tandem_status buffer_begin_command(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const char *what, bool writes)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    status = buffer_check(stream->device, buffer);
    if (status != TANDEM_OK)
        return last_error_prefix(status, what);
    if (writes && atomic_load(&buffer->is_sealed))
        return sealed_error(what);
    status = check_range(what, offset, bytes, buffer->bytes);
    if (status == TANDEM_OK && bytes != 0)
        status = stream_begin_use(stream, buffer);
    return status;
}

/* Assigns a number to an enqueued command and records its use of `buffer`. */
static void note_command(struct tandem_stream *stream,
                         struct tandem_buffer *buffer, bool written)
{
    stream_next_seqno(stream);
    stream_note_use(stream, buffer, written);
}

enum tandem_status transfer_enqueue(const struct transfer *transfer,
                                    cl_bool blocking, cl_event *event)
{
    struct tandem_stream *stream = transfer->stream;
    const cl_mem mem = transfer->buffer->mem;
    const size_t offset = (size_t)transfer->offset;
    const size_t bytes = (size_t)transfer->bytes;
    cl_int code;
    bool retried = false;
    do
        code = transfer->upload
                   ? clEnqueueWriteBuffer(stream->queue, mem, blocking, offset,
                                          bytes, transfer->host, 0, NULL, event)
                   : clEnqueueReadBuffer(stream->queue, mem, blocking, offset,
                                         bytes, transfer->host, 0, NULL, event);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code == CL_SUCCESS)
        note_command(stream, transfer->buffer, transfer->upload);
    return status_from_cl(stream->device, code,
                          transfer->upload ? "clEnqueueWriteBuffer"
                                           : "clEnqueueReadBuffer");
}

enum tandem_status transfer_wait(const struct transfer *transfer,
                                 uint64_t timeout_ns)
{
    cl_event event = NULL;
    enum tandem_status status = transfer_enqueue(transfer, CL_FALSE, &event);
    if (status != TANDEM_OK)
        return status;
    status = stream_wait(transfer->stream, event, timeout_ns);
    clReleaseEvent(event);
    return status;
}

enum tandem_status buffer_copy(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes)
{
    enum tandem_status status = buffer_begin_command(
        stream, target, target_offset, bytes, "copy: target", true);
    if (status == TANDEM_OK)
        status = buffer_begin_command(stream, source, source_offset, bytes,
                                      "copy: source", false);
    if (status == TANDEM_OK)
        status = buffer_check_poison(source);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    uint64_t to = target->address + target_offset;
    uint64_t from = source->address + source_offset;
    if (to < from + bytes && from < to + bytes)
        return copy_overlap_error(source_offset, target_offset, bytes);
    cl_int code;
    bool retried = false;
    do
        code = clEnqueueCopyBuffer(stream->queue, source->mem, target->mem,
                                   (size_t)source_offset, (size_t)target_offset,
                                   (size_t)bytes, 0, NULL, NULL);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueCopyBuffer");
    note_command(stream, target, true);
    stream_note_use(stream, source, false);
    return TANDEM_OK;
}

enum tandem_status buffer_fill(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes)
{
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = check_fill(offset, bytes, pattern, pattern_bytes);
    if (status == TANDEM_OK)
        status =
            buffer_begin_command(stream, buffer, offset, bytes, "fill", true);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    cl_int code;
    bool retried = false;
    do
        code = clEnqueueFillBuffer(stream->queue, buffer->mem, pattern,
                                   pattern_bytes, (size_t)offset, (size_t)bytes,
                                   0, NULL, NULL);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueFillBuffer");
    note_command(stream, buffer, true);
    stream_note_overwrite(stream, buffer, bytes);
    return TANDEM_OK;
}

/* Address returned for maps of 0 bytes, which OpenCL does not support. */
static char empty_map;

static enum tandem_status check_map(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, uint64_t bytes,
                                    uint32_t flags)
{
    enum tandem_status status = buffer_begin_command(
        stream, buffer, offset, bytes, "map", (flags & TANDEM_MAP_WRITE) != 0);
    if (status == TANDEM_OK)
        status = check_flags("map", flags, TANDEM_MAP_READ | TANDEM_MAP_WRITE);
    if (status == TANDEM_OK && (flags & TANDEM_MAP_READ) != 0)
        status = buffer_check_poison(buffer);
    if (status == TANDEM_OK && flags == 0)
        status = argument_error("map: flags are 0; expected TANDEM_MAP_READ, "
                                "TANDEM_MAP_WRITE or both");
    return status;
}

static enum tandem_status map_range(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, uint64_t bytes,
                                    uint32_t flags, uint64_t timeout_ns,
                                    void **out_memory)
{
    const bool writes = (flags & TANDEM_MAP_WRITE) != 0;
    enum tandem_status status;
    cl_map_flags map_flags = (flags & TANDEM_MAP_READ) != 0 ? CL_MAP_READ : 0;
    map_flags |= writes ? CL_MAP_WRITE : 0;
    cl_int code = CL_SUCCESS;
    cl_event event = NULL;
    void *memory;
    bool retried = false;
    do
        memory = clEnqueueMapBuffer(stream->queue, buffer->mem, CL_FALSE,
                                    map_flags, (size_t)offset, (size_t)bytes, 0,
                                    NULL, &event, &code);
    while (stream_trim_for_retry(stream, code, &retried));
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueMapBuffer");
    uint64_t seqno = stream_next_seqno(stream);
    stream_note_use(stream, buffer, writes);
    status = stream_wait(stream, event, timeout_ns);
    clReleaseEvent(event);
    if (status != TANDEM_OK) {
        /* The map command can still complete after the timeout, so unmap. */
        clEnqueueUnmapMemObject(stream->queue, buffer->mem, memory, 0, NULL,
                                NULL);
        stream_next_seqno(stream);
        return status;
    }
    stream_mark_completed(stream, seqno);
    *out_memory = memory;
    return TANDEM_OK;
}

enum tandem_status buffer_map(struct tandem_stream *stream,
                              struct tandem_buffer *buffer, uint64_t offset,
                              uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, void **out_memory)
{
    enum tandem_status status = check_map(stream, buffer, offset, bytes, flags);
    uint32_t unmapped = 0;
    if (status != TANDEM_OK)
        return status;
    if (!atomic_compare_exchange_strong(&buffer->is_mapped, &unmapped, 1))
        return argument_error("map: the buffer is mapped; unmap it first");
    if (bytes == 0) {
        *out_memory = &empty_map;
        return TANDEM_OK;
    }
    status =
        map_range(stream, buffer, offset, bytes, flags, timeout_ns, out_memory);
    if (status != TANDEM_OK)
        atomic_store(&buffer->is_mapped, 0);
    return status;
}

enum tandem_status buffer_unmap(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, void *memory)
{
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    status = buffer_check_owner(stream->device, buffer);
    if (status != TANDEM_OK)
        return last_error_prefix(status, "unmap");
    if (atomic_load(&buffer->is_mapped) == 0 || memory == NULL)
        return argument_error(
            "unmap: the memory is not mapped from this buffer");
    if (memory == &empty_map) {
        atomic_store(&buffer->is_mapped, 0);
        return TANDEM_OK;
    }
    cl_int code = clEnqueueUnmapMemObject(stream->queue, buffer->mem, memory, 0,
                                          NULL, NULL);
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueUnmapMemObject");
    note_command(stream, buffer, !atomic_load(&buffer->is_sealed));
    atomic_store(&buffer->is_mapped, 0);
    return TANDEM_OK;
}
