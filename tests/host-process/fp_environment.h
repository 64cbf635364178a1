/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a thread's floating-point environment that a host may change.
 * Any thread may call these functions.
 */
#ifndef TANDEM_TESTS_FP_ENVIRONMENT_H
#define TANDEM_TESTS_FP_ENVIRONMENT_H

struct fp_environment {
    int rounding, traps;
    unsigned flushing; /* Flushing of subnormals, if the CPU supports it. */
};

struct fp_environment fp_environment_read(void);
/* Asserts that the environment did not change. */
void fp_environment_compare(struct fp_environment before,
                            struct fp_environment after);
/* Flushes subnormals to 0, if the CPU supports it. */
void fp_environment_flush(void);

#endif
