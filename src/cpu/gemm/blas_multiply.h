/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies two f32 matrices on the calling thread with the CBLAS.  Callable
 * from any thread between blas_limit and blas_release. */
#ifndef TANDEM_CPU_GEMM_BLAS_MULTIPLY_H
#define TANDEM_CPU_GEMM_BLAS_MULTIPLY_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of threads that call the CBLAS at a time.  OpenBLAS warns if
 * more threads call it than its build supports, which is at least 64. */
#define MAX_BLAS_THREADS 64

/* c = alpha * op(a) * op(b) + beta * c.  op(a) is rows x depth, op(b) is depth
 * x columns.  Every number, and the distance between rows of a stored matrix,
 * fits in an int. */
struct blas_product {
    bool ta, tb; /* true if `a` (`b`) is stored transposed */
    int64_t rows, columns, depth;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int64_t a_ld, b_ld, c_ld;
};

void blas_multiply(const struct blas_product *product);

#endif
