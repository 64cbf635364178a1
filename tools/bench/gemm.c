/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench gemm: square products through the plugin against the library
 * that it calls, called directly: CLBlast, or the CBLAS on the CPU.
 */
#include <config.h>

#include "../common/clock.h"
#include "bench.h"
#ifdef BENCH_OPENCL
#include "direct.h"

#include <clblast_c.h>
#endif
#ifdef BENCH_CBLAS
#include <cblas.h>
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_NS 5e6
#define MAX_COUNT 1000
/* A product that takes longer ends the series. */
#define SLOW_NS 5e8

/* Both sides of one size. */
struct product {
    struct work *work;
    int64_t n;
    uint64_t count;
#ifdef BENCH_OPENCL
    struct direct *direct;
    cl_mem a, b, c;
#endif
    float *x, *y, *z; /* on the host */
};

static double ours(void *argument)
{
    struct product *p = argument;
    uint64_t ns;

    if (work_stream(p->work, p->count, &ns) != TANDEM_OK)
        return -1;
    return (double)ns / (double)p->count;
}

#ifdef BENCH_OPENCL
static double clblast(void *argument)
{
    struct product *p = argument;
    size_t n = (size_t)p->n;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < p->count; i++)
        if (CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                         CLBlastTransposeNo, n, n, n, 1, p->a, 0, n, p->b, 0,
                         n, 0, p->c, 0, n, &p->direct->queue,
                         NULL) != CLBlastSuccess)
            return -1;
    if (clFinish(p->direct->queue) != CL_SUCCESS)
        return -1;
    return (double)(clock_now_ns() - start) / (double)p->count;
}
#endif

#ifdef BENCH_CBLAS
static double cblas(void *argument)
{
    struct product *p = argument;
    int n = (int)p->n;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < p->count; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1,
                    p->x, n, p->y, n, 0, p->z, n);
    return (double)(clock_now_ns() - start) / (double)p->count;
}
#endif

static float *host_matrix(int64_t n)
{
    uint64_t count = (uint64_t)(n * n);
    float *matrix = aligned_alloc(64, (count * 4 + 63) / 64 * 64);

    for (uint64_t i = 0; matrix != NULL && i < count; i++)
        matrix[i] = seed_value(i);
    return matrix;
}

/* The reference; NULL: this build has none for the device. */
static bench_fn product_open(struct bench *bench, struct product *p,
                             const char **out_name)
{
#ifdef BENCH_OPENCL
    uint64_t bytes = (uint64_t)(p->n * p->n) * sizeof(float);

    if (p->direct != NULL) {
        p->a = direct_buffer(p->direct, bytes);
        p->b = direct_buffer(p->direct, bytes);
        p->c = direct_buffer(p->direct, bytes);
        *out_name = "CLBlast";
        return p->a && p->b && p->c ? clblast : NULL;
    }
#endif
#ifdef BENCH_CBLAS
    if (strcmp(bench->lane.backend->name, "cpu") == 0) {
        p->x = host_matrix(p->n);
        p->y = host_matrix(p->n);
        p->z = host_matrix(p->n);
        *out_name = "CBLAS";
        return p->x && p->y && p->z ? cblas : NULL;
    }
#endif
    (void)bench;
    (void)p;
    (void)host_matrix;
    *out_name = "";
    return NULL;
}

static void product_close(struct product *p)
{
#ifdef BENCH_OPENCL
    direct_free(p->a);
    direct_free(p->b);
    direct_free(p->c);
#endif
    free(p->x);
    free(p->y);
    free(p->z);
}

/* false: enough. */
static bool compare_size(struct bench *bench, struct product *p)
{
    const struct bench_unit unit = {"GFLOP/s", p->work->c.flops};
    const char *against;
    bench_fn theirs = product_open(bench, p, &against);
    struct bench_pair pair;
    char name[64];
    double once = 0;

    if (theirs == NULL) {
        product_close(p);
        return false;
    }
    p->count = 1;
    ours(p);
    once = ours(p);
    p->count = (uint64_t)fmin(fmax(SAMPLE_NS / fmax(once, 1), 1), MAX_COUNT);
    pair = bench_compare(bench, ours, p, theirs, p);
    snprintf(name, sizeof name, "gemm n = %lld", (long long)p->n);
    bench_row(bench, name, against, &unit, &pair);
    product_close(p);
    return pair.ok && once < SLOW_NS;
}

static void compare_sizes(struct bench *bench, struct product *p)
{
    int64_t first = strcmp(bench->lane.backend->name, "cpu") == 0 ? 16 : 256;
    int64_t last = bench_small(bench) ? 1024 : 4096;
    bool more = true;

    for (int64_t n = first; n <= last && more; n *= 2) {
        const int64_t shape[] = {n, n, n};
        struct work work;

        if (work_create(&work, &bench->lane, "gemm", 3, shape) != TANDEM_OK) {
            bench_fail(bench, "gemm: %s", bench->lane.backend->last_error());
            return;
        }
        p->work = &work;
        p->n = n;
        more = check_work(bench, &work) && compare_size(bench, p);
        work_destroy(&work);
    }
}

void suite_gemm(struct bench *bench)
{
    struct product product = {.count = 1};
#ifdef BENCH_OPENCL
    struct direct direct;

    if (strcmp(bench->lane.backend->name, "opencl") == 0) {
        if (!direct_open(&direct, bench))
            return;
        product.direct = &direct;
    }
#endif
    compare_sizes(bench, &product);
#ifdef BENCH_OPENCL
    if (product.direct != NULL)
        direct_close(&direct);
#endif
}
