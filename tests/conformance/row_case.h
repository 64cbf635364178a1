/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test cases of operators over rows (softmax, norms): their parameters, and
 * the function that runs them along each axis.
 */
#ifndef TANDEM_CONFORMANCE_ROW_CASE_H
#define TANDEM_CONFORMANCE_ROW_CASE_H

#include "operand.h"
#include "suite.h"
#include "operator_list.h"

struct row_form {
    const char *name;
    bool always, full_only;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    /* rest: the layout of inputs after the first. */
    enum operand_layout in, rest, out;
    /* Scale and shift of normal values; scale 0 stands for special values. */
    double scale, shift;
};

#define D LAYOUT_DENSE
#define ANY LAYOUT_RANDOM

/* Fills an operator's first input. */
typedef void row_fill_fn(struct operand *operand, struct random *random,
                         double scale, double shift);

/* Runs the forms along each axis that the level selects. */
void row_forms_run(struct suite *suite, const struct op_row *row,
                   const struct row_form *forms, uint32_t count,
                   row_fill_fn *fill);

#endif
