/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain copy of memory of the device, nothing of ours between: what
 * bandwidths are compared with.  With OpenCL clEnqueueCopyBuffer, on the CPU
 * plugin's device memcpy.  Single-threaded.
 */
#ifndef TANDEM_BENCH_COPY_BASELINE_H
#define TANDEM_BENCH_COPY_BASELINE_H

#include "bench.h"

/* "memcpy", "device copy". */
const char *copy_baseline_name(const struct bench *bench);
/* The contest, of ours so far, against a copy that reads and writes bytes bytes
 * in all. */
void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes);

#endif
