/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times an epoch of the same training placed by the chooser, all on the CPU
 * plugin and all on an OpenCL device, in one process.  One thread at a time.
 */
#ifndef DIGITS_COMPARE_H
#define DIGITS_COMPARE_H

#include "table.h"

/* [blocks]  Prints the times and their ratios.  Without an OpenCL device it
 * says so, and why.  false, with the error on standard error, on failure. */
bool compare_print(const struct table *train, const struct table *held,
                   uint32_t batch, uint64_t seed);

#endif
