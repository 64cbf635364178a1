/* SPDX-License-Identifier: Apache-2.0 */
/* Values of inputs, by distribution and by operator. */
#ifndef TANDEM_CONFORMANCE_INPUTS_H
#define TANDEM_CONFORMANCE_INPUTS_H

#include "operand.h"
#include "operator_list.h"
#include "random.h"

/* The usual range of an operator's input, and its special points. */
struct domain {
    uint32_t op;
    double low, high;
    uint32_t count;
    double points[8];
};

/*
 * Returns a value for an input of an element-wise operator: usual, near the
 * operator's special points, of any exponent, or special (NaN, infinite, 0,
 * subnormal, the largest).
 */
float input_value(struct random *random, const struct op_row *row);
/* The special values and their number. */
float input_special(uint32_t number);
uint32_t input_special_count(void);
/*
 * Returns a value near one of the operator's special points. number is a small
 * multiple of the number of points.
 */
float input_near(struct random *random, const struct op_row *row);

/* Fills with input_value for F32, 0 or 1 for BOOL, and otherwise any bits. */
void operand_fill(struct operand *operand, struct random *random,
                  const struct op_row *row);
/*
 * Fills like operand_fill, but half of the values are ties, limits and their
 * neighbours for rounding to a narrower float dtype.
 */
void operand_fill_ties(struct operand *operand, struct random *random,
                       const struct op_row *row, uint32_t narrower);
/* Fills with normally distributed values times scale plus shift. */
void operand_fill_normal(struct operand *operand, struct random *random,
                         double scale, double shift);
/* Fills with normal values, of which one in `period` becomes special. */
void operand_fill_special(struct operand *operand, struct random *random,
                          uint64_t period);
/* Returns one of n factors whose product is specified: no partial product
 * leaves the range of f32.  About 64 of the factors are spread over a few
 * powers of two, and the others differ from 1 by about 32 / n.  One factor in
 * three is negative. */
double input_factor(struct random *random, int64_t n);
/* Fills with random bits. */
void operand_fill_bits(struct operand *operand, struct random *random);

/* A range of binary exponents. */
struct magnitude {
    const char *name;
    int low, high;
};
#define MAGNITUDES 12u
extern const struct magnitude magnitudes[MAGNITUDES];

/* Returns a value of this magnitude and either sign. */
double input_of_magnitude(struct random *random, const struct magnitude *size);
void operand_fill_magnitude(struct operand *operand, struct random *random,
                            const struct magnitude *size, bool positive);

#endif
