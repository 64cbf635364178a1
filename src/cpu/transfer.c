/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads, downloads, copies, fills and maps buffers.  Every transfer is
 * complete when its call returns.  Any thread may call, but only one at a
 * time per stream. */
#include "config.h"

#include <string.h>

#include "common/last_error.h"
#include "cpu/objects.h"

/* Returns TANDEM_OK if the stream and the buffer are live, and the buffer is
 * unmapped, belongs to the stream's device, contains the byte range, and is not
 * sealed if the transfer writes it. */
static enum tandem_status transfer_check(const char *what,
                                         struct tandem_stream *stream,
                                         const struct tandem_buffer *buffer,
                                         uint64_t offset, uint64_t bytes,
                                         bool writes)
{
    struct address_range span;
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    status = buffer_span(stream->owned.device, buffer, &span);
    if (status != TANDEM_OK)
        return last_error_prefix(status, what);
    if (writes && span.is_sealed)
        return sealed_error(what);
    return check_range(what, offset, bytes, span.bytes);
}

/* Checks the arguments of transfer `what` between a buffer and the host memory
 * `memory`, which error messages call `name`. */
static enum tandem_status
host_transfer_check(const char *what, struct tandem_stream *stream,
                    const struct tandem_buffer *buffer, uint64_t offset,
                    uint64_t bytes, uint32_t flags, const char *name,
                    const void *memory, bool writes)
{
    enum tandem_status status =
        transfer_check(what, stream, buffer, offset, bytes, writes);
    if (status == TANDEM_OK)
        status = check_flags(what, flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK && bytes > 0 && memory == NULL)
        return argument_error("%s: %s is NULL, but the size is %llu bytes",
                              what, name, (unsigned long long)bytes);
    return status;
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    enum tandem_status status = host_transfer_check(
        "upload", stream, buffer, offset, bytes, flags, "source", source, true);
    /* The ranges can overlap, because `source` can lie in imported memory. */
    if (status == TANDEM_OK && bytes > 0)
        memmove(buffer->base + offset, source, (size_t)bytes);
    return status;
}

enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    (void)timeout_ns;
    enum tandem_status status =
        host_transfer_check("download", stream, buffer, offset, bytes, flags,
                            "target", target, false);
    if (status == TANDEM_OK && bytes > 0)
        memmove(target, buffer->base + offset, (size_t)bytes);
    return status;
}

enum tandem_status transfer_copy(struct tandem_stream *stream,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes)
{
    enum tandem_status status = transfer_check("copy: target", stream, target,
                                               target_offset, bytes, true);
    if (status == TANDEM_OK)
        status = transfer_check("copy: source", stream, source, source_offset,
                                bytes, false);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    const unsigned char *from = source->base + source_offset;
    unsigned char *to = target->base + target_offset;
    if (from < to + bytes && to < from + bytes)
        return copy_overlap_error(source_offset, target_offset, bytes);
    memcpy(to, from, (size_t)bytes);
    return TANDEM_OK;
}

enum tandem_status transfer_fill(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 uint64_t bytes, const void *pattern,
                                 uint32_t pattern_bytes)
{
    unsigned char copy[8];
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = check_fill(offset, bytes, pattern, pattern_bytes);
    if (status == TANDEM_OK)
        status = transfer_check("fill", stream, buffer, offset, bytes, true);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    unsigned char *to = buffer->base + offset;
    memcpy(copy, pattern, pattern_bytes);
    if (pattern_bytes == 1) {
        memset(to, copy[0], (size_t)bytes);
        return TANDEM_OK;
    }
    memcpy(to, copy, pattern_bytes);
    for (uint64_t done = pattern_bytes; done < bytes;) {
        uint64_t more = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, (size_t)more);
        done += more;
    }
    return TANDEM_OK;
}

enum tandem_status transfer_map(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, uint64_t offset,
                                uint64_t bytes, uint32_t flags,
                                uint64_t timeout_ns, void **out_memory)
{
    (void)timeout_ns;
    if (out_memory == NULL)
        return argument_error("map: out_memory is NULL");
    *out_memory = NULL;
    uint32_t unmapped = 0;
    enum tandem_status status = transfer_check(
        "map", stream, buffer, offset, bytes, (flags & TANDEM_MAP_WRITE) != 0);
    if (status == TANDEM_OK)
        status = check_flags("map", flags, TANDEM_MAP_READ | TANDEM_MAP_WRITE);
    if (status != TANDEM_OK)
        return status;
    if (flags == 0)
        return argument_error("map: flags are 0; expected TANDEM_MAP_READ, "
                              "TANDEM_MAP_WRITE or both");
    if (!__atomic_compare_exchange_n(&buffer->is_mapped, &unmapped, 1, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return argument_error("map: the buffer is mapped; unmap it first");
    *out_memory = buffer->base + offset;
    return TANDEM_OK;
}

enum tandem_status buffer_seal(struct tandem_buffer *buffer)
{
    struct address_range span;
    enum tandem_status status = handle_check(&buffer_pool, buffer, "buffer",
                                             "a buffer, or it was freed");
    if (status == TANDEM_OK)
        status = buffer_span(buffer->owned.device, buffer, &span);
    if (status != TANDEM_OK)
        return last_error_prefix(status, "buffer_seal");
    __atomic_store_n(&buffer->is_sealed, true, __ATOMIC_RELAXED);
    return TANDEM_OK;
}

enum tandem_status transfer_unmap(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer, void *memory)
{
    uint32_t mapped = 1;
    enum tandem_status status = stream_check(stream);
    if (status != TANDEM_OK)
        return status;
    status = buffer_check(stream->owned.device, buffer);
    if (status != TANDEM_OK)
        return last_error_prefix(status, "unmap");
    const unsigned char *at = memory;
    if (at == NULL || at < buffer->base || at > buffer->base + buffer->bytes ||
        !__atomic_compare_exchange_n(&buffer->is_mapped, &mapped, 0, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return argument_error(
            "unmap: the memory is not mapped from this buffer");
    return TANDEM_OK;
}
