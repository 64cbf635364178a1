/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers by a map; see mapped_transfer.h. */
#include "opencl/transfer/mapped_transfer.h"

#include <string.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/hazard_tracking.h"

#define PROBE_BYTES 4096u

/* ---- one map ---- */

/* Waits for a command that was enqueued with this code; takes its event. */
static enum tandem_status command_await(struct tandem_stream *stream,
                                        cl_int code, cl_event event,
                                        uint64_t limit_ns, const char *what)
{
    struct tandem_device *device = stream->device;
    cl_int end = CL_SUCCESS;
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, what);
    enum tandem_status status = stream_flush(stream);
    if (status == TANDEM_OK)
        status = wait_event(device, event, limit_ns, &end);
    clReleaseEvent(event);
    return status == TANDEM_OK ? status_from_cl(device, end, what) : status;
}

static enum tandem_status map(struct tandem_stream *stream, cl_mem mem,
                              uint64_t offset, uint64_t bytes, bool up,
                              uint64_t limit_ns, void **out_memory)
{
    cl_event event = NULL;
    cl_int code = CL_SUCCESS;
    *out_memory = clEnqueueMapBuffer(
        stream->queue, mem, CL_FALSE,
        up ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, (size_t)offset,
        (size_t)bytes, 0, NULL, &event, &code);
    if (code == CL_SUCCESS)
        stream_next_seqno(stream);
    enum tandem_status status =
        command_await(stream, code, event, limit_ns, "clEnqueueMapBuffer");
    /* Once it is mapped, if ever, it is not to stay so. */
    if (status != TANDEM_OK && code == CL_SUCCESS &&
        clEnqueueUnmapMemObject(stream->queue, mem, *out_memory, 0, NULL,
                                NULL) == CL_SUCCESS)
        stream_next_seqno(stream);
    return status;
}

static enum tandem_status unmap(struct tandem_stream *stream, cl_mem mem,
                                void *memory)
{
    cl_event event = NULL;
    cl_int code = clEnqueueUnmapMemObject(stream->queue, mem, memory, 0, NULL,
                                          &event);
    if (code == CL_SUCCESS)
        stream_next_seqno(stream);
    return command_await(stream, code, event, device_timeout_ns(stream->device),
                         "clEnqueueUnmapMemObject");
}

/* ---- transfers ---- */

enum tandem_status mapped_haul(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               void *host, uint64_t bytes, bool up,
                               uint64_t limit_ns)
{
    void *mapped;
    enum tandem_status status =
        map(stream, buffer->mem, offset, bytes, up, limit_ns, &mapped);
    if (status != TANDEM_OK)
        return status;
    if (mapped != host) /* imported */
        copier_copy(&stream->device->haul.copier, host, mapped, bytes, up);
    status = unmap(stream, buffer->mem, mapped);
    if (status == TANDEM_OK)
        stream_note_use(stream, buffer, up);
    return status;
}

/* ---- the round trip ---- */

static enum tandem_status device_copy(struct tandem_stream *stream, cl_mem from,
                                      cl_mem to)
{
    cl_event event = NULL;
    cl_int code = clEnqueueCopyBuffer(stream->queue, from, to, 0, 0,
                                      PROBE_BYTES, 0, NULL, &event);
    if (code == CL_SUCCESS)
        stream_next_seqno(stream);
    return command_await(stream, code, event, device_timeout_ns(stream->device),
                         "clEnqueueCopyBuffer");
}

/* Writes by a map, has the device copy it, reads by a map. */
static bool trip(struct tandem_stream *stream, cl_mem from, cl_mem to,
                 unsigned char value)
{
    unsigned char want[PROBE_BYTES];
    const uint64_t limit_ns = device_timeout_ns(stream->device);
    void *mapped;
    memset(want, value, sizeof(want));
    if (map(stream, from, 0, PROBE_BYTES, true, limit_ns, &mapped) !=
        TANDEM_OK)
        return false;
    memcpy(mapped, want, sizeof(want));
    if (unmap(stream, from, mapped) != TANDEM_OK ||
        device_copy(stream, from, to) != TANDEM_OK ||
        map(stream, to, 0, PROBE_BYTES, false, limit_ns, &mapped) != TANDEM_OK)
        return false;
    bool same = memcmp(mapped, want, sizeof(want)) == 0;
    return unmap(stream, to, mapped) == TANDEM_OK && same;
}

/* Again, and back, so that what a cache kept of the first time is found out. */
static bool verify(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    cl_int code = CL_SUCCESS;
    cl_mem to = NULL, from = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                            PROBE_BYTES, NULL, &code);
    if (code == CL_SUCCESS)
        to = clCreateBuffer(device->context, CL_MEM_READ_WRITE, PROBE_BYTES,
                            NULL, &code);
    bool right = code == CL_SUCCESS && trip(stream, from, to, 0x3c) &&
                 trip(stream, from, to, 0xa5) && trip(stream, to, from, 0x5a);
    if (from != NULL)
        clReleaseMemObject(from);
    if (to != NULL)
        clReleaseMemObject(to);
    return right;
}

enum { UNKNOWN, YES, NO };

bool mapped_hopeful(uint32_t maps)
{
    return maps != NO;
}

bool mapped_right(struct tandem_stream *stream, uint32_t *maps)
{
    if (*maps == UNKNOWN)
        *maps = verify(stream) ? YES : NO;
    return *maps == YES;
}
