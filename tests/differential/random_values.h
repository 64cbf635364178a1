/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a problem's inputs: of one magnitude, of all magnitudes, or near
 * the limits at which the operator changes its algorithm, with no special
 * value, exactly one, one in some rows, or many.
 */
#ifndef TANDEM_DIFFERENTIAL_RANDOM_VALUES_H
#define TANDEM_DIFFERENTIAL_RANDOM_VALUES_H

#include "random_call.h"

/*
 * Fills the inputs of all operators except GEMM, and float attributes that
 * depend on the magnitudes.
 */
void values_make(struct problem *problem, struct random *random);
/* Fills GEMM's a, b, bias and c. */
void values_make_gemm(struct problem *problem, struct random *random);

#endif
