/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the path of uploads and downloads; see transfer.h. */
#include "opencl/transfer/transfer.h"

#include "common/argument_check.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/readback_buffer.h"
#include "opencl/transfer/bulk_transfer.h"

/* ---- uploads ---- */

/* Waits for earlier commands and then enqueues a blocking write. The wait has a
 * timeout, after which the driver holds no pointer to the caller's memory. An
 * error of the write cannot come from an earlier command. */
static enum tandem_status write_blocking(struct tandem_stream *stream,
                                         struct tandem_buffer *buffer,
                                         uint64_t offset, const void *source,
                                         uint64_t bytes)
{
    enum tandem_status status =
        stream_drain(stream, device_timeout_ns(stream->device));
    if (status == TANDEM_NOT_READY)
        return last_error_set(status,
                              "upload: earlier work of the stream has not "
                              "completed: try again later, or close the "
                              "device");
    if (status != TANDEM_OK)
        return status;
    status = bulk_transfer_supports(stream->device, bytes)
                 ? bulk_upload(stream, buffer, offset, source, bytes)
                 : buffer_enqueue_write(stream, buffer, offset, source, bytes,
                                        CL_TRUE, NULL);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    else
        buffer_poison(buffer, status);
    return status;
}

/* Copies the source to staging memory piece by piece and enqueues the writes.
 * Flushes large pieces, so that their transfer overlaps with the next copy. */
static enum tandem_status
write_staged(struct tandem_stream *stream, struct tandem_buffer *buffer,
             uint64_t offset, const unsigned char *source, uint64_t bytes)
{
    enum tandem_status status = TANDEM_OK;
    struct staging_range range;
    bool written = false;
    pthread_mutex_lock(&stream->staging.mutex);
    while (status == TANDEM_OK && bytes != 0) {
        status = staging_reserve(stream, bytes, &range);
        if (status != TANDEM_OK)
            break;
        if (range.memory == NULL) {
            status = write_blocking(stream, buffer, offset, source, bytes);
            break;
        }
        bulk_copy_to_staging(stream->device, range.memory, source, range.bytes);
        status = buffer_enqueue_write(stream, buffer, offset, range.memory,
                                      range.bytes, CL_FALSE, range.event);
        if (status != TANDEM_OK)
            break;
        written = true;
        staging_commit(stream, &range);
        offset += range.bytes;
        source += range.bytes;
        bytes -= range.bytes;
        if (bytes != 0 || range.bytes >= MIN_BULK_BYTES)
            status = stream_flush(stream);
    }
    pthread_mutex_unlock(&stream->staging.mutex);
    if (written && status != TANDEM_OK)
        buffer_poison(buffer, status);
    return status;
}

/* On an idle stream, a blocking write of at least this size is faster than a
 * copy to staging memory.  CPU devices take longer to start a write. */
#define MIN_DIRECT_BYTES MIN_BULK_BYTES
#define MIN_DIRECT_BYTES_CPU ((uint64_t)512 << 10)

/* Returns true if the upload should go through staging memory, so that it does
 * not wait for earlier work. Larger uploads would wait for staging memory. */
static bool is_staged(struct tandem_stream *stream, const void *source,
                      uint64_t bytes)
{
    bool cpu = stream->device->hardware->info.kind == TANDEM_DEVICE_CPU;
    bool idle = atomic_load(&stream->completed_seqno) ==
                atomic_load(&stream->issued_seqno);
    return bytes <= STAGING_BYTES &&
           (!idle || bytes < (cpu ? MIN_DIRECT_BYTES_CPU : MIN_DIRECT_BYTES) ||
            bulk_transfer_prefers_staging(stream->device, source, bytes));
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    enum tandem_status status =
        buffer_begin_command(stream, buffer, offset, bytes, "upload");
    if (status == TANDEM_OK)
        status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "upload: source is NULL");
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        status = buffer_enqueue_write(stream, buffer, offset, source, bytes,
                                      CL_FALSE, NULL);
    else if (is_staged(stream, source, bytes))
        status = write_staged(stream, buffer, offset, source, bytes);
    else
        status = write_blocking(stream, buffer, offset, source, bytes);
    if (status == TANDEM_OK)
        buffer_clear_poison(buffer, bytes);
    return status;
}

/* ---- downloads ---- */

/* A download that has started gets at least this time plus one ns per byte.
 * Otherwise a caller that polls with a short timeout would never get data. */
#define MIN_TRANSFER_NS 1000000000u

/* Returns the deadline of a download as a time of monotonic_ns. */
static uint64_t transfer_deadline(uint64_t timeout_ns, uint64_t bytes)
{
    const uint64_t now = monotonic_ns();
    if (timeout_ns < MIN_TRANSFER_NS + bytes)
        timeout_ns = MIN_TRANSFER_NS + bytes;
    return timeout_ns < TANDEM_TIMEOUT_INFINITE - now ? now + timeout_ns
                                                      : TANDEM_TIMEOUT_INFINITE;
}

static enum tandem_status read_blocking(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, void *target,
                                        uint64_t bytes, uint64_t timeout_ns)
{
    const uint64_t deadline_ns = transfer_deadline(timeout_ns, bytes);
    enum tandem_status status = TANDEM_OK;
    bool bulk = bulk_transfer_supports(stream->device, bytes);
    bool drains = bulk || driver_wait_is_spinning(stream->device);
    /* Drains the stream for the same reasons as write_blocking. */
    if (drains)
        status = stream_drain(stream, timeout_ns);
    if (status == TANDEM_OK && bulk)
        status =
            bulk_download(stream, buffer, offset, target, bytes, deadline_ns);
    else if (status == TANDEM_OK && drains &&
             timeout_ns == TANDEM_TIMEOUT_INFINITE)
        status = buffer_enqueue_read(stream, buffer, offset, target, bytes,
                                     CL_TRUE, NULL);
    else if (status == TANDEM_OK)
        status = buffer_read(stream, buffer, offset, target, bytes, timeout_ns);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    return status;
}

enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    enum tandem_status status =
        buffer_begin_command(stream, buffer, offset, bytes, "download");
    if (status == TANDEM_OK)
        status = check_flags("download", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = buffer_check_poison(buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (target == NULL)
        return last_error_set(TANDEM_INVALID_ARGUMENT,
                              "download: target is NULL");
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        return buffer_enqueue_read(stream, buffer, offset, target, bytes,
                                   CL_FALSE, NULL);
    if (readback_supports(stream, bytes, timeout_ns))
        return readback_read(stream, buffer, offset, target, bytes, timeout_ns);
    return read_blocking(stream, buffer, offset, target, bytes, timeout_ns);
}
