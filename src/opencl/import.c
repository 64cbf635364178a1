/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importing host memory.  USE_HOST_PTR may silently work on a copy, and some
 * devices that claim unified memory are not coherent, so a device is believed
 * only after a round trip without any map or transfer: what the device wrote
 * must be seen by the host, and the other way round.
 */
#include "opencl/import.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/device.h"
#include "opencl/launch.h"
#include "opencl/status.h"

#define PROBE_BYTES 4096u
#define PAGE_BYTES 4096u
/* What GPUs ask of a size. */
#define SIZE_UNIT 64u

/* Fills probe by the device and looks at it from the host, then changes it
 * from the host and has the device copy it out. */
static cl_int probe_device(cl_command_queue queue, cl_mem shared, cl_mem other,
                           unsigned char *probe, bool *out_shared)
{
    const cl_uint first = 0x5a5a5a5au;
    cl_uint seen[2] = {0, 0};
    cl_int code = clEnqueueFillBuffer(queue, shared, &first, sizeof(first), 0,
                                      PROBE_BYTES, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clFinish(queue);
    if (code != CL_SUCCESS)
        return code;
    memcpy(&seen[0], probe + PROBE_BYTES - sizeof(seen[0]), sizeof(seen[0]));
    memset(probe, 0x3c, PROBE_BYTES);
    code = clEnqueueCopyBuffer(queue, shared, other, 0, 0, PROBE_BYTES, 0, NULL,
                               NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(queue, other, CL_TRUE,
                                   PROBE_BYTES - sizeof(seen[1]),
                                   sizeof(seen[1]), &seen[1], 0, NULL, NULL);
    *out_shared = seen[0] == first && seen[1] == 0x3c3c3c3cu;
    return code;
}

static bool commands_share(struct tandem_device *device, unsigned char *probe)
{
    cl_int code = CL_SUCCESS;
    bool shared = false;
    cl_mem mem = NULL, other = NULL;
    cl_command_queue queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    memset(probe, 0, PROBE_BYTES);
    if (code == CL_SUCCESS)
        mem = clCreateBuffer(device->context,
                             CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                             PROBE_BYTES, probe, &code);
    if (code == CL_SUCCESS)
        other = clCreateBuffer(device->context, CL_MEM_READ_WRITE, PROBE_BYTES,
                               NULL, &code);
    if (code == CL_SUCCESS)
        code = probe_device(queue, mem, other, probe, &shared);
    if (mem != NULL)
        clReleaseMemObject(mem);
    if (other != NULL)
        clReleaseMemObject(other);
    if (queue != NULL)
        clReleaseCommandQueue(queue);
    return code == CL_SUCCESS && shared;
}

/* ---- by a kernel ---- */

#define PROBE_FLOATS (PROBE_BYTES / sizeof(float))
/* What a cache kept of the first time is found out by the second one. */
#define TRIPS 3

/* The host writes from, a kernel negates it to to, where the host reads. */
static bool kernel_trip(struct tandem_stream *stream,
                        const struct request *request, float *from, float *to,
                        float first)
{
    struct request again = *request;
    for (size_t i = 0; i < PROBE_FLOATS; i++) {
        from[i] = first + (float)i;
        to[i] = 0;
    }
    if (launch_op(stream, &again) != TANDEM_OK ||
        stream_synchronize(stream, device_limit(stream->device)) != TANDEM_OK)
        return false;
    for (size_t i = 0; i < PROBE_FLOATS; i++)
        if (to[i] != -first - (float)i)
            return false;
    return true;
}

/* Operators are kernels, which drivers may treat in another way. */
static bool kernels_share(struct tandem_device *device, unsigned char *probe)
{
    const struct tandem_op op = {.struct_size = sizeof(op),
                                 .id = TANDEM_OP_NEG};
    struct tandem_tensor_desc descs[2] = {
        {.dtype = TANDEM_F32, .rank = 1, .shape = {PROBE_FLOATS},
         .strides = {1}}};
    const struct tandem_tensor_desc *in = &descs[0], *out = &descs[1];
    const struct request request = {.hardware = device->hardware,
                                    .op = &op,
                                    .inputs = &in,
                                    .input_count = 1,
                                    .outputs = &out,
                                    .output_count = 1};
    struct tandem_buffer *from = NULL, *to = NULL;
    struct tandem_stream *stream = NULL;
    float *memory = (float *)(void *)probe;
    bool right = buffer_import(device, probe, PROBE_BYTES, &from) ==
                     TANDEM_OK &&
                 buffer_import(device, probe + PROBE_BYTES, PROBE_BYTES,
                               &to) == TANDEM_OK &&
                 stream_create(device, 0, &stream) == TANDEM_OK;
    descs[1] = descs[0];
    descs[0].buffer = from;
    descs[1].buffer = to;
    for (int trip = 0; trip < TRIPS && right; trip++)
        right = kernel_trip(stream, &request, memory, memory + PROBE_FLOATS,
                            (float)(trip * 4096 + 1));
    if (stream != NULL)
        stream_destroy(stream);
    if (from != NULL)
        buffer_destroy(from);
    if (to != NULL)
        buffer_destroy(to);
    return right;
}

/* The memory stays with work that does not end. */
static bool verify(struct tandem_device *device)
{
    unsigned char *probe = aligned_alloc(PAGE_BYTES, 2 * PROBE_BYTES);
    if (probe == NULL)
        return false;
    bool shared = commands_share(device, probe);
    if (shared && device->hardware->info.kind != TANDEM_DEVICE_CPU)
        shared = kernels_share(device, probe);
    if (!atomic_load(&device->stuck))
        free(probe);
    return shared;
}

static bool shares_memory(struct tandem_device *device)
{
    enum { UNKNOWN, YES, NO };
    int known = atomic_load(&device->shares_memory);
    if (known == UNKNOWN) {
        known = verify(device) ? YES : NO;
        atomic_store(&device->shares_memory, known);
    }
    return known == YES;
}

enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer)
{
    const struct platform_device *hardware = device->hardware;
    bool cpu = hardware->info.kind == TANDEM_DEVICE_CPU;
    if (!cpu && !hardware->unified)
        return message_set(TANDEM_UNSUPPORTED,
                           "import_host: %s has memory of its own",
                           hardware->info.name);
    if (!cpu && ((uintptr_t)memory % PAGE_BYTES != 0 || bytes % SIZE_UNIT != 0))
        return message_set(TANDEM_UNSUPPORTED,
                           "import_host: memory %p of %llu bytes is not "
                           "aligned to %u, or no multiple of %u: %s would copy",
                           memory, (unsigned long long)bytes, PAGE_BYTES,
                           SIZE_UNIT, hardware->info.name);
    if (!shares_memory(device))
        return message_set(TANDEM_UNSUPPORTED,
                           "import_host: %s works on a copy of host memory",
                           hardware->info.name);
    return buffer_import(device, memory, bytes, out_buffer);
}
