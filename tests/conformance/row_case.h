/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of operators over rows (reductions, softmax, norms): rows with exactly
 * one special value, and draws.
 */
#ifndef TANDEM_CONFORMANCE_ROW_CASE_H
#define TANDEM_CONFORMANCE_ROW_CASE_H

#include "suite_class.h"

/*
 * Adds the inputs after the first one, whose shape is that of the first from
 * this axis on. size: their magnitude, or NULL for normal values.
 */
void row_parameters(struct call *call, int64_t axis, enum operand_layout layout,
                    const struct magnitude *size);

/*
 * Rows in which exactly one element is NaN, infinite, -0 or subnormal. The
 * element is the first, the last or between, so that each code path that reads
 * an element is tested separately.
 */
struct single_special {
    /* The output has the shape of the input; the attribute is an axis. */
    bool keeps_shape;
    bool trailing_axes; /* A row consists of all axes from that axis on. */
    uint32_t out_dtype;
    /* Fills with values that are not special, n for each row. */
    void (*fill)(struct operand *operand, struct random *random,
                 const struct op_row *row, int64_t n);
};
void single_specials_run(struct suite *suite, const struct op_row *row,
                         const struct single_special *kind);

/*
 * Draws the operands of an operator whose first integer attribute is an axis
 * and whose other integer attributes are switches.
 */
void row_draw_call(struct call *call, const struct block *block);
/* Draws an axis out of range, or a switch that is neither 0 nor 1. */
bool row_draw_invalid_attribute(struct call *call);

#endif
