/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies without Tandem; see copy_baseline.h.
 */
#include <config.h>

#include "copy_baseline.h"

#include "../common/clock.h"
#ifdef BENCH_OPENCL
#include "raw_opencl.h"
#endif

#include <stdlib.h>
#include <string.h>

/* Two blocks of memory, which the copier owns. */
struct copier {
    uint64_t bytes;
    void *from, *to; /* on the host */
#ifdef BENCH_OPENCL
    struct raw_opencl *raw_opencl; /* the bench's */
    cl_mem source, target;
#endif
};

static bool on_host(const struct bench *bench)
{
    return !bench_on_opencl(bench);
}

const char *copier_name(const struct bench *bench)
{
    return on_host(bench) ? "memcpy" : "device copy";
}

static bool host_open(struct copier *copier)
{
    copier->from = malloc(copier->bytes);
    copier->to = malloc(copier->bytes);
    if (copier->from == NULL || copier->to == NULL)
        return false;
    memset(copier->from, 1, copier->bytes);
    memset(copier->to, 2, copier->bytes);
    return true;
}

static bool copier_open(struct copier *copier, struct bench *bench)
{
    if (on_host(bench))
        return host_open(copier);
#ifdef BENCH_OPENCL
    copier->raw_opencl = raw_opencl_of(bench);
    if (copier->raw_opencl == NULL)
        return false;
    copier->source = raw_opencl_buffer(copier->raw_opencl, copier->bytes);
    copier->target = raw_opencl_buffer(copier->raw_opencl, copier->bytes);
    return copier->source != NULL && copier->target != NULL;
#else
    return false;
#endif
}

static void copier_destroy(struct copier *copier)
{
    if (copier == NULL)
        return;
#ifdef BENCH_OPENCL
    raw_opencl_free(copier->source);
    raw_opencl_free(copier->target);
#endif
    free(copier->from);
    free(copier->to);
    free(copier);
}

/* Returns NULL and fails the run if the memory is not available. */
static struct copier *copier_create(struct bench *bench, uint64_t bytes)
{
    struct copier *copier = calloc(1, sizeof *copier);

    if (copier == NULL)
        return NULL;
    copier->bytes = bytes;
    if (copier_open(copier, bench))
        return copier;
    bench_fail(bench, "no memory for a copy of %llu bytes",
               (unsigned long long)bytes);
    copier_destroy(copier);
    return NULL;
}

static bool copy_all(struct copier *copier, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (copier->from != NULL) {
            memcpy(copier->to, copier->from, copier->bytes);
            /* So that no copy is taken for superfluous. */
            __asm__ volatile("" : : "r"(copier->to) : "memory");
            continue;
        }
#ifdef BENCH_OPENCL
        if (clEnqueueCopyBuffer(copier->raw_opencl->queue, copier->source,
                                copier->target, 0, 0, copier->bytes, 0, NULL,
                                NULL) != CL_SUCCESS)
            return false;
#endif
    }
#ifdef BENCH_OPENCL
    if (copier->from == NULL)
        return clFinish(copier->raw_opencl->queue) == CL_SUCCESS;
#endif
    return true;
}

static double copier_run(void *copier, uint64_t count)
{
    struct copier *c = copier;
    uint64_t start = clock_now_ns();

    if (!copy_all(c, count))
        return -1;
    return (double)(clock_now_ns() - start) / (double)count;
}

void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes)
{
    struct copier *copier = copier_create(bench, (uint64_t)(bytes / 2));

    if (copier == NULL)
        return;
    comparison_add(comparison, copier_name(bench), copier_run, copier);
    bench_compare(bench, comparison);
    copier_destroy(copier);
}
