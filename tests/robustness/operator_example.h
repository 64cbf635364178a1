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
#include "opencl_workload.h"

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
/* The outputs of an example without a fault; NULL before it ran. */
struct example_outputs {
    void *data[TANDEM_MAX_OPERANDS];
};
void example_outputs_free(struct example_outputs *outputs);
/*
 * Runs the example on a new stream of the device of `work`, and compares its
 * outputs with the wanted ones, which it sets if they are NULL. Returns true if
 * all calls succeeded.
 */
bool example_run(struct workload *work, const struct tandem_op_info *info,
                 size_t shape, struct example_outputs *want);

#endif
