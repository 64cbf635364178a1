/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench host: additions of data that lies on the host and is read
 * there: through the library on the device, against the transfers and an
 * equal kernel without it.
 */
#include <config.h>

#include "../common/clock.h"
#include "direct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trip {
    struct bench *bench;
    uint32_t device; /* TANDEM_ANY_DEVICE: the library chooses */
    int64_t elements, count;
    float *x, *y, *z;
    struct tandem_tensor *a, *b, *c;
    struct direct *direct;
    cl_mem da, db, dc;
};

static double library_trip(void *argument)
{
    struct trip *t = argument;
    struct tandem_context *context = t->bench->context;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADD};
    struct tandem_tensor *const in[] = {t->a, t->b};
    uint64_t start = clock_now_ns();

    for (int64_t i = 0; i < t->count; i++) {
        enum tandem_status status = tandem_tensor_host_written(t->a);

        if (status == TANDEM_OK)
            status = tandem_tensor_host_written(t->b);
        if (status == TANDEM_OK && t->device == TANDEM_ANY_DEVICE)
            status = tandem_run(context, &op, in, 2, &t->c, 1);
        else if (status == TANDEM_OK)
            status = tandem_run_on(context, t->device, &op, in, 2, &t->c, 1);
        if (status == TANDEM_OK)
            status = tandem_tensor_sync(t->c, TANDEM_FOREVER);
        if (status != TANDEM_OK)
            return -1;
    }
    return (double)(clock_now_ns() - start) / (double)t->count;
}

static double direct_trip(void *argument)
{
    struct trip *t = argument;
    cl_command_queue queue = t->direct->queue;
    cl_kernel add = t->direct->add;
    size_t bytes = (size_t)t->elements * sizeof(float), local = 128;
    size_t global = ((size_t)t->elements + local - 1) / local * local;
    cl_uint n = (cl_uint)t->elements;
    uint64_t start = clock_now_ns();

    for (int64_t i = 0; i < t->count; i++) {
        cl_int error = clEnqueueWriteBuffer(queue, t->da, CL_FALSE, 0, bytes,
                                            t->x, 0, NULL, NULL);

        error |= clEnqueueWriteBuffer(queue, t->db, CL_FALSE, 0, bytes, t->y,
                                      0, NULL, NULL);
        error |= clSetKernelArg(add, 0, sizeof t->da, &t->da);
        error |= clSetKernelArg(add, 1, sizeof t->db, &t->db);
        error |= clSetKernelArg(add, 2, sizeof t->dc, &t->dc);
        error |= clSetKernelArg(add, 3, sizeof n, &n);
        error |= clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, &local,
                                        0, NULL, NULL);
        error |= clEnqueueReadBuffer(queue, t->dc, CL_TRUE, 0, bytes, t->z, 0,
                                     NULL, NULL);
        if (error != CL_SUCCESS)
            return -1;
    }
    return (double)(clock_now_ns() - start) / (double)t->count;
}

static float *floats(int64_t elements, uint64_t first)
{
    float *memory = malloc((size_t)elements * sizeof(float));

    for (int64_t i = 0; memory != NULL && i < elements; i++)
        memory[i] = seed_value(first + (uint64_t)i);
    return memory;
}

static struct tandem_tensor *wrap(struct trip *t, float *memory)
{
    struct tandem_tensor *tensor = NULL;

    if (memory != NULL)
        tandem_tensor_wrap(t->bench->context, memory, TANDEM_F32, 1,
                           &t->elements, NULL, 0, &tensor);
    return tensor;
}

static bool trip_open(struct trip *t)
{
    uint64_t bytes = (uint64_t)t->elements * sizeof(float);

    t->x = floats(t->elements, 0);
    t->y = floats(t->elements, 1);
    t->z = floats(t->elements, 0);
    t->a = wrap(t, t->x);
    t->b = wrap(t, t->y);
    t->c = wrap(t, t->z);
    t->da = direct_buffer(t->direct, bytes);
    t->db = direct_buffer(t->direct, bytes);
    t->dc = direct_buffer(t->direct, bytes);
    return t->a && t->b && t->c && t->da && t->db && t->dc;
}

static void trip_close(struct trip *t)
{
    tandem_tensor_destroy(t->a);
    tandem_tensor_destroy(t->b);
    tandem_tensor_destroy(t->c);
    direct_free(t->da);
    direct_free(t->db);
    direct_free(t->dc);
    tandem_synchronize(t->bench->context, TANDEM_FOREVER);
    free(t->x);
    free(t->y);
    free(t->z);
}

static bool trip_right(struct trip *t)
{
    memset(t->z, 0, (size_t)t->elements * sizeof(float));
    t->count = 1;
    if (tandem_tensor_host_written(t->c) != TANDEM_OK || library_trip(t) < 0)
        return false;
    for (int64_t i = 0; i < t->elements; i++)
        if (t->z[i] != t->x[i] + t->y[i])
            return false;
    return true;
}

static void compare_trip(struct trip *t, const char *who)
{
    const struct bench_unit unit = {"ns", 0};
    struct bench_pair pair;
    char name[64];
    double once;

    if (!trip_right(t)) {
        bench_fail(t->bench, "add of %lld from the host: %s",
                   (long long)t->elements, tandem_last_error());
        return;
    }
    once = library_trip(t);
    t->count = (int64_t)fmin(fmax(5e6 / fmax(once, 1), 1), 1000);
    pair = bench_compare(t->bench, library_trip, t, direct_trip, t);
    snprintf(name, sizeof name, "add %lld, host to host%s",
             (long long)t->elements, who);
    bench_row(t->bench, name, "write, kernel, read", &unit, &pair);
}

void suite_host(struct bench *bench)
{
    static const int64_t sizes[] = {1000, 10000, 100000, 1000000};
    struct direct direct;

    if (!direct_open(&direct, bench))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct trip trip = {.bench = bench,
                            .device = bench->lane.index,
                            .elements = sizes[i],
                            .direct = &direct};

        if (trip_open(&trip)) {
            compare_trip(&trip, "");
            trip.device = TANDEM_ANY_DEVICE;
            compare_trip(&trip, ", chosen");
        } else {
            bench_fail(bench, "no memory");
        }
        trip_close(&trip);
    }
    direct_close(&direct);
}
