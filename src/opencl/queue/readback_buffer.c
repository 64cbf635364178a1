/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads buffers through pinned memory; see readback_buffer.h. */
#include "opencl/queue/readback_buffer.h"

#include <string.h>

#include "opencl/device/event_wait.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/buffer_commands.h"

/* Maximum bytes of a download through pinned memory, which adds a copy. */
#define MAX_READBACK_BYTES ((uint64_t)256 << 10)

static void alloc_memory(struct tandem_stream *stream, uint64_t timeout_ns)
{
    uint64_t limit_ns = device_timeout_ns(stream->device);
    enum tandem_status status =
        pinned_alloc(stream->device, MAX_READBACK_BYTES,
                     timeout_ns < limit_ns ? timeout_ns : limit_ns,
                     &stream->readback.memory);
    stream->readback.alloc_failed =
        status != TANDEM_OK && status != TANDEM_NOT_READY;
}

bool readback_supports(struct tandem_stream *stream, uint64_t bytes,
                       uint64_t timeout_ns)
{
    if (bytes > MAX_READBACK_BYTES || !driver_wait_is_spinning(stream->device))
        return false;
    if (stream->readback.memory == NULL && !stream->readback.alloc_failed)
        alloc_memory(stream, timeout_ns);
    return stream->readback.memory != NULL;
}

enum tandem_status readback_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t timeout_ns)
{
    /* The queue is in-order: a download that timed out ends before this one. */
    enum tandem_status status = buffer_read(
        stream, buffer, offset, stream->readback.memory, bytes, timeout_ns);
    if (status != TANDEM_OK)
        return status;
    stream_mark_completed(stream, atomic_load(&stream->issued_seqno));
    memcpy(target, stream->readback.memory, (size_t)bytes);
    return TANDEM_OK;
}

void readback_finish(struct tandem_stream *stream)
{
    if (stream->readback.memory != NULL)
        pinned_free(stream->device, stream->readback.memory);
}
