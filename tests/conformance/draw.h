/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random draws for the operands of calls: shapes near the limits at
 * which kernels change their algorithm, layouts, and values of one magnitude,
 * of all magnitudes, with no special value, exactly one, one in some rows, or
 * many.
 */
#ifndef TANDEM_CONFORMANCE_DRAW_H
#define TANDEM_CONFORMANCE_DRAW_H

#include "call.h"

/*
 * Properties that consecutive calls share, because a device compiles each
 * kernel at its first use.
 */
#define BLOCK_OPERATORS 4u
#define BLOCK_NUMBERS 6u
struct block {
    const struct op_row *rows[BLOCK_OPERATORS];
    /* Random numbers from which a class derives dtypes and the like. */
    uint64_t numbers[BLOCK_NUMBERS];
};

/* Makes later shapes have some millions of elements now and then. */
void shapes_allow_millions(bool allowed);
/* Draws a shape of this rank or, if min and max differ, of a rank between. */
void shape_draw(struct shape *shape, struct random *random, uint32_t min_rank,
                uint32_t max_rank);
/*
 * Returns the number of elements with axes of length 0 counted as 1, because
 * the memory of an empty tensor has strides, too.
 */
int64_t shape_storage(const struct shape *shape);
/* Keeps the axes in the mask, sets others to 1, and drops some leading ones. */
void shape_narrow(struct shape *out, struct random *random,
                  const struct shape *whole, uint32_t full);
/* Initializes operand number `place` with a random layout. */
void operand_draw(struct call *call, uint32_t place, uint32_t dtype,
                  const struct shape *shape);
/* The same for images, of which one in four is in the order NHWC. */
void images_draw(struct call *call, uint32_t place, const struct shape *shape);
/* Draws an axis, counted from the start or from the end. */
int64_t axis_draw(struct random *random, uint32_t rank);
/* Returns I32 or I64. */
uint32_t index_dtype_draw(struct random *random);
/* Returns an invalid value for an attribute in [low, high]. */
int64_t invalid_number_draw(struct random *random, int64_t low, int64_t high);

/* Returns the activation of a block, if any. Most blocks have one of the usual
 * activations, the others any. */
uint32_t activation_draw(const struct block *block);
/* Returns the number of a block from which activation_draw returns this one. */
uint64_t block_number_of_activation(uint32_t id);

/* A distribution of values. */
struct spread {
    enum {
        SPREAD_NORMAL,   /* Mean 0, variance 1. */
        SPREAD_DOMAIN,   /* input_value of the operator. */
        SPREAD_UNIFORM,  /* All of one magnitude. */
        SPREAD_MIXED,    /* All magnitudes. */
        SPREAD_INTEGERS, /* Few different values, with ties. */
        SPREAD_FAR,      /* Mean 1000, variance 1. */
        SPREAD_COUNT
    } kind;
    enum {
        SPECIAL_NONE,
        SPECIAL_ONE,  /* Exactly one special element. */
        SPECIAL_ROWS, /* Exactly one special element in some rows. */
        SPECIAL_MANY
    } special;
    double low, high; /* Decimal exponents. */
    double scale;     /* For SPREAD_UNIFORM. */
    bool positive;
    bool narrow; /* No special value of large magnitude. */
    const struct op_row *row;
};

void spread_draw(struct spread *spread, struct random *random,
                 const struct op_row *row);
double value_draw(const struct spread *spread, struct random *random);
void element_set(struct operand *operand, int64_t element, double value);
/* Fills an operand of a float dtype. */
void reals_fill(struct operand *operand, const struct spread *spread,
                struct random *random);
/*
 * Draws an index or label of an axis of `length` elements. wrap: some indices
 * are negative. outside: some are out of range.
 */
int64_t index_draw(struct random *random, int64_t length, bool wrap,
                   bool outside);

/*
 * Makes equal elements in the first two inputs, which comparisons, min and max
 * need to be tested.
 */
void ties_make(struct call *call);

/* Makes operands share a buffer: in place, disjoint or overlapping. */
void sharing_draw(struct call *call);
/* Makes one mistake in the call. */
void mistake_draw(struct call *call);

/* Runs a case: a valid random call of the operator with these numbers. */
void drawn_case_run(struct suite *suite, const struct op_row *row,
                    const struct block *block, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/*
 * Runs the drawn cases of an operator. Their number depends on the level and on
 * the weight of the class. Four in a row share their block.
 */
void drawn_cases_run(struct suite *suite, const struct op_row *row);

/* Runs the random calls that the options select, on one or two plugins. */
void random_calls_run(struct suite *suite);

#endif
