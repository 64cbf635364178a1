/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies two matrices with the CBLAS; see blas_multiply.h. */
#include "config.h"

#include <cblas.h>
#include <string.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/blas_multiply.h"

/* Constants of max_terms. */
#define SMALL_KERNEL_ELEMENTS 4096
#define SMALL_KERNEL_TERMS 512
#define VECTOR_TERMS 4096
#define TINY_SIDE 8

/* Returns true if a matrix-vector product computes `c`, faster than sgemm. */
static bool is_row(const struct blas_product *p)
{
    return p->rows == 1 && !p->ta && p->alpha == 1;
}

/* Returns the maximum number of k indices for one CBLAS call.  OpenBLAS divides
 * k itself in large products.  In small ones, it accumulates all terms in one
 * f32, which is too inaccurate for many terms of the same sign.  If `a` is
 * contiguous along k, and `b` is too or the result is tiny, it accumulates in
 * the lanes of a vector, which allows more terms. */
static int64_t max_terms(const struct blas_product *p)
{
    bool is_tiny = p->rows <= TINY_SIDE && p->columns <= TINY_SIDE;
    if (is_row(p))
        return p->tb ? VECTOR_TERMS : SMALL_KERNEL_TERMS;
    if (p->rows * p->columns > SMALL_KERNEL_ELEMENTS)
        return p->depth;
    return !p->ta && (p->tb || is_tiny) ? VECTOR_TERMS : SMALL_KERNEL_TERMS;
}

/* Multiplies one row by a matrix.  Some CBLAS libraries multiply `a` by alpha
 * first, which can overflow even if the result does not, so alpha must be 1.
 * Some use NaN in `c` even if beta is 0, so `c` is cleared. */
static void row_multiply(const struct blas_product *p, int64_t from,
                         int64_t depth, float beta)
{
    if (beta == 0)
        memset(p->c, 0, (size_t)p->columns * sizeof *p->c);
    cblas_sgemv(CblasRowMajor, p->tb ? CblasNoTrans : CblasTrans,
                (int)(p->tb ? p->columns : depth),
                (int)(p->tb ? depth : p->columns), 1,
                p->b + from * (p->tb ? 1 : p->b_ld), (int)p->b_ld, p->a + from,
                1, beta, p->c, 1);
}

void blas_multiply(const struct blas_product *p)
{
    int64_t terms = max_terms(p);
    for (int64_t from = 0; from < p->depth; from += terms) {
        int64_t depth = p->depth - from < terms ? p->depth - from : terms;
        float beta = from == 0 ? p->beta : 1.0f;
        blas_enter();
        if (is_row(p))
            row_multiply(p, from, depth, beta);
        else
            cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans,
                        p->tb ? CblasTrans : CblasNoTrans, (int)p->rows,
                        (int)p->columns, (int)depth, p->alpha,
                        p->a + from * (p->ta ? p->a_ld : 1), (int)p->a_ld,
                        p->b + from * (p->tb ? 1 : p->b_ld), (int)p->b_ld, beta,
                        p->c, (int)p->c_ld);
        blas_leave();
    }
}
