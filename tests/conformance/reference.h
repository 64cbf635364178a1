/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the expected results of each operator in float64 or better, and the
 * allowed error of a result by the operator's metric (enum tandem_metric).
 * Pure functions over dense copies of the inputs, without a plugin.
 */
#ifndef TANDEM_CONFORMANCE_REFERENCE_H
#define TANDEM_CONFORMANCE_REFERENCE_H

#include "operand.h"
#include "operator_list.h"

enum expected_kind {
    EXPECTED_REAL,    /* A real number within a tolerance. */
    EXPECTED_INTEGER, /* An exact integer. */
    EXPECTED_BITS     /* Exact bits; if real is NaN, any NaN. */
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
    int64_t *integer; /* Or bits. */
    /* True for an element whose value backend.h does not specify: any value is
     * accepted, unless real is NaN.  NULL if all elements are specified. */
    bool *unspecified;
};

void expected_init(struct expected *expected, enum expected_kind kind,
                   int64_t elements);
void expected_finish(struct expected *expected);
/*
 * Returns true if an element of an output is acceptable. *out_error is its
 * error in units of the tolerance, or infinite if the metric has no tolerance.
 */
bool expected_accepts(const struct expected *expected, int64_t element,
                      uint32_t dtype, uint64_t bits, double *out_error);

/*
 * The arguments of a call. Inputs of element-wise operators are broadcast to
 * the shape of the output.
 */
struct reference {
    const struct op_row *row;
    const int64_t *ints;
    const double *floats;
    const struct dense *inputs;
    uint32_t out_dtype, out_rank;
    const int64_t *out_shape;
};

/* Fills row->outputs expected values; release each with expected_finish. */
void reference_compute(const struct reference *call, struct expected *out);

/* Implementations for the operator classes, called by reference_compute. */
void reference_elementwise(const struct reference *call, struct expected *out);
void reference_cast(const struct reference *call, struct expected *out);
void reference_transpose(const struct reference *call, struct expected *out);
void reference_gather(const struct reference *call, struct expected *out);
void reference_reduce(const struct reference *call, struct expected *out);
void reference_softmax(const struct reference *call, struct expected *out);
void reference_cross_entropy(const struct reference *call,
                             struct expected *out);
void reference_norm(const struct reference *call, struct expected *out);
void reference_optimizer(const struct reference *call, struct expected *out);

/* Two epsilons of f32, the unit of the metrics. */
#define REFERENCE_2EPS 0x1p-23
/*
 * Returns a float attribute as operators use it: clamped to the range between
 * the smallest and the largest magnitude of f32.
 */
double reference_attribute(double value);
/* Returns epsilon, but at least 2^-126 if it is positive. */
double reference_epsilon(double value);
/* The subnormal_tolerance of metrics that are relative to a scale. */
#define REFERENCE_SUBNORMAL (8 * 0x1p-149)
double reference_ulp(double tolerance, double real);
/* Returns the value of a unary operator; also used for gemm's activations. */
double reference_unary(uint32_t id, double x, const int64_t *ints,
                       const double *floats);

/*
 * Computes the elements of gemm's c in row-major order, batches outermost. The
 * images contain whole buffers; bias may be NULL.
 */
struct tandem_gemm;
void reference_gemm(const struct tandem_gemm *gemm, const unsigned char *a,
                    const unsigned char *b, const unsigned char *c,
                    const unsigned char *bias, struct expected *out);

#endif
