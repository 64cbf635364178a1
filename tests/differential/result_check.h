/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a plugin made of a problem is right: its statuses, every byte of
 * its buffers, and its numbers by the operator's metric.  Pure functions.
 */
#ifndef TANDEM_DIFFERENTIAL_RESULT_CHECK_H
#define TANDEM_DIFFERENTIAL_RESULT_CHECK_H

#include "backend.h"
#include "conformance/reference.h"

/* What is expected of a problem's outputs; computed once for all plugins. */
struct judge {
    const struct problem *problem;
    bool computed, subnormal;
    /* As the inputs are, and with subnormal inputs taken for zeros. */
    struct expected expected[2][PROBLEM_OPERANDS];
    /* True for an element of GEMM's c whose partial results may leave the range
     * of f32: any value is accepted.  NULL for other operators. */
    bool *outside;
};

void judge_init(struct judge *judge, const struct problem *problem);
void judge_finish(struct judge *judge);

/* Writes what is wrong, "" if nothing is; caps: of the device. */
void judge_attempt(struct judge *judge, const struct attempt *attempt,
                   uint32_t caps, char *text, size_t size);

const char *status_name(enum tandem_status status);

/* Sets *out_outside to an array with one entry for each element of c of a GEMM:
 * true if a partial result may leave the range of f32.  The caller frees it.
 * Widens the tolerances by what subnormal products may lose.  In f32_range.c.
 */
void range_find(const struct problem *problem, struct expected *expected,
                bool **out_outside);

#endif
