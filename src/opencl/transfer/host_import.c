/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importing host memory.  USE_HOST_PTR may silently work on a copy, and some
 * devices that claim unified memory are not coherent, so a device is believed
 * only after a round trip without any map or transfer: what the device wrote
 * must be seen by the host, and the other way round.
 */
#include "opencl/transfer/host_import.h"

#include <stdlib.h>
#include <string.h>

#include "opencl/memory/deferred_release.h"
#include "opencl/queue/kernel_launch.h"
#include "opencl/queue/stream_lifecycle.h"
#include "opencl/device/cl_status.h"

#define PROBE_BYTES 4096u
#define PAGE_BYTES 4096u
/* What GPUs ask of a size. */
#define SIZE_UNIT 64u

/* ---- by commands ---- */

/* What a round trip by commands uses; what has not ended keeps it, the probe
 * too. */
struct share {
    unsigned char *probe;
    cl_uint back; /* of the probe's end, read from other */
    cl_command_queue queue;
    cl_mem mem, other;
};

static void share_end(void *user)
{
    struct share *share = user;
    if (share->mem != NULL)
        clReleaseMemObject(share->mem);
    if (share->other != NULL)
        clReleaseMemObject(share->other);
    if (share->queue != NULL)
        clReleaseCommandQueue(share->queue);
    free(share->probe);
    free(share);
}

static struct share *share_new(struct tandem_device *device)
{
    cl_int code = CL_SUCCESS;
    struct share *share = calloc(1, sizeof(*share));
    if (share == NULL)
        return NULL;
    share->probe = aligned_alloc(PAGE_BYTES, PROBE_BYTES);
    if (share->probe == NULL) {
        free(share);
        return NULL;
    }
    memset(share->probe, 0, PROBE_BYTES);
    share->queue =
        clCreateCommandQueue(device->context, device->hardware->id, 0, &code);
    if (code == CL_SUCCESS)
        share->mem = clCreateBuffer(device->context,
                                    CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                    PROBE_BYTES, share->probe, &code);
    if (code == CL_SUCCESS)
        share->other = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                      PROBE_BYTES, NULL, &code);
    if (code == CL_SUCCESS)
        return share;
    share_end(share);
    return NULL;
}

/* Fills the probe by the device and looks at it from the host, then changes it
 * from the host and has the device copy it out. */
static enum tandem_status share_try(struct share *share,
                                    struct tandem_device *device,
                                    bool *out_shared, bool *out_left)
{
    const cl_uint first = 0x5a5a5a5au;
    const size_t last = PROBE_BYTES - sizeof(first);
    cl_event event = NULL;
    cl_uint seen;
    cl_int code =
        clEnqueueFillBuffer(share->queue, share->mem, &first, sizeof(first), 0,
                            PROBE_BYTES, 0, NULL, &event);
    enum tandem_status status = status_from_cl(device, code, "import_host");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, share->queue, event, share_end,
                                       share, out_left);
    if (status != TANDEM_OK)
        return status;
    memcpy(&seen, share->probe + last, sizeof(seen));
    memset(share->probe, 0x3c, PROBE_BYTES);
    code = clEnqueueCopyBuffer(share->queue, share->mem, share->other, 0, 0,
                               PROBE_BYTES, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(share->queue, share->other, CL_FALSE, last,
                                   sizeof(share->back), &share->back, 0, NULL,
                                   &event);
    status = status_from_cl(device, code, "import_host");
    if (status == TANDEM_OK)
        status = deferred_release_wait(device, share->queue, event, share_end,
                                       share, out_left);
    if (status == TANDEM_OK)
        *out_shared = seen == first && share->back == 0x3c3c3c3cu;
    return status;
}

static bool commands_share(struct tandem_device *device)
{
    bool shared = false, left = false;
    struct share *share = share_new(device);
    if (share == NULL)
        return false;
    enum tandem_status status = share_try(share, device, &shared, &left);
    if (!left)
        share_end(share);
    return status == TANDEM_OK && shared;
}

/* ---- by a kernel ---- */

#define PROBE_FLOATS (PROBE_BYTES / sizeof(float))
/* What a cache kept of the first time is found out by the second one. */
#define TRIPS 3

