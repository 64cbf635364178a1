/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix-vector products in f32 with the CBLAS.  Callable from any thread. */
#include "config.h"

#include <cblas.h>
#include <string.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/gemm.h"

/* Maximum number of result elements that one task computes. */
#define TASK_RESULTS 256
/* Maximum number of results for which a GEMV is computed as dot products. */
#define MAX_DOT_LINES 2
/* Results of max_terms. */
#define MAX_ROW_TERMS 8192
#define MAX_COLUMN_TERMS 2048
#define MAX_ODD_COLUMN_TERMS 512

/* A matrix-vector product.  Computes y[j] = alpha * dot(x, row j) + beta * y[j]
 * for each of the `n` rows of the matrix, or for each column if is_strided is
 * true.  `n` is at most TASK_RESULTS. */
struct gemv {
    const float *matrix, *x;
    float *y;
    int64_t n, k, ld, x_step, y_step;
    bool is_strided; /* true if `x` is multiplied by columns, not rows */
    float alpha, beta;
};

/* Returns the matrix-vector product of batch index `batch`, reduced to the `n`
 * results that start with index `from`. */
static struct gemv gemv_of(const struct gemm_call *call, int64_t batch,
                           int64_t from, int64_t n)
{
    const struct tandem_gemm *gemm = call->gemm;
    bool ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    bool row = gemm->m == 1; /* true if the result is one row, not a column */
    const struct tandem_matrix *matrix = row ? &gemm->b : &gemm->a;
    const struct tandem_matrix *vector = row ? &gemm->a : &gemm->b;
    struct gemv v = {.n = n,
                     .k = gemm->k,
                     .ld = matrix->ld,
                     .x_step = (row ? ta : !tb) ? vector->ld : 1,
                     .y_step = row ? 1 : gemm->c.ld,
                     .is_strided = row ? !tb : ta,
                     .alpha = (float)gemm->alpha,
                     .beta = (float)gemm->beta};
    v.matrix = (row ? call->b : call->a) + batch * matrix->batch_stride +
               from * (v.is_strided ? 1 : v.ld);
    v.x = (row ? call->a : call->b) + batch * vector->batch_stride;
    v.y = call->c + batch * gemm->c.batch_stride + from * v.y_step;
    return v;
}

/* Computes y[j] = beta * y[j] + dot(x, row j) for each row of the matrix, or
 * for each column if is_strided is true.  Uses only the `terms` elements of
 * each vector from index `from` on. */
static void sgemv_add(const struct gemv *v, int64_t from, int64_t terms,
                      float beta, float *y, int64_t y_step)
{
    cblas_sgemv(CblasRowMajor, v->is_strided ? CblasTrans : CblasNoTrans,
                (int)(v->is_strided ? terms : v->n),
                (int)(v->is_strided ? v->n : terms), 1,
                v->matrix + (v->is_strided ? from * v->ld : from), (int)v->ld,
                v->x + from * v->x_step, (int)v->x_step, beta, y, (int)y_step);
}

/* Returns true if each result is computed as a separate dot product.  This
 * requires few results and contiguous vectors. */
static bool uses_dots(const struct gemv *v)
{
    return v->n <= MAX_DOT_LINES && v->x_step == 1 &&
           (!v->is_strided || v->ld == 1);
}

static void dots_compute(const struct gemv *v, int64_t from, int64_t terms,
                         float *y)
{
    for (int64_t j = 0; j < v->n; j++)
        y[j] = cblas_sdot((int)terms, v->matrix + j * v->ld + from, 1,
                          v->x + from, 1);
}

/* Returns the maximum number of terms that one CBLAS call sums in f32.  A long
 * sum of terms with the same sign loses accuracy.  In dot products with rows,
 * OpenBLAS keeps at least 32 partial sums per row, so each sum has at most
 * MAX_ROW_TERMS / 32 terms.  With columns, OpenBLAS adds four terms at a time
 * to a sum, but in the last n % 4 columns only one at a time. */
static int64_t max_terms(const struct gemv *v)
{
    if (!v->is_strided || uses_dots(v))
        return MAX_ROW_TERMS;
    return v->n % 4 == 0 ? MAX_COLUMN_TERMS : MAX_ODD_COLUMN_TERMS;
}

static void gemv_lines_run(const struct gemv *v)
{
    int64_t max = max_terms(v);
    float part[TASK_RESULTS];
    double total[TASK_RESULTS];
    blas_enter();
    /* Some CBLAS libraries multiply `x` by alpha first, which can overflow or
     * underflow even if the result does not.  Therefore, an alpha other than 1
     * is applied to the sums instead. */
    if (v->k <= max && v->alpha == 1 && !uses_dots(v)) {
        /* If beta is 0, clear `y`: some CBLAS libraries still use NaN in it. */
        for (int64_t j = 0; j < v->n && v->beta == 0; j++)
            v->y[j * v->y_step] = 0;
        sgemv_add(v, 0, v->k, v->beta, v->y, v->y_step);
        blas_leave();
        return;
    }
    memset(total, 0, (size_t)v->n * sizeof total[0]);
    for (int64_t from = 0; from < v->k; from += max) {
        int64_t terms = min64(v->k - from, max);
        memset(part, 0, (size_t)v->n * sizeof part[0]);
        if (uses_dots(v))
            dots_compute(v, from, terms, part);
        else
            sgemv_add(v, from, terms, 0, part, 1);
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

static int64_t result_count(const struct tandem_gemm *gemm)
{
    return gemm->m == 1 ? gemm->n : gemm->m;
}

/* Thread-pool function.  Each task computes up to TASK_RESULTS results. */
static void tasks_run(const void *context, int64_t first, int64_t end)
{
    const struct gemm_call *call = context;
    int64_t results = result_count(call->gemm);
    int64_t tasks = ceil_div(results, TASK_RESULTS); /* tasks per GEMV */
    for (int64_t task = first; task < end; task++) {
        int64_t from = task % tasks * TASK_RESULTS;
        int64_t n = min64(results - from, TASK_RESULTS);
        struct gemv v = gemv_of(call, task / tasks, from, n);
        gemv_lines_run(&v);
        if (call->gemm->m == 1)
            gemm_epilogue_apply(call, v.y, 0, from, n);
        for (int64_t i = 0; call->gemm->m != 1 && i < n; i++)
            gemm_epilogue_apply(call, v.y + i * v.y_step, from + i, 0, 1);
    }
}

bool gemv_supports(const struct gemm_call *call)
{
    const struct tandem_gemm *gemm = call->gemm;
    return gemm->dtype == TANDEM_F32 && gemm->c_dtype == TANDEM_F32 &&
           (gemm->m == 1 || gemm->n == 1) && gemm->k > 0 &&
           (float)gemm->alpha != 0;
}

void gemv_run(const struct gemm_call *call)
{
    const struct tandem_gemm *gemm = call->gemm;
    int64_t results = result_count(gemm);
    int64_t tasks = ceil_div(results, TASK_RESULTS);
    bool limited = blas_limit();
    pool_run(call->pool, POOL_GEMV, tasks_run, call, gemm->batch * tasks,
             gemm->k * ceil_div(results, tasks));
    if (limited)
        blas_release();
}
