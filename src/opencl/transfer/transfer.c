/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the path of uploads and downloads; see transfer.h. */
#include "opencl/transfer/transfer.h"

#include <string.h>

#include "common/argument_check.h"
#include "opencl/device/event_poll.h"
#include "opencl/device/quirks.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/transfer/bulk_transfer.h"

/* ---- uploads ---- */

/* Enqueues a blocking write after all earlier commands have completed.
 * Therefore the driver has no pointer to the caller's memory if the wait times
 * out, and an error of the write cannot come from an earlier command. */
static enum tandem_status write_blocking(const struct transfer *transfer)
{
    struct tandem_stream *stream = transfer->stream;
    enum tandem_status status =
        stream_drain(stream, device_timeout_ns(stream->device));
    if (status == TANDEM_NOT_READY)
        return last_error_set(
            status, "upload: earlier work of the stream has not completed: try "
                    "again later, or close the device");
    if (status != TANDEM_OK)
        return status;
    status = bulk_transfer_supports(stream->device, transfer->bytes)
                 ? bulk_transfer_run(transfer, TANDEM_TIMEOUT_INFINITE)
                 : transfer_enqueue(transfer, CL_TRUE, NULL);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    else
        buffer_poison(transfer->buffer, status);
    return status;
}

/* Copies the source to staging memory in pieces and enqueues a write of each.
 * Flushes large pieces, so that their transfer overlaps with the next copy. */
static enum tandem_status write_staged(const struct transfer *transfer)
{
    struct tandem_stream *stream = transfer->stream;
    struct transfer left = *transfer; /* the part that is not enqueued yet */
    enum tandem_status status = TANDEM_OK;
    struct staging_range range;
    pthread_mutex_lock(&stream->staging.mutex);
    while (status == TANDEM_OK && left.bytes != 0) {
        status = staging_reserve(stream, left.bytes, &range);
        if (status != TANDEM_OK)
            break;
        if (range.memory == NULL) {
            status = write_blocking(&left);
            break;
        }
        bulk_copy_to_staging(stream->device, range.memory, left.host,
                             range.bytes);
        const struct transfer piece = {stream,       left.buffer, left.offset,
                                       range.memory, range.bytes, true};
        status = transfer_enqueue(&piece, CL_FALSE, range.event);
        if (status != TANDEM_OK)
            break;
        staging_commit(stream, &range);
        left.offset += range.bytes;
        left.host += range.bytes;
        left.bytes -= range.bytes;
        if (left.bytes != 0 || range.bytes >= MIN_BULK_BYTES)
            status = stream_flush(stream);
    }
    pthread_mutex_unlock(&stream->staging.mutex);
    if (left.bytes != transfer->bytes && status != TANDEM_OK)
        buffer_poison(transfer->buffer, status);
    return status;
}

/* On an idle stream, a blocking write of at least this size is faster than a
 * copy to staging memory. CPU drivers take longer to start a write. */
#define MIN_DIRECT_BYTES MIN_BULK_BYTES
#define MIN_DIRECT_BYTES_CPU ((uint64_t)512 << 10)

/* Returns true if the upload should go through staging memory, so that it does
 * not wait for earlier work.  Uploads above STAGING_BYTES would wait anyway. */
static bool is_staged(const struct transfer *transfer)
{
    const struct tandem_stream *stream = transfer->stream;
    const uint64_t bytes = transfer->bytes;
    bool cpu = stream->device->hardware->info.kind == TANDEM_DEVICE_CPU;
    bool idle = atomic_load(&stream->completed_seqno) ==
                atomic_load(&stream->issued_seqno);
    return bytes <= STAGING_BYTES &&
           (!idle || bytes < (cpu ? MIN_DIRECT_BYTES_CPU : MIN_DIRECT_BYTES) ||
            bulk_transfer_prefers_staging(stream->device, transfer->host,
                                          bytes));
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    const struct transfer transfer = {
        stream, buffer, offset, (void *)(uintptr_t)source, bytes, true};
    enum tandem_status status =
        buffer_begin_command(stream, buffer, offset, bytes, "upload");
    if (status == TANDEM_OK)
        status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return argument_error(
            "upload: source is NULL, but the size is %llu bytes",
            (unsigned long long)bytes);
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        status = transfer_enqueue(&transfer, CL_FALSE, NULL);
    else
        status = is_staged(&transfer) ? write_staged(&transfer)
                                      : write_blocking(&transfer);
    if (status == TANDEM_OK)
        stream_note_overwrite(stream, buffer, bytes);
    return status;
}

