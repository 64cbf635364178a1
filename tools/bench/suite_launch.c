/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "launch": a small addition through the plugin and through the library,
 * compared with clEnqueueNDRangeKernel of an equal kernel.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "raw_opencl.h"
#include "library_run.h"

#include <string.h>

#define ELEMENTS 1024

struct bare {
    struct raw_opencl *raw_opencl;
    cl_mem x, y, z;
};

static double bare_launches(struct bare *bare, uint64_t count, bool arguments,
                            bool wait)
{
    uint64_t start = clock_now_ns();
    cl_int error = CL_SUCCESS;

    for (uint64_t i = 0; i < count && error == CL_SUCCESS; i++) {
        error = raw_opencl_add(bare->raw_opencl, arguments ? bare->x : NULL,
                               bare->y, bare->z, ELEMENTS);
        if (wait)
            error |= clFinish(bare->raw_opencl->queue);
    }
    error |= clFinish(bare->raw_opencl->queue);
    if (error != CL_SUCCESS)
        return -1;
    return (double)(clock_now_ns() - start) / (double)count;
}

static double bare_stream(void *bare, uint64_t count)
{
    return bare_launches(bare, count, false, false);
}

static double bare_with_arguments(void *bare, uint64_t count)
{
    return bare_launches(bare, count, true, false);
}

static double bare_waits(void *bare, uint64_t count)
{
    return bare_launches(bare, count, true, true);
}

static double our_waits(void *work, uint64_t count)
{
    uint64_t ns, total = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (resident_op_stream(work, 1, &ns) != TANDEM_OK)
            return -1;
        total += ns;
    }
    return (double)total / (double)count;
}

void launch_list(struct list *list)
{
    list_add(list, "add", "1024", "", "stream");
    list_add(list, "add", "1024", "", "wait");
    list_add(list, "add", "1024", "", "library");
}

static void compare(struct bench *bench, struct resident_op *work,
                    struct library_run *library_run, struct bare *bare)
{
    struct comparison comparison = {.unit = "ns", .upper_bound = "enqueue"};

    if (strcmp(bench->row->mode, "wait") == 0) {
        comparison.upper_bound = "enqueue, finish";
        comparison_add(&comparison, "Tandem", our_waits, work);
        comparison_add(&comparison, comparison.upper_bound, bare_waits, bare);
    } else {
        if (strcmp(bench->row->mode, "library") == 0)
            comparison_add(&comparison, "Tandem", library_run_resident,
                           library_run);
        else
            comparison_add(&comparison, "Tandem", resident_op_run, work);
        comparison_add(&comparison, comparison.upper_bound, bare_stream, bare);
        comparison_add(&comparison, "set arguments, enqueue",
                       bare_with_arguments, bare);
    }
    bench_compare(bench, &comparison);
}

void launch_run(struct bench *bench)
{
    struct bare bare = {.raw_opencl = raw_opencl_of(bench)};
    struct library_run library_run = {0};
    struct resident_op work;

    if (bare.raw_opencl == NULL || !bench_resident_op(bench, &work))
        return;
    bare.x = raw_opencl_buffer(bare.raw_opencl, 4 * ELEMENTS);
    bare.y = raw_opencl_buffer(bare.raw_opencl, 4 * ELEMENTS);
    bare.z = raw_opencl_buffer(bare.raw_opencl, 4 * ELEMENTS);
    if (bare.x == NULL || bare.y == NULL || bare.z == NULL ||
        raw_opencl_add(bare.raw_opencl, bare.x, bare.y, bare.z, ELEMENTS) !=
            CL_SUCCESS)
        bench_fail(bench, "OpenCL without Tandem fails");
    else if (check_resident_op(bench, &work) &&
             library_run_open(&library_run, bench))
        compare(bench, &work, &library_run, &bare);
    library_run_close(&library_run);
    raw_opencl_free(bare.x);
    raw_opencl_free(bare.y);
    raw_opencl_free(bare.z);
    resident_op_destroy(&work);
}
