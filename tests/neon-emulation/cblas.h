/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BLAS functions that the CPU plugin calls, in plain C and row-major only,
 * so that no BLAS for the emulated CPU is needed.
 */
#ifndef TANDEM_TESTS_ARM_CBLAS_H
#define TANDEM_TESTS_ARM_CBLAS_H

#include <stdbool.h>
#include <stdint.h>

enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };

static inline void cblas_sgemm(enum CBLAS_ORDER order,
                               enum CBLAS_TRANSPOSE transpose_a,
                               enum CBLAS_TRANSPOSE transpose_b, int m, int n,
                               int k, float alpha, const float *a, int lda,
                               const float *b, int ldb, float beta, float *c,
                               int ldc)
{
    int64_t a_row = transpose_a == CblasTrans ? 1 : lda;
    int64_t a_column = transpose_a == CblasTrans ? lda : 1;
    int64_t b_row = transpose_b == CblasTrans ? 1 : ldb;
    int64_t b_column = transpose_b == CblasTrans ? ldb : 1;
    (void)order;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)a[i * a_row + l * a_column] *
                       b[l * b_row + j * b_column];
            float *out = c + i * ldc + j;
            *out = (float)(alpha * sum + (beta == 0 ? 0 : (double)beta * *out));
        }
}

/* x and y are like matrices of one column whose pitch is the increment. */
static inline void cblas_sgemv(enum CBLAS_ORDER order,
                               enum CBLAS_TRANSPOSE transpose, int m, int n,
                               float alpha, const float *a, int lda,
                               const float *x, int step_x, float beta,
                               float *y, int step_y)
{
    bool across = transpose == CblasTrans;
    cblas_sgemm(order, transpose, CblasNoTrans, across ? n : m, 1,
                across ? m : n, alpha, a, lda, x, step_x, beta, y, step_y);
}

static inline float cblas_sdot(int n, const float *x, int step_x,
                               const float *y, int step_y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i * step_x] * y[i * step_y];
    return (float)sum;
}

#endif
