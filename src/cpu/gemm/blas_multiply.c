/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies two matrices with the CBLAS; see blas_multiply.h. */
#include "config.h"

#include <cblas.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/blas_multiply.h"

/* Constants of max_terms. */
#define SMALL_KERNEL_ELEMENTS 4096
#define SMALL_KERNEL_TERMS 512
#define VECTOR_TERMS 4096
#define TINY_SIDE 8

/* Returns the maximum number of k indices for one CBLAS call.  OpenBLAS divides
 * k itself in large products.  In small ones, it accumulates all terms in one
 * f32, which is too inaccurate for many terms of the same sign.  If `a` is
 * contiguous along k, and `b` is too or the result is tiny, it accumulates in
 * the lanes of a vector, which allows more terms. */
static int64_t max_terms(const struct blas_product *p)
{
    bool is_tiny = p->rows <= TINY_SIDE && p->columns <= TINY_SIDE;
    if (p->rows * p->columns > SMALL_KERNEL_ELEMENTS)
        return p->depth;
    return !p->ta && (p->tb || is_tiny) ? VECTOR_TERMS : SMALL_KERNEL_TERMS;
}

void blas_multiply(const struct blas_product *p)
{
    int64_t terms = max_terms(p);
    for (int64_t from = 0; from < p->depth; from += terms) {
        int64_t depth = p->depth - from < terms ? p->depth - from : terms;
        blas_enter();
        cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans,
                    p->tb ? CblasTrans : CblasNoTrans, (int)p->rows,
                    (int)p->columns, (int)depth, p->alpha,
                    p->a + from * (p->ta ? p->a_ld : 1), (int)p->a_ld,
                    p->b + from * (p->tb ? 1 : p->b_ld), (int)p->b_ld,
                    from == 0 ? p->beta : 1.0f, p->c, (int)p->c_ld);
        blas_leave();
    }
}
