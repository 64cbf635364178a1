/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench launch: a small addition of resident data through the plugin
 * and through the library against clEnqueueNDRangeKernel of an equal kernel.
 * tandem-bench pool: the plugin's memory pool against clCreateBuffer.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "raw_opencl.h"
#include "library_run.h"

#include <string.h>

#define ELEMENTS 1024

struct bare {
    struct direct *direct;
    cl_mem x, y, z;
};

static double bare_launches(struct bare *bare, uint64_t count, bool arguments,
                            bool wait)
{
    uint64_t start = clock_now_ns();
    cl_int error = CL_SUCCESS;

    for (uint64_t i = 0; i < count && error == CL_SUCCESS; i++) {
        error = direct_add(bare->direct, arguments ? bare->x : NULL, bare->y,
                           bare->z, ELEMENTS);
        if (wait)
            error |= clFinish(bare->direct->queue);
    }
    error |= clFinish(bare->direct->queue);
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
        if (work_stream(work, 1, &ns) != TANDEM_OK)
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

static void compare(struct bench *bench, struct work *work, struct trip *trip,
                    struct bare *bare)
{
    struct contest contest = {.unit = "ns", .limit = "enqueue"};

    if (strcmp(bench->row->mode, "wait") == 0) {
        contest.limit = "enqueue, finish";
        contest_add(&contest, "Tandem", our_waits, work);
        contest_add(&contest, contest.limit, bare_waits, bare);
    } else {
        if (strcmp(bench->row->mode, "library") == 0)
            contest_add(&contest, "Tandem", trip_resident, trip);
        else
            contest_add(&contest, "Tandem", work_run, work);
        contest_add(&contest, contest.limit, bare_stream, bare);
        contest_add(&contest, "set arguments, enqueue", bare_with_arguments,
                    bare);
    }
    bench_compare(bench, &contest);
}

void launch_run(struct bench *bench)
{
    struct bare bare = {.direct = direct_of(bench)};
    struct trip trip = {0};
    struct work work;

    if (bare.direct == NULL || !bench_work(bench, &work))
        return;
    bare.x = direct_buffer(bare.direct, 4 * ELEMENTS);
    bare.y = direct_buffer(bare.direct, 4 * ELEMENTS);
    bare.z = direct_buffer(bare.direct, 4 * ELEMENTS);
    if (bare.x == NULL || bare.y == NULL || bare.z == NULL ||
        direct_add(bare.direct, bare.x, bare.y, bare.z, ELEMENTS) !=
            CL_SUCCESS)
        bench_fail(bench, "OpenCL without Tandem fails");
    else if (check_work(bench, &work) && trip_open(&trip, bench))
        compare(bench, &work, &trip, &bare);
    trip_close(&trip);
    direct_free(bare.x);
    direct_free(bare.y);
    direct_free(bare.z);
    work_destroy(&work);
}

/* ---- the pool ---- */

#define ALLOC_BYTES (UINT64_C(4) << 20)

static double our_pool(void *argument, uint64_t count)
{
    struct lane *lane = argument;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++) {
        struct tandem_buffer *buffer;

        if (lane->backend->alloc(lane->device, ALLOC_BYTES, &buffer) !=
            TANDEM_OK)
            return -1;
        lane->backend->free(buffer);
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

static double driver_pool(void *argument, uint64_t count)
{
    struct direct *direct = argument;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++) {
        cl_int error;
        cl_mem buffer = clCreateBuffer(direct->context, CL_MEM_READ_WRITE,
                                       ALLOC_BYTES, NULL, &error);

        if (error != CL_SUCCESS)
            return -1;
        clReleaseMemObject(buffer);
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

void pool_list(struct list *list)
{
    list_add(list, "alloc + free", "", "4 MiB", "");
}

void pool_run(struct bench *bench)
{
    struct contest contest = {.unit = "ns"};
    struct direct *direct = direct_of(bench);

    if (direct == NULL)
        return;
    contest_add(&contest, "Tandem", our_pool, &bench->lane);
    contest_add(&contest, "create + release", driver_pool, direct);
    bench_compare(bench, &contest);
}
