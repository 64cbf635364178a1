/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by the CBLAS that the plugin was built with, and the pass of
 * bias and activation over their result.  Any thread.
 */
#include "config.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "common/float_env.h"
#include "common/message.h"
#include "cpu/blas.h"
#include "cpu/gemm.h"

/* Results of a matrix by a vector that are made together. */
#define VECTOR_RESULTS 256

static const float *matrix_data(const struct tandem_matrix *matrix)
{
    return (const float *)(const void *)(matrix->buffer->base +
                                         matrix->byte_offset);
}

enum tandem_status gemm_supports(const struct tandem_gemm *gemm)
{
    int64_t largest = gemm->m > gemm->n ? gemm->m : gemm->n;
    const int64_t others[] = {gemm->k, gemm->a.ld, gemm->b.ld, gemm->c.ld};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        largest = others[i] > largest ? others[i] : largest;
    if (largest <= INT_MAX)
        return TANDEM_OK;
    return message_set(TANDEM_UNSUPPORTED,
                       "gemm: a dimension of %lld is more than the BLAS's "
                       "integers hold (%d)",
                       (long long)largest, INT_MAX);
}

/* c = beta c, where there is nothing to multiply. */
static void c_scale(float *c, int64_t ld, int64_t m, int64_t n, float beta)
{
    for (int64_t i = 0; i < m; i++, c += ld)
        for (int64_t j = 0; j < n; j++)
            c[j] = beta == 0 ? 0.0f : c[j] * beta;
}

static bool by_vector(const struct tandem_gemm *gemm)
{
    return gemm->m == 1 || gemm->n == 1;
}

/* A matrix by a vector, n results: c, of one row or column, starts from 0 where
 * beta is, which makes nothing of what it holds. */
static void vector_multiply(const struct tandem_gemm *gemm, const float *a,
                            const float *b, float *c, int64_t n)
{
    bool ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    bool row = gemm->m == 1; /* by b's columns, else by a's rows */
    const struct tandem_matrix *matrix = row ? &gemm->b : &gemm->a;
    bool across = row ? !tb : ta; /* the matrix lies by k */
    int64_t step = row ? (ta ? gemm->a.ld : 1) : (tb ? 1 : gemm->b.ld);
    if (gemm->beta == 0)
        c_scale(c, gemm->c.ld, row ? 1 : n, row ? n : 1, 0);
    blas_enter();
    cblas_sgemv(CblasRowMajor, across ? CblasTrans : CblasNoTrans,
                (int)(across ? gemm->k : n),
                (int)(across ? n : gemm->k), (float)gemm->alpha,
                row ? b : a, (int)matrix->ld, row ? a : b, (int)step,
                (float)gemm->beta, c, row ? 1 : (int)gemm->c.ld);
    blas_leave();
}

/* n results of batch, from number from on. */
static void stretch_multiply(const struct product *product, int64_t batch,
                             int64_t from, int64_t n)
{
    const struct tandem_gemm *gemm = product->gemm;
    const float *a = product->a + batch * gemm->a.batch_stride;
    const float *b = product->b + batch * gemm->b.batch_stride;
    float *c = product->c + batch * gemm->c.batch_stride;
    bool row = gemm->m == 1;
    bool lines = row ? (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0
                     : (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) == 0;
    int64_t skip = from * (!lines ? 1 : row ? gemm->b.ld : gemm->a.ld);
    c += from * (row ? 1 : gemm->c.ld);
    vector_multiply(gemm, row ? a : a + skip, row ? b + skip : b, c, n);
    for (int64_t i = 0; !row && i < n; i++)
        product_row_finish(product, c + i * gemm->c.ld, from + i, 0, 1);
    if (row)
        product_row_finish(product, c, 0, from, n);
}

/* Tasks are stretches of VECTOR_RESULTS results of all batches. */
static void stretches_run(const void *context, int64_t first, int64_t end)
{
    const struct product *product = context;
    const struct tandem_gemm *gemm = product->gemm;
    int64_t results = gemm->m == 1 ? gemm->n : gemm->m;
    int64_t stretches = (results + VECTOR_RESULTS - 1) / VECTOR_RESULTS;
    for (int64_t task = first; task < end; task++) {
        int64_t from = task % stretches * VECTOR_RESULTS;
        int64_t n = results - from < VECTOR_RESULTS ? results - from
                                                    : VECTOR_RESULTS;
        stretch_multiply(product, task / stretches, from, n);
    }
}

static void vectors_run(const struct product *product, struct pool *pool)
{
    const struct tandem_gemm *gemm = product->gemm;
    int64_t results = gemm->m == 1 ? gemm->n : gemm->m;
    int64_t stretches = (results + VECTOR_RESULTS - 1) / VECTOR_RESULTS;
    bool limited = blas_limit(1);
    pool_run(pool, POOL_PRODUCT_VECTOR, stretches_run, product,
             gemm->batch * stretches,
             gemm->k * (results + stretches - 1) / stretches);
    if (limited)
        blas_release();
}

void product_row_finish(const struct product *product, float *c, int64_t row,
                        int64_t column, int64_t n)
{
    const struct tandem_gemm *gemm = product->gemm;
    struct row call = {
        .n = n, .in = {c}, .out = {c}, .params = &product->params};
    if (gemm->bias_kind != TANDEM_BIAS_NONE) {
        bool by_row = gemm->bias_kind == TANDEM_BIAS_PER_ROW;
        call.in[1] = product->bias + (by_row ? row : column);
        call.constants = by_row ? 2u : 0u;
        product->kernels->rows[TANDEM_OP_ADD](&call);
        call.constants = 0;
    }
    if (gemm->activation != TANDEM_OP_INVALID)
        product->kernels->rows[gemm->activation](&call);
}

static void product_prepare(struct product *out, const struct tandem_gemm *gemm,
                            const struct kernels *kernels)
{
    memset(out, 0, sizeof *out);
    out->gemm = gemm;
    out->kernels = kernels;
    if (gemm->k > 0) {
        out->a = matrix_data(&gemm->a);
        out->b = matrix_data(&gemm->b);
    }
    out->c = (float *)(void *)(gemm->c.buffer->base + gemm->c.byte_offset);
    if (gemm->bias_kind != TANDEM_BIAS_NONE)
        out->bias = (const float *)(const void *)(gemm->bias->base +
                                                  gemm->bias_byte_offset);
    out->params.f[0] = (float)gemm->activation_alpha;
    out->params.flag =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_alpha == 1.0;
}

/* ---- the call ----------------------------------------------------------- */

enum tandem_status gemm_run(struct tandem_stream *stream,
                            const struct tandem_gemm *gemm)
{
    struct product product;
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = check_gemm(gemm, buffer_span, stream->owned.device);
    if (status == TANDEM_OK)
        status = gemm_supports(gemm);
    if (status == TANDEM_OK)
        status = blas_ready();
    if (status != TANDEM_OK || gemm->m == 0 || gemm->n == 0)
        return status;
    struct tandem_device *device = stream->owned.device;
    struct tandem_gemm whole;
    struct float_env host = float_env_enter();
    gemm_complete(&whole, gemm);
    product_prepare(&product, &whole, device->kernels);
    bool wide = whole.dtype == TANDEM_F32 && whole.c_dtype == TANDEM_F32;
    if (wide && by_vector(&whole) && whole.k > 0 && (float)whole.alpha != 0)
        vectors_run(&product, device->pool);
    else
        status = tiles_run(device, &product);
    float_env_leave(host);
    return status;
}
