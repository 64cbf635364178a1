/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through mapped buffers; see mapped_transfer.h. */
#include "opencl/transfer/mapped_transfer.h"

#include <string.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/buffer_commands.h"
#include "opencl/queue/hazard_tracking.h"

#define TEST_BYTES 4096u

/* Assigns a number to an enqueued command, waits for the command and releases
 * its event.  If `code` says that enqueuing failed, only reports the error. */
static enum tandem_status command_await(struct tandem_stream *stream,
                                        cl_int code, cl_event event,
                                        uint64_t limit_ns, const char *what)
{
    struct tandem_device *device = stream->device;
    cl_int end = CL_SUCCESS;
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, what);
    stream_next_seqno(stream);
    enum tandem_status status = stream_flush(stream);
    if (status == TANDEM_OK)
        status = wait_event(device, event, limit_ns, &end);
    clReleaseEvent(event);
    return status == TANDEM_OK ? status_from_cl(device, end, what) : status;
}

static enum tandem_status map(struct tandem_stream *stream, cl_mem mem,
                              uint64_t offset, uint64_t bytes, bool upload,
                              uint64_t limit_ns, void **out_memory)
{
    cl_event event = NULL;
    cl_int code = CL_SUCCESS;
    *out_memory = clEnqueueMapBuffer(
        stream->queue, mem, CL_FALSE,
        upload ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ, (size_t)offset,
        (size_t)bytes, 0, NULL, &event, &code);
    enum tandem_status status =
        command_await(stream, code, event, limit_ns, "clEnqueueMapBuffer");
    /* If the map command completes after the timeout, unmap the buffer. */
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
    cl_int code =
        clEnqueueUnmapMemObject(stream->queue, mem, memory, 0, NULL, &event);
    return command_await(stream, code, event, device_timeout_ns(stream->device),
                         "clEnqueueUnmapMemObject");
}

enum tandem_status mapped_transfer_run(const struct transfer *transfer,
                                       uint64_t deadline_ns)
{
    struct tandem_stream *stream = transfer->stream;
    struct tandem_device *device = stream->device;
    const cl_mem mem = transfer->buffer->mem;
    void *mapped;
    enum tandem_status status =
        map(stream, mem, transfer->offset, transfer->bytes, transfer->upload,
            remaining_ns(deadline_ns, device_timeout_ns(device)), &mapped);
    if (status != TANDEM_OK)
        return status;
    if (mapped != transfer->host) /* `host` can be the imported memory itself */
        copy_threads_copy(&device->bulk_transfer.threads, transfer->host,
                          mapped, transfer->bytes, transfer->upload);
    status = unmap(stream, mem, mapped);
    if (status == TANDEM_OK)
        stream_note_use(stream, transfer->buffer, transfer->upload);
    return status;
}

/* ---- coherence test ---- */

static enum tandem_status device_copy(struct tandem_stream *stream, cl_mem from,
                                      cl_mem to)
{
    cl_event event = NULL;
    cl_int code = clEnqueueCopyBuffer(stream->queue, from, to, 0, 0, TEST_BYTES,
                                      0, NULL, &event);
    return command_await(stream, code, event, device_timeout_ns(stream->device),
                         "clEnqueueCopyBuffer");
}

/* The host writes the mapped buffer `from`, the device copies it to `to`, and
 * the host reads the mapped buffer `to`.  Returns true if the values match. */
static bool host_to_host(struct tandem_stream *stream, cl_mem from, cl_mem to,
                         unsigned char value)
{
    unsigned char want[TEST_BYTES];
    const uint64_t limit_ns = device_timeout_ns(stream->device);
    void *mapped;
    memset(want, value, sizeof(want));
    if (map(stream, from, 0, TEST_BYTES, true, limit_ns, &mapped) != TANDEM_OK)
        return false;
    memcpy(mapped, want, sizeof(want));
    if (unmap(stream, from, mapped) != TANDEM_OK ||
        device_copy(stream, from, to) != TANDEM_OK ||
        map(stream, to, 0, TEST_BYTES, false, limit_ns, &mapped) != TANDEM_OK)
        return false;
    bool same = memcmp(mapped, want, sizeof(want)) == 0;
    return unmap(stream, to, mapped) == TANDEM_OK && same;
}

/* Tests if mapped buffers are coherent. Later copies find stale cache lines. */
static bool coherence_test(struct tandem_stream *stream)
{
    struct tandem_device *device = stream->device;
    cl_int code = CL_SUCCESS;
    cl_mem to = NULL, from = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                            TEST_BYTES, NULL, &code);
    if (code == CL_SUCCESS)
        to = clCreateBuffer(device->context, CL_MEM_READ_WRITE, TEST_BYTES,
                            NULL, &code);
    bool right = code == CL_SUCCESS && host_to_host(stream, from, to, 0x3c) &&
                 host_to_host(stream, from, to, 0xa5) &&
                 host_to_host(stream, to, from, 0x5a);
    if (from != NULL)
        clReleaseMemObject(from);
    if (to != NULL)
        clReleaseMemObject(to);
    return right;
}

bool mapped_memory_is_coherent(struct tandem_stream *stream,
                               enum coherence *coherence)
{
    if (*coherence == COHERENCE_UNKNOWN)
        *coherence =
            coherence_test(stream) ? COHERENCE_PASSED : COHERENCE_FAILED;
    return *coherence == COHERENCE_PASSED;
}
