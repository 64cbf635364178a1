/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench cpu: small additions against a C loop: through the CPU
 * plugin's launch, and through the library with its choice of a device.
 */
#include <config.h>

#include "../common/clock.h"
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define MAX_ELEMENTS 65536
#define SAMPLE_ELEMENTS (INT64_C(1) << 22) /* added in one turn, about */

static _Alignas(64) float x[MAX_ELEMENTS], y[MAX_ELEMENTS], z[MAX_ELEMENTS];

struct addition {
    struct bench *bench;
    int64_t elements;
    int64_t count;
    struct work *work;
    struct tandem_tensor *a, *b, *c;
};

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

static double bare(void *argument)
{
    struct addition *add = argument;
    uint64_t start = clock_now_ns();

    for (int64_t i = 0; i < add->count; i++) {
        loop_add(x, y, z, add->elements);
        __asm__ volatile("" : : "r"(z) : "memory");
    }
    return (double)(clock_now_ns() - start) / (double)add->count;
}

static double by_launch(void *argument)
{
    struct addition *add = argument;
    uint64_t ns;

    if (work_stream(add->work, (uint64_t)add->count, &ns) != TANDEM_OK)
        return -1;
    return (double)ns / (double)add->count;
}

static double by_library(void *argument)
{
    struct addition *add = argument;
    uint64_t start = clock_now_ns();

    for (int64_t i = 0; i < add->count; i++)
        if (tandem_binary(add->bench->context, TANDEM_OP_ADD, add->a, add->b,
                          add->c) != TANDEM_OK)
            return -1;
    if (tandem_synchronize(add->bench->context, TANDEM_FOREVER) != TANDEM_OK)
        return -1;
    return (double)(clock_now_ns() - start) / (double)add->count;
}

static bool tensors_create(struct addition *add)
{
    struct tandem_context *context = add->bench->context;
    const int64_t *shape = &add->elements;

    return tandem_tensor_wrap(context, x, TANDEM_F32, 1, shape, NULL, 0,
                              &add->a) == TANDEM_OK &&
           tandem_tensor_wrap(context, y, TANDEM_F32, 1, shape, NULL, 0,
                              &add->b) == TANDEM_OK &&
           tandem_tensor_wrap(context, z, TANDEM_F32, 1, shape, NULL, 0,
                              &add->c) == TANDEM_OK;
}

static bool check_library(struct addition *add)
{
    memset(z, 0, sizeof z);
    if (tandem_tensor_host_written(add->c) != TANDEM_OK ||
        by_library(add) < 0 ||
        tandem_tensor_sync(add->c, TANDEM_FOREVER) != TANDEM_OK)
        return false;
    for (int64_t i = 0; i < add->elements; i++)
        if (z[i] != x[i] + y[i])
            return false;
    return true;
}

static void compare_library(struct addition *add)
{
    const struct bench_unit unit = {"ns", 0};
    struct bench *bench = add->bench;
    struct bench_pair pair;
    char name[64];

    if (!tensors_create(add) || !check_library(add)) {
        bench_fail(bench, "add by the library: %s", tandem_last_error());
    } else {
        pair = bench_compare(bench, by_library, add, bare, add);
        snprintf(name, sizeof name, "add %lld, tandem_binary",
                 (long long)add->elements);
        bench_row(bench, name, "C loop", &unit, &pair);
        if (pair.ok)
            bench_figure(bench, "  ours over the loop", "ns",
                         pair.ours.median - pair.theirs.median);
    }
    tandem_tensor_destroy(add->a);
    tandem_tensor_destroy(add->b);
    tandem_tensor_destroy(add->c);
}

static void compare_size(struct bench *bench, int64_t elements)
{
    const struct bench_unit unit = {"ns", 0};
    struct addition add = {.bench = bench, .elements = elements};
    struct bench_pair pair;
    struct work work;
    char name[64];

    add.count = SAMPLE_ELEMENTS / elements;
    add.count = add.count > 20000 ? 20000 : add.count;
    if (work_create(&work, &bench->lane, "add", 1, &elements) != TANDEM_OK) {
        bench_fail(bench, "add: %s", bench->lane.backend->last_error());
        return;
    }
    add.work = &work;
    if (check_work(bench, &work)) {
        pair = bench_compare(bench, by_launch, &add, bare, &add);
        snprintf(name, sizeof name, "add %lld, launch", (long long)elements);
        bench_row(bench, name, "C loop", &unit, &pair);
        if (pair.ok)
            bench_figure(bench, "  ours over the loop", "ns",
                         pair.ours.median - pair.theirs.median);
    }
    work_destroy(&work);
    compare_library(&add);
}

void suite_cpu(struct bench *bench)
{
    for (uint32_t i = 0; i < MAX_ELEMENTS; i++) {
        x[i] = seed_value(i);
        y[i] = seed_value(i + 1);
    }
    compare_size(bench, 16);
    compare_size(bench, 1024);
    compare_size(bench, 65536);
}
