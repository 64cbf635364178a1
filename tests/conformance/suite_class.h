/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the suite and an operator class.  The class's file has
 * `suite_<class>` with its cases, its reference and its random calls; the table
 * of all classes is generated from TANDEM_CLASSES in tandem/operators.h.  All
 * of it is constant.
 */
#ifndef TANDEM_CONFORMANCE_SUITE_CLASS_H
#define TANDEM_CONFORMANCE_SUITE_CLASS_H

#include "call.h"
#include "draw.h"
#include "inputs.h"
#include "mistakes.h"
#include "reference.h"
#include "suite.h"

enum class_rules {
    /* Inputs broadcast to the shape of the output; all but one may be NULL. */
    BROADCASTS = 1,
    /* An output may be exactly an input. */
    IN_PLACE = 2,
    /* The output has any shape to which the input broadcasts. */
    FREE_OUTPUT_SHAPE = 4,
    /* Input and output may have any two dtypes. */
    FREE_OUTPUT_DTYPE = 8,
    /* Any number of inputs, at least that of the operator table. */
    VARIADIC = 16,
    /* An output may be exactly input 0. */
    IN_PLACE_FIRST = 32
};

struct suite_class {
    uint32_t rules; /* enum class_rules. */

    /* ---- cases ---- */

    /*
     * Runs cases of an operator in addition to the drawn ones: values, and
     * combinations of attributes, that a random draw rarely has. May be NULL.
     */
    void (*cases)(struct suite *suite, const struct op_row *row);
    /*
     * Initializes and fills one struct expected for each output. inputs: the
     * inputs in row-major order, broadcast to the output's shape if the class
     * broadcasts; NULL for GEMM.
     */
    void (*reference)(const struct call *call, const struct dense *inputs,
                      struct expected *out);
    /* Ranges of values and special points of the operators. */
    const struct domain *domains;
    uint32_t domain_count;

    /* ---- drawn cases and random calls; NULL functions do nothing ---- */

    /* Draws the operands of a valid call and its attributes. */
    void (*draw)(struct call *call, const struct block *block);
    /*
     * Fills an input. Returns false if the input has no special meaning and is
     * filled according to the spread.
     */
    bool (*fill)(struct call *call, uint32_t input,
                 const struct spread *spread);
    /* Draws the attributes that depend on the magnitudes. */
    void (*draw_attributes)(struct call *call, const struct spread *spread);
    /*
     * Narrows the decimal exponents of the values, so that f32 represents all
     * intermediate values of the operator's formula.
     */
    void (*limit_exponents)(const struct op_row *row, double *low,
                            double *high);
    /* Gives an attribute an invalid value. Returns false without attributes. */
    bool (*draw_invalid_attribute)(struct call *call);
    /*
     * Frequency of each operator in random calls, and the number of its drawn
     * cases, relative to others; 0 stands for 1.
     */
    uint32_t weight;

    /* ---- invalid calls ---- */

    /* Turns a call that maps [3,4] to [3,4] into a valid one. */
    void (*make_valid)(struct mistaken_call *call);
    const struct call_mistake *mistakes;
    uint32_t mistake_count;
};

/* Returns the class of an operator. */
const struct suite_class *class_of(const struct op_row *row);
/*
 * Sets out_rows to the operators that GEMM and convolutions accept as
 * activation. A smoke run gets two of them, which depend on the seed and on
 * `row`. Returns their number.
 */
uint32_t activations_choose(const struct suite *suite, const struct op_row *row,
                            const struct op_row *out_rows[TANDEM_OP_ID_END]);
/* Runs the cases of all selected operators. */
void operators_run(struct suite *suite);
/* Returns the mistake with this number over all classes, or NULL. */
const struct call_mistake *mistake_get(uint32_t number);

#endif
