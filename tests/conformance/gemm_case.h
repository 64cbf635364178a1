/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases of gemm: their parameters, and the function that runs one. */
#ifndef TANDEM_CONFORMANCE_GEMM_CASE_H
#define TANDEM_CONFORMANCE_GEMM_CASE_H

#include "suite.h"

/*
 * Patterns of a and b that random elements do not cover: rounding errors of
 * products with the same sign add up instead of averaging out.
 */
enum gemm_pattern {
    PATTERN_RANDOM,
    PATTERN_CONSTANT,   /* a = 0.7, b = 1. */
    PATTERN_PERIODIC,   /* Positive, repeats along k. */
    PATTERN_ALTERNATING /* a = 0.7, the sign of b alternates along k. */
};

struct gemm_form {
    int64_t m, n, k;
    int64_t batch; /* 0 stands for 1. */
    uint32_t flags, bias, activation;
    double alpha; /* 0 stands for 1. */
    double beta, activation_parameter;
    int64_t pad[3]; /* Padding of the rows of a, b and c. */
    uint32_t lead;  /* Elements before each matrix. */
    /* Bit 0: all batches share a; bit 1: all batches share b. */
    uint32_t repeat;
    bool always, full_only;
    bool special;  /* a and b contain NaN and infinite elements. */
    bool positive; /* Elements of a and b are in [1, 2) and use all bits. */
    double scale;  /* Scale of the elements of a and b; 0 stands for 1. */
    /* Multiplies the elements of a, divides those of b; 0 stands for 1. */
    double tilt;
    uint32_t dtype;   /* dtype of a and b; 0 stands for f32. */
    uint32_t c_dtype; /* dtype of c and bias; 0 stands for dtype. */
    enum gemm_pattern pattern;
    bool version_1_0;     /* Passed in the struct of version 1.0. */
    bool invalid_strides; /* Strides that do not matter are invalid. */
};

#define SIZES(M, N, K) .m = (M), .n = (N), .k = (K)
#define TA TANDEM_GEMM_TRANSPOSE_A
#define TB TANDEM_GEMM_TRANSPOSE_B
#define COLUMN TANDEM_BIAS_PER_COLUMN
#define ROW TANDEM_BIAS_PER_ROW
/* Stands for an alpha of 0. */
#define ZERO (-1e301)
/* An alpha or beta that becomes 0 in f32. */
#define TO_ZERO 1e-300
/*
 * Stands for an alpha with which about half of the results fit in c's dtype.
 */
#define NEAR_LARGEST (-1e300)

/* Runs one case. */
void gemm_form_run(struct suite *suite, const struct gemm_form *form);
/* Runs a case with random parameters. */
void gemm_random_run(struct suite *suite, struct random *random, uint32_t dtype,
                     uint32_t c_dtype);
/* Runs the cases of f16 and bf16 (cases_gemm_16bit.c). */
void gemm_16bit_run(struct suite *suite);
/*
 * Runs the cases in which the caller allows less accurate results
 * (cases_gemm_relaxed.c).
 */
void gemm_relaxed_run(struct suite *suite);

#endif
