/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the path of uploads and downloads; see transfer.h. */
#include "opencl/transfer/transfer.h"

#include "common/argument_check.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"
#include "opencl/transfer/ring_transfer.h"
#include "opencl/transfer/transfer_path.h"

/* ---- uploads ---- */

/* Enqueues a blocking write after all earlier commands have completed.
 * Therefore the driver has no pointer to the caller's memory if the wait times
 * out, and an error of the write cannot come from an earlier command. */
static enum tandem_status driver_upload(const struct transfer *transfer)
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
    status = transfer_enqueue(transfer, CL_TRUE, NULL);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    else
        buffer_poison(transfer->buffer, status);
    return status;
}

/* Uploads, and returns when the caller may change its memory. */
static enum tandem_status upload_wait(const struct transfer *transfer)
{
    enum tandem_status status = TANDEM_UNSUPPORTED;
    if (transfer_uses_ring(transfer))
        status = ring_upload(transfer);
    return status == TANDEM_UNSUPPORTED ? driver_upload(transfer) : status;
}

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags)
{
    const struct transfer transfer = {
        stream, buffer, offset, (void *)(uintptr_t)source, bytes, true};
    enum tandem_status status =
        buffer_begin_command(stream, buffer, offset, bytes, "upload", true);
    if (status == TANDEM_OK)
        status = check_flags("upload", flags, TANDEM_TRANSFER_ASYNC);
    if (status != TANDEM_OK || bytes == 0)
        return status;
    if (source == NULL)
        return argument_error(
            "upload: source is NULL, but the size is %llu bytes",
            (unsigned long long)bytes);
    status = (flags & TANDEM_TRANSFER_ASYNC) != 0
                 ? transfer_enqueue(&transfer, CL_FALSE, NULL)
                 : upload_wait(&transfer);
    if (status == TANDEM_OK)
        stream_note_overwrite(stream, buffer, bytes);
    return status;
}

/* ---- downloads ---- */

/* Downloads with a command that writes to the caller's memory.  A blocking
 * command is faster if that memory is pinned, but has no timeout. */
static enum tandem_status driver_download(const struct transfer *transfer,
                                          uint64_t timeout_ns)
{
    struct tandem_stream *stream = transfer->stream;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE ||
        device_shares_host_memory(stream->device))
        return transfer_wait(transfer, timeout_ns);
    enum tandem_status status = stream_drain(stream, timeout_ns);
    return status == TANDEM_OK ? transfer_enqueue(transfer, CL_TRUE, NULL)
                               : status;
}

/* A download that has started gets at least this time plus one ns per byte.
 * Otherwise a caller that polls with a short timeout would never get data. */
#define MIN_DOWNLOAD_NS 1000000000u

/* Waits for earlier commands if *timeout_ns is shorter than the minimum time of
 * a download, and then sets *timeout_ns to this minimum. */
static enum tandem_status download_begin(const struct transfer *transfer,
                                         uint64_t *timeout_ns)
{
    const uint64_t min_ns = MIN_DOWNLOAD_NS + transfer->bytes;
    if (*timeout_ns >= min_ns)
        return TANDEM_OK;
    enum tandem_status status = stream_drain(transfer->stream, *timeout_ns);
    *timeout_ns = min_ns;
    return status;
}

static enum tandem_status download_wait(const struct transfer *transfer,
                                        uint64_t timeout_ns)
{
    enum tandem_status status = download_begin(transfer, &timeout_ns);
    if (status != TANDEM_OK)
        return status;
    status = TANDEM_UNSUPPORTED;
    if (transfer_uses_ring(transfer))
        status = ring_download(transfer, timeout_ns);
    return status == TANDEM_UNSUPPORTED ? driver_download(transfer, timeout_ns)
                                        : status;
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
        buffer_begin_command(stream, buffer, offset, bytes, "download", false);
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
    status = download_wait(&transfer, timeout_ns);
    if (status == TANDEM_OK)
        stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    return status;
}
