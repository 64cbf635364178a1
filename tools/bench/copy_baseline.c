/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies memory without Tandem; see copy_baseline.h.
 */
#include <config.h>

#include "copy_baseline.h"

#include "../common/clock.h"
#ifdef BENCH_OPENCL
#include "raw_opencl.h"
#endif

#include <stdlib.h>
#include <string.h>

/* Source and target of a copy.  Owns both. */
struct copy_baseline {
    uint64_t bytes;
    void *from, *to; /* on the host */
#ifdef BENCH_OPENCL
    struct raw_opencl *raw_opencl; /* owned by struct bench */
    cl_mem source, target;
#endif
};

static bool on_host(const struct bench *bench)
{
    return !bench_on_opencl(bench);
}

const char *copy_baseline_name(const struct bench *bench)
{
    return on_host(bench) ? "memcpy" : "device copy";
}

static bool host_open(struct copy_baseline *copy)
{
    copy->from = malloc(copy->bytes);
    copy->to = malloc(copy->bytes);
    if (copy->from == NULL || copy->to == NULL)
        return false;
    memset(copy->from, 1, copy->bytes);
    memset(copy->to, 2, copy->bytes);
    return true;
}

static bool copy_open(struct copy_baseline *copy, struct bench *bench)
{
    if (on_host(bench))
        return host_open(copy);
#ifdef BENCH_OPENCL
    copy->raw_opencl = raw_opencl_of(bench);
    if (copy->raw_opencl == NULL)
        return false;
    copy->source = raw_opencl_buffer(copy->raw_opencl, copy->bytes);
    copy->target = raw_opencl_buffer(copy->raw_opencl, copy->bytes);
    return copy->source != NULL && copy->target != NULL;
#else
    return false;
#endif
}

static void copy_destroy(struct copy_baseline *copy)
{
    if (copy == NULL)
        return;
#ifdef BENCH_OPENCL
    raw_opencl_free(copy->source);
    raw_opencl_free(copy->target);
#endif
    free(copy->from);
    free(copy->to);
    free(copy);
}

/* Returns NULL and fails the run if the memory is not available. */
static struct copy_baseline *copy_create(struct bench *bench, uint64_t bytes)
{
    struct copy_baseline *copy = calloc(1, sizeof *copy);

    if (copy == NULL)
        return NULL;
    copy->bytes = bytes;
    if (copy_open(copy, bench))
        return copy;
    bench_fail(bench, "no memory for a copy of %llu bytes",
               (unsigned long long)bytes);
    copy_destroy(copy);
    return NULL;
}

static bool copy_all(struct copy_baseline *copy, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (copy->from != NULL) {
            memcpy(copy->to, copy->from, copy->bytes);
            /* Keeps the compiler from removing the copy. */
            __asm__ volatile("" : : "r"(copy->to) : "memory");
            continue;
        }
#ifdef BENCH_OPENCL
        if (clEnqueueCopyBuffer(copy->raw_opencl->queue, copy->source,
                                copy->target, 0, 0, copy->bytes, 0, NULL,
                                NULL) != CL_SUCCESS)
            return false;
#endif
    }
#ifdef BENCH_OPENCL
    if (copy->from == NULL)
        return clFinish(copy->raw_opencl->queue) == CL_SUCCESS;
#endif
    return true;
}

static double copy_run(void *copy, uint64_t count)
{
    struct copy_baseline *c = copy;
    uint64_t start = clock_now_ns();

    if (!copy_all(c, count))
        return -1;
    return (double)(clock_now_ns() - start) / (double)count;
}

void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes)
{
    struct copy_baseline *copy = copy_create(bench, (uint64_t)(bytes / 2));

    if (copy == NULL)
        return;
    comparison_add(comparison, copy_baseline_name(bench), copy_run, copy);
    bench_compare(bench, comparison);
    copy_destroy(copy);
}
