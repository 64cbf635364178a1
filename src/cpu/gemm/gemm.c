/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products through the CBLAS that the plugin was built with: entry
 * points, matrix-vector products, and bias and activation.  Any thread.
 */
#include "config.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "common/fp_environment.h"
#include "common/last_error.h"
#include "common/operator_table.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/gemm.h"

/* Results of a matrix-vector product that one task computes. */
#define VECTOR_RESULTS 256
/* FEW_LINES is the maximum number of results computed as dot products; the
 * others are the results of vector_terms. */
#define FEW_LINES 2
#define ROW_TERMS 8192
#define COLUMN_TERMS 2048
#define ODD_COLUMN_TERMS 512

static const float *matrix_data(const struct tandem_matrix *matrix)
{
    return (const float *)(const void *)(matrix->buffer->base +
                                         matrix->byte_offset);
}

/* Returns TANDEM_UNSUPPORTED if a dimension exceeds INT_MAX.  gemm is
 * normalized. */
static enum tandem_status check_sizes(const struct tandem_gemm *gemm)
{
    int64_t largest = gemm->m > gemm->n ? gemm->m : gemm->n;
    const int64_t others[] = {gemm->k, gemm->a.ld, gemm->b.ld, gemm->c.ld};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        largest = others[i] > largest ? others[i] : largest;
    if (largest <= INT_MAX)
        return TANDEM_OK;
    return last_error_set(TANDEM_UNSUPPORTED,
                       "gemm: a dimension of %lld is more than the BLAS's "
                       "integers hold (%d)",
                       (long long)largest, INT_MAX);
}

enum tandem_status gemm_supports(const struct tandem_gemm *gemm)
{
    struct tandem_gemm whole;
    gemm_args_normalize(&whole, gemm);
    return check_sizes(&whole);
}

static bool by_vector(const struct tandem_gemm *gemm)
{
    return gemm->m == 1 || gemm->n == 1;
}

/* Matrix-vector product: y[j] = alpha * dot(x, line j of the matrix) +
 * beta * y[j] for n <= VECTOR_RESULTS lines of k elements. */
struct vector_product {
    const float *matrix, *x;
    float *y;
    int64_t n, k, ld, x_step, y_step;
    bool across; /* true if lines are columns of the matrix in memory */
    float alpha, beta;
};

static struct vector_product vector_product_of(const struct tandem_gemm *gemm,
                                               const float *a, const float *b,
                                               float *c, int64_t n)
{
    bool ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    bool row = gemm->m == 1; /* lines are b's columns if true, else a's rows */
    return (struct vector_product){
        .matrix = row ? b : a,
        .x = row ? a : b,
        .y = c,
        .n = n,
        .k = gemm->k,
        .ld = row ? gemm->b.ld : gemm->a.ld,
        .x_step = row ? (ta ? gemm->a.ld : 1) : (tb ? 1 : gemm->b.ld),
        .y_step = row ? 1 : gemm->c.ld,
        .across = row ? !tb : ta,
        .alpha = (float)gemm->alpha,
        .beta = (float)gemm->beta};
}

/* y = beta * y + the sums over `terms` terms of k, starting at term `from`. */
static void vector_multiply(const struct vector_product *v, int64_t from,
                            int64_t terms, float beta, float *y,
                            int64_t y_step)
{
    cblas_sgemv(CblasRowMajor, v->across ? CblasTrans : CblasNoTrans,
                (int)(v->across ? terms : v->n),
                (int)(v->across ? v->n : terms), 1,
                v->matrix + (v->across ? from * v->ld : from), (int)v->ld,
                v->x + from * v->x_step, (int)v->x_step, beta, y, (int)y_step);
}

/* Returns true if there are few enough lines for dot products and if x and each
 * line are contiguous. */
static bool by_dots(const struct vector_product *v)
{
    return v->n <= FEW_LINES && v->x_step == 1 && (!v->across || v->ld == 1);
}

static void dots_make(const struct vector_product *v, int64_t from,
                      int64_t terms, float *y)
{
    for (int64_t j = 0; j < v->n; j++)
        y[j] = cblas_sdot((int)terms, v->matrix + j * v->ld + from, 1,
                          v->x + from, 1);
}

