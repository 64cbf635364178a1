/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench cpu: small additions against a C loop: through the CPU
 * plugin's launch, and through the library with its choice of a device.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "trip.h"

#include <string.h>

#define MAX_ELEMENTS 65536

static _Alignas(64) float x[MAX_ELEMENTS], y[MAX_ELEMENTS], z[MAX_ELEMENTS];

/* The loop as its user would have it compiled: vectorised, for the machine
 * that it runs on. */
#if defined(__GNUC__) && !defined(__clang__)
#define LOOP __attribute__((noinline, optimize("O3")))
#else
#define LOOP __attribute__((noinline))
#endif
#define LOOP_BODY                                                             \
    for (int64_t i = 0; i < n; i++)                                           \
        c[i] = a[i] + b[i]

LOOP static void loop_plain(const float *restrict a, const float *restrict b,
                            float *restrict c, int64_t n)
{
    LOOP_BODY;
}

#ifdef __x86_64__
LOOP __attribute__((target("avx2"))) static void
loop_avx2(const float *restrict a, const float *restrict b, float *restrict c,
          int64_t n)
{
    LOOP_BODY;
}
#endif

static void loop_add(const float *a, const float *b, float *c, int64_t n)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        loop_avx2(a, b, c, n);
        return;
    }
#endif
    loop_plain(a, b, c, n);
}

static double bare(void *elements, uint64_t count)
{
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++) {
        loop_add(x, y, z, *(const int64_t *)elements);
        __asm__ volatile("" : : "r"(z) : "memory");
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

void cpu_list(struct list *list)
{
    static const char *const shapes[] = {"16", "1024", "65536"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        list_add(list, "add", shapes[i], "", "stream");
        list_add(list, "add", shapes[i], "", "library");
    }
}

/* The library without a device named: its decision is a part of it. */
static void compare_library(struct bench *bench, struct contest *contest)
{
    uint32_t device = bench->device;
    struct trip trip;

    bench->device = TANDEM_ANY_DEVICE;
    if (trip_open(&trip, bench) && trip_check(&trip)) {
        contest->sides[0] = (struct side){"Tandem", trip_resident, &trip};
        bench_contest(bench, contest);
    }
    trip_close(&trip);
    bench->device = device;
}

void cpu_run(struct bench *bench)
{
    struct contest contest = {.unit = "ns", .limit = "C loop", .most = 20000};
    int64_t elements = bench->row->shape[0];
    struct work work;

    for (uint32_t i = 0; i < MAX_ELEMENTS; i++) {
        x[i] = seed_value(i);
        y[i] = seed_value(i + 1);
    }
    contest_add(&contest, "Tandem", work_run, &work);
    contest_add(&contest, "C loop", bare, &elements);
    if (strcmp(bench->row->mode, "library") == 0) {
        compare_library(bench, &contest);
    } else if (bench_work(bench, &work)) {
        if (check_work(bench, &work))
            bench_contest(bench, &contest);
        work_destroy(&work);
    }
}
