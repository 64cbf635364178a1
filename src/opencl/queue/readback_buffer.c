/* SPDX-License-Identifier: Apache-2.0 */
/* Small downloads through pinned memory; see readback_buffer.h. */
#include "opencl/queue/readback_buffer.h"

#include <string.h>

#include "common/thread_state_guard.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/device/cl_status.h"

/* What is larger takes longer to copy once more than a wait loses. */
#define READBACK_BYTES ((uint64_t)256 << 10)

static void memory_make(struct tandem_stream *stream, uint64_t timeout_ns)
{
    struct thread_state host;
    thread_state_guard_enter(&host);
    uint64_t limit_ns = device_timeout_ns(stream->device);
    enum tandem_status status = pinned_alloc(
        stream->device, READBACK_BYTES,
        timeout_ns < limit_ns ? timeout_ns : limit_ns,
        &stream->readback.memory);
    stream->readback.refused =
        status != TANDEM_OK && status != TANDEM_NOT_READY;
    thread_state_guard_leave(&host);
}

bool readback_serves(struct tandem_stream *stream, uint64_t bytes,
                     uint64_t timeout_ns)
{
    if (bytes > READBACK_BYTES || !wait_busy(stream->device))
        return false;
    if (stream->readback.memory == NULL && !stream->readback.refused)
        memory_make(stream, timeout_ns);
    return stream->readback.memory != NULL;
}

enum tandem_status readback_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t timeout_ns)
{
    cl_event event = NULL;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = clEnqueueReadBuffer(stream->queue, buffer->mem, CL_FALSE,
                                   (size_t)offset, (size_t)bytes,
                                   stream->readback.memory, 0, NULL, &event);
        if (code == CL_SUCCESS || !stream_relieve(stream, code))
            break;
    }
    if (code != CL_SUCCESS)
        return status_from_cl(stream->device, code, "clEnqueueReadBuffer");
    uint64_t serial = stream_issue(stream);
    stream_used(stream, buffer, false);
    /* One that is given up is over before the next one writes there. */
    enum tandem_status status = stream_wait(stream, event, timeout_ns);
    clReleaseEvent(event);
    if (status != TANDEM_OK)
        return status;
    stream_passed(stream, serial);
    memcpy(target, stream->readback.memory, (size_t)bytes);
    return TANDEM_OK;
}

void readback_finish(struct tandem_stream *stream)
{
    if (stream->readback.memory != NULL)
        pinned_free(stream->device, stream->readback.memory);
}
