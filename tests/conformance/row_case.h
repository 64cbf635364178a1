/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators over rows (softmax, norms) under test: what tells one case from
 * another, and its run along each axis.
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
    enum operand_layout in, rest, out; /* rest: of inputs after the first */
    double scale, shift; /* of the normal values; scale 0: specials */
};

#define D LAYOUT_DENSE
#define ANY LAYOUT_RANDOM

/* Fills an operator's first input. */
typedef void row_fill_fn(struct operand *operand, struct random *random,
                         double scale, double shift);

/* The forms along each axis, as the run's level has it. */
void row_forms_run(struct suite *suite, const struct op_row *row,
                   const struct row_form *forms, uint32_t count,
                   row_fill_fn *fill);

#endif
