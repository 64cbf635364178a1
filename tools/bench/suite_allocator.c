/* SPDX-License-Identifier: Apache-2.0 */
/* Suite "allocator": the plugin's memory pool compared with clCreateBuffer. */
#include <config.h>

#include "raw_opencl.h"

#define ALLOC_BYTES (UINT64_C(4) << 20)

static bool plugin_allocate(void *argument)
{
    struct device_session *session = argument;
    struct tandem_buffer *buffer;

    if (session->backend->alloc(session->device, TANDEM_BYTES(ALLOC_BYTES),
                                &buffer) != TANDEM_OK)
        return false;
    session->backend->free(buffer);
    return true;
}
static BENCH_FN(plugin_allocations, plugin_allocate, NULL);

static bool driver_allocate(void *argument)
{
    struct raw_opencl *raw_opencl = argument;
    cl_int error;
    cl_mem buffer = clCreateBuffer(raw_opencl->context, CL_MEM_READ_WRITE,
                                   ALLOC_BYTES, NULL, &error);

    return error == CL_SUCCESS && clReleaseMemObject(buffer) == CL_SUCCESS;
}
static BENCH_FN(driver_allocations, driver_allocate, NULL);

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
    comparison_add(&comparison, "Tandem", plugin_allocations, &bench->session);
    comparison_add(&comparison, "create + release", driver_allocations,
                   raw_opencl);
    bench_compare(bench, &comparison);
}
