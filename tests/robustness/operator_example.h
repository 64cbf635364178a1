/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples of the operator classes (op_class.h) as calls for tests of
 * faults: several shapes, and comparison of the results.
 *
 * Call it from one thread.
 */
#ifndef TANDEM_TESTS_OPERATOR_EXAMPLE_H
#define TANDEM_TESTS_OPERATOR_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/tensor_desc.h"
#include "../../tools/common/resident_op.h"

#define MAX_EXAMPLE_OUTPUT_BYTES (1u << 20)
/*
 * Each operator has an example with at least one shape. The shapes before
 * FALLBACK_EXAMPLE_SHAPE may make a device enqueue more commands for the same
 * operator. The others are for operators that have no example with these.
 */
#define FALLBACK_EXAMPLE_SHAPE 3
#define EXAMPLE_SHAPES 6

/* Returns the text of a shape, which is valid until the next call. */
const char *example_shape_text(size_t shape);
/*
 * Initializes op->c, for resident_op_begin. Returns false if the operator has
 * no example with this shape.
 */
bool example_build(struct resident_op *op, const struct tandem_op_info *info,
                   size_t shape);
/* Overwrites the outputs, except those that are also inputs. */
enum tandem_status example_outputs_clear(const struct resident_op *op);
/*
 * Returns true if two values of an output are equal, except for rounding
 * errors of f32.
 */
bool example_outputs_equal(const struct tandem_tensor_desc *out,
                           const void *got, const void *want);

#endif