/* The host writes from, a kernel negates it to to, where the host reads. */
static bool kernel_coherence_test(struct tandem_stream *stream,
                        const struct request *request, float *from, float *to,
                        float first)
{
    struct request again = *request;
    for (size_t i = 0; i < PROBE_FLOATS; i++) {
        from[i] = first + (float)i;
        to[i] = 0;
    }
    if (launch_op(stream, &again) != TANDEM_OK ||
        stream_synchronize(stream, device_timeout_ns(stream->device)) !=
            TANDEM_OK)
        return false;
    for (size_t i = 0; i < PROBE_FLOATS; i++)
        if (to[i] != -first - (float)i)
            return false;
    return true;
}

static const struct tandem_op trip_op = {.struct_size = sizeof(trip_op),
                                         .id = TANDEM_OP_NEG};
static const struct tandem_tensor_desc trip_desc = {.dtype = TANDEM_F32,
                                                    .rank = 1,
                                                    .shape = {PROBE_FLOATS},
                                                    .strides = {1}};

static struct request trip_request(const struct tandem_device *device,
                                   const struct tandem_tensor_desc **in,
                                   const struct tandem_tensor_desc **out)
{
    return (struct request){.hardware = device->hardware,
                            .op = &trip_op,
                            .inputs = in,
                            .input_count = 1,
                            .outputs = out,
                            .output_count = 1};
}

/* Operators are kernels, which drivers may treat in another way. */
static bool kernels_share(struct tandem_device *device, unsigned char *probe)
{
    struct tandem_tensor_desc descs[2] = {trip_desc, trip_desc};
    const struct tandem_tensor_desc *in = &descs[0], *out = &descs[1];
    const struct request request = trip_request(device, &in, &out);
    struct tandem_buffer *from = NULL, *to = NULL;
    struct tandem_stream *stream = NULL;
    float *memory = (float *)(void *)probe;
    bool right = buffer_import(device, probe, PROBE_BYTES, &from) ==
                     TANDEM_OK &&
                 buffer_import(device, probe + PROBE_BYTES, PROBE_BYTES,
                               &to) == TANDEM_OK &&
                 stream_create(device, 0, &stream) == TANDEM_OK;
    descs[0].buffer = from;
    descs[1].buffer = to;
    for (int trip = 0; trip < TRIPS && right; trip++)
        right = kernel_coherence_test(stream, &request, memory,
                                      memory + PROBE_FLOATS,
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
    if (!commands_share(device))
        return false;
    if (device->hardware->info.kind == TANDEM_DEVICE_CPU)
        return true;
    unsigned char *probe = aligned_alloc(PAGE_BYTES, 2 * PROBE_BYTES);
    if (probe == NULL)
        return false;
    bool shared = kernels_share(device, probe);
    if (!atomic_load(&device->stuck))
        free(probe);
    return shared;
}

enum { UNKNOWN, YES, NO };

void import_prepare(struct tandem_device *device)
{
    const struct platform_device *hardware = device->hardware;
    const struct tandem_tensor_desc *in = &trip_desc, *out = &trip_desc;
    struct plan plan;
    if (hardware->info.kind == TANDEM_DEVICE_CPU || !hardware->unified ||
        atomic_load(&device->shares_memory) != UNKNOWN)
        return;
    struct request request = trip_request(device, &in, &out);
    request.group_log2 = device->programs.group_log2;
    if (plan_make(&plan, &request) != TANDEM_OK)
        return;
    for (uint32_t i = 0; i < plan.steps; i++)
        if (key_compiles(plan.step[i].key))
            kernel_variant_prepare(device, plan.step[i].key);
}

static bool shares_memory(struct tandem_device *device)
{
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
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s has memory of its own",
                              hardware->info.name);
    if (bytes > 0 && !cpu &&
        ((uintptr_t)memory % PAGE_BYTES != 0 || bytes % SIZE_UNIT != 0))
        return last_error_set(TANDEM_UNSUPPORTED,
                           "import_host: memory %p of %llu bytes is not "
                           "aligned to %u, or no multiple of %u: %s would copy",
                           memory, (unsigned long long)bytes, PAGE_BYTES,
                           SIZE_UNIT, hardware->info.name);
    if (!shares_memory(device))
        return last_error_set(TANDEM_UNSUPPORTED,
                              "import_host: %s works on a copy of host memory",
                              hardware->info.name);
    return buffer_import(device, memory, bytes, out_buffer);
}