/* ---- downloads ---- */

/* Maximum size of a download through the readback buffer, which is pinned
 * memory of the stream. If the driver's wait functions spin, a blocking
 * download spins too. A download to the readback buffer does not block, so
 * wait_event waits without spinning, but the data is copied twice. */
#define MAX_READBACK_BYTES ((uint64_t)256 << 10)

/* Returns true if the driver's own waits keep a CPU busy. */
static bool has_busy_waits(const struct tandem_device *device)
{
    return (device->hardware->quirks & QUIRK_BUSY_WAIT) != 0;
}

/* Returns true if a download of `bytes` bytes should use the readback buffer.
 * The first call allocates the buffer, which can take up to timeout_ns. */
static bool readback_supports(struct tandem_stream *stream, uint64_t bytes,
                              uint64_t timeout_ns)
{
    if (bytes > MAX_READBACK_BYTES || !has_busy_waits(stream->device))
        return false;
    if (stream->readback == NULL && !stream->readback_failed) {
        uint64_t limit_ns = device_timeout_ns(stream->device);
        enum tandem_status status = pinned_alloc(
            stream->device, MAX_READBACK_BYTES,
            timeout_ns < limit_ns ? timeout_ns : limit_ns, &stream->readback);
        stream->readback_failed =
            status != TANDEM_OK && status != TANDEM_NOT_READY;
    }
    return stream->readback != NULL;
}

/* Downloads through the readback buffer.  Changes the memory at transfer->host
 * only if the download succeeds. */
static enum tandem_status readback_read(const struct transfer *transfer,
                                        uint64_t timeout_ns)
{
    struct transfer readback = *transfer;
    readback.host = transfer->stream->readback;
    /* An earlier download that timed out ends first: the queue is in-order. */
    enum tandem_status status = transfer_wait(&readback, timeout_ns);
    if (status == TANDEM_OK)
        memcpy(transfer->host, readback.host, (size_t)transfer->bytes);
    return status;
}

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

static enum tandem_status read_blocking(const struct transfer *transfer,
                                        uint64_t timeout_ns)
{
    struct tandem_stream *stream = transfer->stream;
    const uint64_t deadline_ns = transfer_deadline(timeout_ns, transfer->bytes);
    enum tandem_status status = TANDEM_OK;
    bool bulk = bulk_transfer_supports(stream->device, transfer->bytes);
    bool drains = bulk || has_busy_waits(stream->device);
    /* Wait for earlier commands for the same reasons as write_blocking. */
    if (drains)
        status = stream_drain(stream, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    if (bulk)
        return bulk_transfer_run(transfer, deadline_ns);
    return drains && timeout_ns == TANDEM_TIMEOUT_INFINITE
               ? transfer_enqueue(transfer, CL_TRUE, NULL)
               : transfer_wait(transfer, timeout_ns);
}

enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns)
{
    const struct transfer transfer = {stream, buffer, offset,
                                      target, bytes,  false};
    enum tandem_status status =
        buffer_begin_command(stream, buffer, offset, bytes, "download");
    if (status == TANDEM_OK)
        status = check_flags("download", flags, TANDEM_TRANSFER_ASYNC);
    if (status == TANDEM_OK)
        status = buffer_check_poison(buffer);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (target == NULL)
        return argument_error(
            "download: target is NULL, but the size is %llu bytes",
            (unsigned long long)bytes);
    if ((flags & TANDEM_TRANSFER_ASYNC) != 0)
        return transfer_enqueue(&transfer, CL_FALSE, NULL);
    status = readback_supports(stream, bytes, timeout_ns)
                 ? readback_read(&transfer, timeout_ns)
                 : read_blocking(&transfer, timeout_ns);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    return status;
}
