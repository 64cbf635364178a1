/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a result may be from the expected value: the tolerance by the metric
 * of its operator (enum tandem_metric in operators.h says what each means), and
 * the check of an element. Pure functions.
 */
#ifndef TANDEM_CONFORMANCE_TOLERANCE_H
#define TANDEM_CONFORMANCE_TOLERANCE_H

#include "operator_list.h"
#include "reference.h"
#include "slots.h"

/* Two epsilons of f32, the unit of the metrics. */
#define TOLERANCE_2EPS 0x1p-23
/* The subnormal_tolerance of metrics that are relative to a scale. */
#define TOLERANCE_SUBNORMAL (8 * 0x1p-149)

/* Returns what flushing an input x to zero loses: |x| if x is subnormal. */
double reference_flushed(double x);
/* Returns the tolerance of the metric ULP. */
double tolerance_ulp(double tolerance, double real);
/* Returns log2 n, or 0 for n < 1. */
double reference_log2(int64_t n);
/* Returns the tolerance of the value r of a unary operator at x. */
double tolerance_unary(const struct op_row *row, double r, double x,
                       const double *floats);

/* Returns the tolerance of a reduction to `real`, for most metrics relative to
 * `scale`. */
double tolerance_reduction(const struct op_row *row, const struct slot *slot,
                           double real, double scale);
/* Returns the tolerance of TANDEM_METRIC_LOG_SUM_EXP. */
double tolerance_log_sum_exp(const struct op_row *row, const struct slot *slot,
                             double real);

/*
 * Returns true if an element of an output is acceptable. *out_error is its
 * error in units of the tolerance, or infinite if the metric has no tolerance.
 */
bool expected_accepts(const struct expected *expected, int64_t element,
                      uint32_t dtype, uint64_t bits, double *out_error);

#endif
