/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload that uses much of the library on values that overflow, are NaN or
 * subnormal, for tests that compare its results.
 */
#ifndef TANDEM_TESTS_PROCESS_WORKLOAD_H
#define TANDEM_TESTS_PROCESS_WORKLOAD_H

#include <tandem/host.h>

/* Enough elements to use the CPU plugin's worker threads. */
#define WORK_ELEMENTS ((int64_t)1 << 18)
#define WORK_SIDE 96
/* Element-wise operators, operators over rows, and GEMM. */
#define WORK_RESULTS (11 * WORK_ELEMENTS + 2 * WORK_SIDE * WORK_SIDE)

/* Creates the data once, in the default floating-point environment. */
void work_prepare(void);
/* Runs the workload on the device and writes WORK_RESULTS results. */
void work_run(struct tandem_context *context, uint32_t device, float *out);
/* Compares the results bit by bit; all NaNs are equal. names: for messages. */
void work_compare(const float *expected, const float *results,
                  const char *what);

#endif
