/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy in device memory without Tandem, as a reference for bandwidths: memcpy
 * for the CPU plugin, clEnqueueCopyBuffer for OpenCL.  Single-threaded.
 */
#ifndef TANDEM_BENCH_COPY_BASELINE_H
#define TANDEM_BENCH_COPY_BASELINE_H

#include "bench.h"

/* Returns "memcpy" or "device copy". */
const char *copy_baseline_name(const struct bench *bench);
/* Adds to the comparison, which has Tandem only, a copy that reads and writes
 * `bytes` bytes in all, and runs the comparison. */
void copy_baseline_comparison(struct bench *bench,
                              struct comparison *comparison, double bytes);

#endif
