/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of the suite "layers" except GEMM, from the words of a row's
 * detail:
 *
 *   conv       the shape is that of the input.  mM: M output channels; kK, sS,
 *              pP, gG: window, stride and padding of each axis, and groups.
 *              Without a word 1, 1, 0 and 1.  There is a bias.  "tf32":
 *              TANDEM_OP_ALLOW_TF32.
 *   attention  the shape is that of q.  keysK: K keys, otherwise as many as
 *              queries; "causal".
 *   resize     "nearest" or "linear"; the last two axes are doubled.
 *   concat     axisA: the axis along which two inputs of this shape follow each
 *              other.
 *   average_pool, batch_norm, instance_norm, group_norm: as in the example of
 *              the operator's class (src/common).
 *
 * Needs no device.
 */
#ifndef TANDEM_BENCH_LAYER_CASE_H
#define TANDEM_BENCH_LAYER_CASE_H

#include "../common/op_case.h"
#include "row_list.h"

/* Changes a case that op_case_build made from the row's shape.  Does nothing
 * for other operators. */
void layer_case_apply(const struct row *row, struct op_case *c);

/* Returns the number of multiplications and additions, or 0 if memory limits
 * the operator, as it limits a depthwise convolution. */
double layer_operations(const struct op_case *c);

/* Returns element `index` of the output of an operator listed above, for inputs
 * of seed_value. */
double layer_expected(const struct op_case *c, uint64_t index);

#endif