/*
 * Returns how many terms one call of the BLAS may sum in f32.  A long sum of
 * terms of one sign loses accuracy.  Along rows OpenBLAS keeps at least 32
 * partial sums, so ROW_TERMS gives each at most 256 terms.  Across rows it adds
 * four terms at a time, but one at a time in the last n % 4 columns.
 */
static int64_t vector_terms(const struct vector_product *v)
{
    if (!v->across || by_dots(v))
        return ROW_TERMS;
    return v->n % 4 == 0 ? COLUMN_TERMS : ODD_COLUMN_TERMS;
}

static void vector_product_run(const struct vector_product *v)
{
    int64_t most = vector_terms(v);
    float part[VECTOR_RESULTS];
    double total[VECTOR_RESULTS];
    blas_enter();
    /* A BLAS may multiply x by alpha first, which can overflow or underflow
     * even if the product does not.  Pass alpha only if it is 1. */
    if (v->k <= most && v->alpha == 1 && !by_dots(v)) {
        /* If beta is 0, the BLAS may still read y, so clear any NaN first. */
        for (int64_t j = 0; j < v->n && v->beta == 0; j++)
            v->y[j * v->y_step] = 0;
        vector_multiply(v, 0, v->k, v->beta, v->y, v->y_step);
        blas_leave();
        return;
    }
    memset(total, 0, (size_t)v->n * sizeof total[0]);
    for (int64_t from = 0; from < v->k; from += most) {
        int64_t terms = v->k - from < most ? v->k - from : most;
        memset(part, 0, (size_t)v->n * sizeof part[0]);
        if (by_dots(v))
            dots_make(v, from, terms, part);
        else
            vector_multiply(v, from, terms, 0, part, 1);
        for (int64_t j = 0; j < v->n; j++)
            total[j] += part[j];
    }
    blas_leave();
    for (int64_t j = 0; j < v->n; j++) {
        float *y = v->y + j * v->y_step;
        double old = v->beta == 0 ? 0 : (double)v->beta * *y;
        *y = (float)(v->alpha * total[j] + old);
    }
}

/* Computes n results of one batch, starting at result `from`. */
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
    struct vector_product v = vector_product_of(
        gemm, row ? a : a + skip, row ? b + skip : b, c, n);
    vector_product_run(&v);
    for (int64_t i = 0; !row && i < n; i++)
        product_row_finish(product, c + i * gemm->c.ld, from + i, 0, 1);
    if (row)
        product_row_finish(product, c, 0, from, n);
}

/* pool_fn: each task computes up to VECTOR_RESULTS results of one batch. */
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
    out->params.f[0] = attribute_f32(gemm->activation_alpha);
    out->params.flag =
        gemm->activation == TANDEM_OP_GELU && gemm->activation_alpha == 1.0;
}

/* ---- entry point -------------------------------------------------------- */

/* Computes a normalized product.  The caller has set the plugin's
 * floating-point environment. */
static enum tandem_status product_run(struct tandem_device *device,
                                      const struct tandem_gemm *gemm)
{
    struct product product;
    enum tandem_status status = check_sizes(gemm);
    if (status == TANDEM_OK)
        status = blas_ready();
    if (status != TANDEM_OK || gemm->m == 0 || gemm->n == 0)
        return status;
    product_prepare(&product, gemm, device->kernels);
    bool wide = gemm->dtype == TANDEM_F32 && gemm->c_dtype == TANDEM_F32;
    if (!wide || !by_vector(gemm) || gemm->k == 0 || (float)gemm->alpha == 0)
        return parallel_gemm_run(device, &product);
    vectors_run(&product, device->pool);
    return TANDEM_OK;
}

enum tandem_status gemm_run(struct tandem_stream *stream,
                            const struct tandem_gemm *gemm)
{
    struct tandem_gemm whole;
    enum tandem_status status = stream_check(stream);
    if (status == TANDEM_OK)
        status = check_gemm(gemm, buffer_span, stream->owned.device);
    if (status != TANDEM_OK)
        return status;
    struct float_env host = float_env_enter();
    gemm_args_normalize(&whole, gemm);
    status = product_run(stream->owned.device, &whole);
    float_env_leave(host);
    return status;
}
