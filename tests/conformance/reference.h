/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every operator must give, in float64 or better, and how far a result
 * may be from it by the operator's metric (enum tandem_metric).  Pure
 * functions over dense copies of the inputs; no plugin is asked.
 */
#ifndef TANDEM_CONFORMANCE_REFERENCE_H
#define TANDEM_CONFORMANCE_REFERENCE_H

#include "operand.h"
#include "operator_list.h"

enum expected_kind {
    EXPECTED_REAL,    /* real within tolerance */
    EXPECTED_INTEGER, /* integer, exactly */
    EXPECTED_BITS     /* these bits; where real is a NaN: any NaN */
};

/* The expected elements of one output, in row-major order. */
struct expected {
    enum expected_kind kind;
    bool exact; /* the metric is EXACT: real, once rounded */
    int64_t elements;
    double *real;
    double *tolerance; /* absolute; infinite: a NaN or a zero will do */
    /* The least tolerance of subnormal results, whose last digit is coarser
     * than a relative metric allows. */
    double subnormal_tolerance;
    int64_t *integer; /* or bits */
    /* True for an element whose value backend.h does not specify: any value is
     * accepted, unless real is NaN.  NULL if all elements are specified. */
    bool *unspecified;
};

void expected_init(struct expected *expected, enum expected_kind kind,
                   int64_t elements);
void expected_finish(struct expected *expected);
/* Whether an element of an output is as it must be; *out_error is how far
 * off, in units of the tolerance (infinite where the metric has none). */
bool expected_accepts(const struct expected *expected, int64_t element,
                      uint32_t dtype, uint64_t bits, double *out_error);

/* A call as the reference sees it.  inputs of element-wise operators are
 * broadcast to the output's shape. */
struct reference {
    const struct op_row *row;
    const int64_t *ints;
    const double *floats;
    const struct dense *inputs;
    uint32_t out_dtype, out_rank;
    const int64_t *out_shape;
};

/* Fills row->outputs expected values; end each with expected_finish. */
void reference_compute(const struct reference *call, struct expected *out);

/* By class; called by reference_compute. */
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

/* 2 eps of the metrics. */
#define REFERENCE_2EPS 0x1p-23
/* A float attribute as an operator counts with it: itself, except that f32's
 * smallest and largest stand for what is nearer to 0 and further from it. */
double reference_attribute(double value);
/* An epsilon: at least 2^-126 if it is positive. */
double reference_epsilon(double value);
/* subnormal_tolerance of the metrics that are relative to a scale. */
#define REFERENCE_SUBNORMAL (8 * 0x1p-149)
double reference_ulp(double tolerance, double real);
/* The value of a unary operator, also for gemm's activations. */
double reference_unary(uint32_t id, double x, const int64_t *ints,
                       const double *floats);

/* The elements of gemm's c in row-major order, batches outermost.  The images
 * are of whole buffers; bias may be NULL. */
struct tandem_gemm;
void reference_gemm(const struct tandem_gemm *gemm, const unsigned char *a,
                    const unsigned char *b, const unsigned char *c,
                    const unsigned char *bias, struct expected *out);

#endif
