/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that touches much of the library, on data that overflows, is not a
 * number or subnormal, for tests that compare its results.
 */
#ifndef TANDEM_TESTS_MANNERS_WORK_H
#define TANDEM_TESTS_MANNERS_WORK_H

#include <tandem/host.h>

/* Enough that the CPU plugin asks its helpers. */
#define WORK_ELEMENTS ((int64_t)1 << 18)
#define WORK_SIDE 96
/* Element-wise, row by row, and products. */
#define WORK_RESULTS (11 * WORK_ELEMENTS + 2 * WORK_SIDE * WORK_SIDE)

/* Makes the data, at first use too: in the default floating-point
 * environment. */
void work_prepare(void);
/* Runs it on device and writes WORK_RESULTS results. */
void work_run(struct tandem_context *context, uint32_t device, float *out);
/* results as memcmp has it, but any NaN for any NaN; names where not. */
void work_compare(const float *expected, const float *results,
                  const char *what);

#endif
