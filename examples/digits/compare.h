/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times an epoch of the same training placed by the chooser, all on the CPU
 * plugin and all on an OpenCL device, in one process.  One thread at a time.
 */
#ifndef DIGITS_COMPARE_H
#define DIGITS_COMPARE_H

#include "table.h"

#include <stdio.h>

/* Median times of an epoch in seconds, or 0 if it was not measured. */
struct epoch_times {
    double chosen, cpu, opencl;
};

/* [blocks]  Prints the times and their ratios.  Without an OpenCL device it
 * says so, and why.  Returns false, with the error on standard error, on
 * failure. */
bool compare_print(FILE *report, const struct table *train,
                   const struct table *held, uint32_t batch, uint64_t seed,
                   struct epoch_times *out_times);

/* Prints the times in words to standard output.  `only_cpu` says that the CPU
 * ran every operator of the chosen placement. */
void epoch_times_print(const struct epoch_times *times, bool only_cpu);

#endif
