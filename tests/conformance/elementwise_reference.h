/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of the element-wise classes. Pure functions. */
#ifndef TANDEM_CONFORMANCE_ELEMENTWISE_REFERENCE_H
#define TANDEM_CONFORMANCE_ELEMENTWISE_REFERENCE_H

#include "suite_class.h"

void elementwise_reference(const struct call *call, const struct dense *in,
                           struct expected *out);
/* Returns the value of a unary operator; GEMM's activations use it, too. */
double reference_unary(uint32_t id, double x, const int64_t *ints,
                       const double *floats);
/*
 * Sets *out_real to the activation of x, and *out_tolerance to the tolerance if
 * x has an error of at most `error`. The activation is an operator of class
 * UNARY with its attributes, or TANDEM_OP_INVALID. Returns false if the result
 * is unspecified, because only some arguments give NaN.
 */
bool reference_activation(uint32_t id, const double *parameters, double x,
                          double error, double *out_real,
                          double *out_tolerance);

#endif
