/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "launch": a small addition through the plugin and through the library,
 * compared with clEnqueueNDRangeKernel of an equal kernel.
 */
#include <config.h>

#include "library_run.h"
#include "raw_opencl.h"

#include <string.h>

#define ELEMENTS 1024

struct bare {
    struct raw_opencl *raw_opencl;
    cl_mem x, y, z;
};

static bool bare_enqueue(void *argument)
{
    struct bare *bare = argument;

    return raw_opencl_add(bare->raw_opencl, NULL, NULL, NULL, ELEMENTS) ==
           CL_SUCCESS;
}
static BENCH_FN(bare_stream, bare_enqueue, raw_opencl_wait);

static bool bare_set_arguments(void *argument)
{
    struct bare *bare = argument;

    return raw_opencl_add(bare->raw_opencl, bare->x, bare->y, bare->z,
                          ELEMENTS) == CL_SUCCESS;
}
static BENCH_FN(bare_with_arguments, bare_set_arguments, raw_opencl_wait);

static bool bare_wait(void *bare)
{
    return bare_set_arguments(bare) && raw_opencl_wait(bare);
}
static BENCH_FN(bare_waits, bare_wait, NULL);

static bool our_wait(void *work)
{
    uint64_t ns;

    return resident_op_stream(work, 1, &ns) == TANDEM_OK;
}
static BENCH_FN(our_waits, our_wait, NULL);

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
             library_run_open(&library_run, bench, bench->row, bench->device))
        compare(bench, &work, &library_run, &bare);
    library_run_close(&library_run);
    raw_opencl_free(bare.x);
    raw_opencl_free(bare.y);
    raw_opencl_free(bare.z);
    resident_op_destroy(&work);
}
