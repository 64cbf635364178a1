/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the outcome of a problem on a plugin: the statuses, every byte of the
 * buffers, and the values by the operator's metric. Pure functions.
 */
#ifndef TANDEM_DIFFERENTIAL_RESULT_CHECK_H
#define TANDEM_DIFFERENTIAL_RESULT_CHECK_H

#include "backend.h"
#include "conformance/reference.h"

/* The expected results of a problem; computed once for all plugins. */
struct checker {
    const struct problem *problem;
    bool computed, subnormal;
    /*
     * The results with subnormal inputs unchanged, and with subnormal inputs
     * flushed to zero.
     */
    struct expected expected[2][PROBLEM_OPERANDS];
    /* True for an element of GEMM's c whose partial results may leave the range
     * of f32: any value is accepted.  NULL for other operators. */
    bool *outside;
};

void checker_init(struct checker *checker, const struct problem *problem);
void checker_finish(struct checker *checker);

/*
 * Writes a description of the first mistake, or "". caps: the capabilities of
 * the device.
 */
void check_outcome(struct checker *checker,
                   const struct call_outcome *call_outcome, uint32_t caps,
                   char *text, size_t size);

const char *status_name(enum tandem_status status);

/* Sets *out_outside to an array with one entry for each element of c of a GEMM:
 * true if a partial result may leave the range of f32.  The caller frees it.
 * Widens the tolerances by what subnormal products may lose.  In f32_range.c.
 */
void range_find(const struct problem *problem, struct expected *expected,
                bool **out_outside);

#endif
