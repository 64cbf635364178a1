/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected results in float64 or better, with their tolerances. The files of
 * the operator classes compute them. Pure functions over dense copies of the
 * inputs, without a plugin.
 */
#ifndef TANDEM_CONFORMANCE_REFERENCE_H
#define TANDEM_CONFORMANCE_REFERENCE_H

#include "operand.h"

enum expected_kind {
    EXPECTED_REAL,    /* A real number within a tolerance. */
    EXPECTED_INTEGER, /* An exact integer. */
    EXPECTED_BITS     /* Exact bits; if real is NaN, any NaN. */
};

/* Elements whose value backend.h does not specify. */
enum unspecified {
    SPECIFIED,
    UNSPECIFIED_UNLESS_NAN, /* Any value, but NaN if real is NaN. */
    UNSPECIFIED             /* Any value. */
};

/* The expected elements of one output, in row-major order. */
struct expected {
    enum expected_kind kind;
    bool exact; /* The metric is EXACT: real, rounded once. */
    int64_t elements;
    double *real;
    /* Absolute. Infinite means that a NaN or a zero is accepted. */
    double *tolerance;
    /*
     * The minimum tolerance of subnormal results, whose spacing is coarser
     * than a relative metric allows.
     */
    double subnormal_tolerance;
    int64_t *integer;           /* Or bits. */
    unsigned char *unspecified; /* enum unspecified; NULL: all specified. */
};

void expected_init(struct expected *expected, enum expected_kind kind,
                   int64_t elements);
void expected_finish(struct expected *expected);
/* Allows to mark elements as unspecified. */
void expected_allow_unspecified(struct expected *expected);
/*
 * Returns a float attribute as operators use it: clamped to the range between
 * the smallest and the largest magnitude of f32.
 */
double reference_attribute(double value);
/* Returns epsilon, but at least 2^-126 if it is positive. */
double reference_epsilon(double value);
/* Returns the axis that an attribute selects, counted from 0. */
int64_t axis_from_start(int64_t axis, uint32_t rank);

#endif
