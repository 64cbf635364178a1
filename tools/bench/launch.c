/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench launch: a small addition through the plugin against
 * clEnqueueNDRangeKernel of an equal kernel, and the pool against
 * clCreateBuffer.
 */
#include <config.h>

#include "../common/clock.h"
#include "direct.h"

#define ELEMENTS 1024
#define LOCAL_SIZE 128
#define LAUNCHES 2000
#define ALLOCS 2000
#define ALLOC_BYTES (UINT64_C(4) << 20)

struct bare {
    struct direct direct;
    cl_mem x, y, z;
    bool set_arguments; /* before each launch */
    bool wait;          /* after each launch */
};

static cl_int set_arguments(struct bare *bare)
{
    cl_uint n = ELEMENTS;
    cl_int error = clSetKernelArg(bare->direct.add, 0, sizeof bare->x,
                                  &bare->x);

    error |= clSetKernelArg(bare->direct.add, 1, sizeof bare->y, &bare->y);
    error |= clSetKernelArg(bare->direct.add, 2, sizeof bare->z, &bare->z);
    return error | clSetKernelArg(bare->direct.add, 3, sizeof n, &n);
}

static double bare_stream(void *argument)
{
    struct bare *bare = argument;
    size_t global = ELEMENTS, local = LOCAL_SIZE;
    int launches = bare->wait ? LAUNCHES / 10 : LAUNCHES;
    uint64_t start = clock_now_ns();
    cl_int error = CL_SUCCESS;

    for (int i = 0; i < launches && error == CL_SUCCESS; i++) {
        if (bare->set_arguments)
            error = set_arguments(bare);
        error |= clEnqueueNDRangeKernel(bare->direct.queue, bare->direct.add,
                                        1, NULL, &global, &local, 0, NULL,
                                        NULL);
        if (bare->wait)
            error |= clFinish(bare->direct.queue);
    }
    error |= clFinish(bare->direct.queue);
    if (error != CL_SUCCESS)
        return -1;
    return (double)(clock_now_ns() - start) / launches;
}

static double our_stream(void *argument)
{
    uint64_t ns;

    if (work_stream(argument, LAUNCHES, &ns) != TANDEM_OK)
        return -1;
    return (double)ns / LAUNCHES;
}

static double our_waits(void *argument)
{
    uint64_t ns, total = 0;

    for (int i = 0; i < LAUNCHES / 10; i++) {
        if (work_stream(argument, 1, &ns) != TANDEM_OK)
            return -1;
        total += ns;
    }
    return (double)total / (LAUNCHES / 10);
}

static void compare_launches(struct bench *bench, struct work *work,
                             struct bare *bare)
{
    const struct bench_unit unit = {"ns", 0};
    struct bench_pair pair =
        bench_compare(bench, our_stream, work, bare_stream, bare);

    bench_row(bench, "add 1024, in a stream", "bare enqueue", &unit, &pair);
    if (pair.ok)
        bench_figure(bench, "  ours over bare", "ns a launch",
                     pair.ours.median - pair.theirs.median);
    bare->set_arguments = true;
    pair = bench_compare(bench, our_stream, work, bare_stream, bare);
    bench_row(bench, "add 1024, in a stream", "set arguments, enqueue", &unit,
              &pair);
    bare->wait = true;
    pair = bench_compare(bench, our_waits, work, bare_stream, bare);
    bench_row(bench, "add 1024, launch + wait", "enqueue, finish", &unit,
              &pair);
}

void suite_launch(struct bench *bench)
{
    const int64_t shape[] = {ELEMENTS};
    struct bare bare = {.set_arguments = false};
    struct work work;

    if (work_create(&work, &bench->lane, "add", 1, shape) != TANDEM_OK) {
        bench_fail(bench, "add: %s", bench->lane.backend->last_error());
        return;
    }
    if (!check_work(bench, &work) || !direct_open(&bare.direct, bench))
        goto out;
    bare.x = direct_buffer(&bare.direct, 4 * ELEMENTS);
    bare.y = direct_buffer(&bare.direct, 4 * ELEMENTS);
    bare.z = direct_buffer(&bare.direct, 4 * ELEMENTS);
    if (bare.x == NULL || bare.y == NULL || bare.z == NULL ||
        set_arguments(&bare) != CL_SUCCESS)
        bench_fail(bench, "OpenCL without Tandem fails");
    else
        compare_launches(bench, &work, &bare);
    direct_free(bare.x);
    direct_free(bare.y);
    direct_free(bare.z);
    direct_close(&bare.direct);
out:
    work_destroy(&work);
}

/* ---- the pool ---- */

static double our_pool(void *argument)
{
    struct lane *lane = argument;
    uint64_t start = clock_now_ns();

    for (int i = 0; i < ALLOCS; i++) {
        struct tandem_buffer *buffer;

        if (lane->backend->alloc(lane->device, ALLOC_BYTES, &buffer) !=
            TANDEM_OK)
            return -1;
        lane->backend->free(buffer);
    }
    return (double)(clock_now_ns() - start) / ALLOCS;
}

static double driver_pool(void *argument)
{
    struct direct *direct = argument;
    uint64_t start = clock_now_ns();

    for (int i = 0; i < ALLOCS; i++) {
        cl_int error;
        cl_mem buffer = clCreateBuffer(direct->context, CL_MEM_READ_WRITE,
                                       ALLOC_BYTES, NULL, &error);

        if (error != CL_SUCCESS)
            return -1;
        clReleaseMemObject(buffer);
    }
    return (double)(clock_now_ns() - start) / ALLOCS;
}

void suite_pool(struct bench *bench)
{
    const struct bench_unit unit = {"ns", 0};
    struct direct direct;
    struct bench_pair pair;

    if (!direct_open(&direct, bench))
        return;
    pair = bench_compare(bench, our_pool, &bench->lane, driver_pool, &direct);
    bench_row(bench, "alloc + free of 4 MiB", "create + release", &unit,
              &pair);
    direct_close(&direct);
}
