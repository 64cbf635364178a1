/* SPDX-License-Identifier: Apache-2.0 */
/* Copies memory without Tandem, as a reference for bandwidths; see bench.h. */
#include <config.h>

#include "bench.h"

#ifdef BENCH_OPENCL
#include "raw_opencl.h"
#endif

#include <stdlib.h>
#include <string.h>

/* Source and target of a copy.  Owns both. */
struct copy {
#ifdef BENCH_OPENCL
    struct raw_opencl *raw_opencl; /* owned by struct bench */
    cl_mem source, target;
#endif
    uint64_t bytes;
    void *from, *to; /* on the host */
};

static bool copy_on_host(void *argument)
{
    struct copy *copy = argument;

    memcpy(copy->to, copy->from, copy->bytes);
    /* Keeps the compiler from removing the copy. */
    __asm__ volatile("" : : "r"(copy->to) : "memory");
    return true;
}
static BENCH_FN(host_copies, copy_on_host, NULL);

static bool host_open(struct copy *copy)
{
    copy->from = malloc(copy->bytes);
    copy->to = malloc(copy->bytes);
    if (copy->from == NULL || copy->to == NULL)
        return false;
    memset(copy->from, 1, copy->bytes);
    memset(copy->to, 2, copy->bytes);
    return true;
}

#ifdef BENCH_OPENCL
static bool copy_on_device(void *argument)
{
    struct copy *copy = argument;

    return clEnqueueCopyBuffer(copy->raw_opencl->queue, copy->source,
                               copy->target, 0, 0, copy->bytes, 0, NULL,
                               NULL) == CL_SUCCESS;
}

static BENCH_FN(device_copies, copy_on_device, raw_opencl_wait);

static bool device_open(struct copy *copy, struct bench *bench)
{
    copy->raw_opencl = raw_opencl_of(bench);
    if (copy->raw_opencl == NULL)
        return false;
    copy->source = raw_opencl_buffer(copy->raw_opencl, copy->bytes);
    copy->target = raw_opencl_buffer(copy->raw_opencl, copy->bytes);
    return copy->source != NULL && copy->target != NULL;
}
#endif

const char *copy_baseline_name(const struct bench *bench)
{
    return bench_on(bench, "opencl") ? "device copy" : "memcpy";
}

void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes)
{
    struct copy copy = {.bytes = (uint64_t)(bytes / 2)};
    bench_fn run = host_copies;
    bool opened;

#ifdef BENCH_OPENCL
    if (bench_on(bench, "opencl")) {
        run = device_copies;
        opened = device_open(&copy, bench);
    } else
#endif
        opened = host_open(&copy);
    if (opened) {
        comparison_add(comparison, copy_baseline_name(bench), run, &copy);
        bench_compare(bench, comparison);
    } else {
        bench_fail(bench, "no memory for a copy of %llu bytes",
                   (unsigned long long)copy.bytes);
    }
#ifdef BENCH_OPENCL
    raw_opencl_free(copy.source);
    raw_opencl_free(copy.target);
#endif
    free(copy.from);
    free(copy.to);
}
