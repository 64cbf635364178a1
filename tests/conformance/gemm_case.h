/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products under test: what tells one from another, and its run.
 */
#ifndef TANDEM_CONFORMANCE_GEMM_CASE_H
#define TANDEM_CONFORMANCE_GEMM_CASE_H

#include "suite.h"

/*
 * Elements of a and b that random ones do not stand for: rounding errors of
 * sums of products with one sign add up instead of averaging out.
 */
enum gemm_pattern {
    PATTERN_RANDOM,
    PATTERN_CONSTANT,   /* a = 0.7, b = 1 */
    PATTERN_PERIODIC,   /* positive, repeats along k */
    PATTERN_ALTERNATING /* a = 0.7, the sign of b alternates along k */
};

struct gemm_form {
    int64_t m, n, k;
    int64_t batch; /* 0: 1 */
    uint32_t flags, bias, activation;
    double alpha; /* 0: 1 */
    double beta, activation_parameter;
    int64_t pad[3];  /* of a's, b's and c's rows */
    uint32_t lead;   /* elements before each matrix */
    uint32_t repeat; /* bit 0: a, bit 1: b is one for all batches */
    bool always, full_only;
    bool special;   /* NaN and infinite elements in a and b */
    bool positive;  /* elements of a and b from 1 to 2, of all digits */
    double scale;   /* of a's and b's elements; 0: 1 */
    double tilt;    /* multiplies a's elements, divides b's; 0: 1 */
    uint32_t dtype; /* of a and b; 0: f32 */
    uint32_t c_dtype; /* of c and bias; 0: dtype */
    enum gemm_pattern pattern;
    bool old;         /* as a caller of version 1.0 passes it */
    bool junk;        /* strides that no address depends on are not valid */
};

#define SIZES(M, N, K) .m = (M), .n = (N), .k = (K)
#define TA TANDEM_GEMM_TRANSPOSE_A
#define TB TANDEM_GEMM_TRANSPOSE_B
#define COLUMN TANDEM_BIAS_PER_COLUMN
#define ROW TANDEM_BIAS_PER_ROW
/* An alpha of 0. */
#define ZERO (-1e301)
/* An alpha or a beta that is 0 as f32. */
#define TO_ZERO 1e-300
/* An alpha that is chosen so that c's dtype just holds half of the products. */
#define NEAR_LARGEST (-1e300)

/* One case. */
void gemm_form_run(struct suite *suite, const struct gemm_form *form);
/* A product that nobody thought of. */
void gemm_random_run(struct suite *suite, struct random *random,
                     uint32_t dtype, uint32_t c_dtype);
/* cases_gemm_16bit.c: f16 and bf16. */
void gemm_16_run(struct suite *suite);
/* cases_gemm_relaxed.c: less accurate products, where the caller allows it. */
void gemm_allowed_run(struct suite *suite);

#endif
