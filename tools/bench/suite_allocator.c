/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "allocator": the plugin's memory pool compared with clCreateBuffer.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "raw_opencl.h"

#define ALLOC_BYTES (UINT64_C(4) << 20)

static double plugin_allocate(void *argument, uint64_t count)
{
    struct device_session *session = argument;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++) {
        struct tandem_buffer *buffer;

        if (session->backend->alloc(session->device, ALLOC_BYTES, &buffer) !=
            TANDEM_OK)
            return -1;
        session->backend->free(buffer);
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

static double driver_allocate(void *argument, uint64_t count)
{
    struct raw_opencl *raw_opencl = argument;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++) {
        cl_int error;
        cl_mem buffer = clCreateBuffer(raw_opencl->context, CL_MEM_READ_WRITE,
                                       ALLOC_BYTES, NULL, &error);

        if (error != CL_SUCCESS)
            return -1;
        clReleaseMemObject(buffer);
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

void allocator_list(struct list *list)
{
    list_add(list, "alloc + free", "", "4 MiB", "");
}

void allocator_run(struct bench *bench)
{
    struct comparison comparison = {.unit = "ns"};
    struct raw_opencl *raw_opencl = raw_opencl_of(bench);

    if (raw_opencl == NULL)
        return;
    comparison_add(&comparison, "Tandem", plugin_allocate, &bench->session);
    comparison_add(&comparison, "create + release", driver_allocate,
                   raw_opencl);
    bench_compare(bench, &comparison);
}
