/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a GEMM on several threads.  Each task computes one block of the
 * result `c` with the single-threaded CBLAS, so that batches of small GEMMs and
 * long, narrow GEMMs also keep all cores busy.  If `c` is small and k is large,
 * k is split into ranges, whose results are added at the end (split-k).  16-bit
 * operands are converted to f32 in the workspace.  Callable from any thread. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/blas_multiply.h"
#include "cpu/gemm/gemm.h"
#include "cpu/threads/slots.h"

/* Block height and width are multiples of these values, to suit the CBLAS. */
#define BLOCK_ROW_MULTIPLE 8
#define BLOCK_COLUMN_MULTIPLE 32
/* Minimum multiply-adds per thread.  Smaller GEMMs use fewer threads. */
#define MIN_THREAD_WORK 65536
/* Estimated cost of packing one operand element, in multiply-adds. */
#define PACK_COST 16.0
/* Limits for 16-bit GEMMs: block height and width, k indices per CBLAS call. */
#define MAX_16BIT_ROWS 512
#define MAX_16BIT_COLUMNS 1024
#define MAX_16BIT_DEPTH 512
/* The dimension k is split if the result `c` has at most MAX_SPLIT_ELEMENTS
 * elements and k is at least MIN_SPLIT_K.  There are at most MAX_SPLITS ranges
 * of k.  Each range except the last has at least MIN_SPLIT_DEPTH indices. */
#define MAX_SPLIT_ELEMENTS 16384
#define MIN_SPLIT_K 4096
#define MIN_SPLIT_DEPTH 1024
#define MAX_SPLITS 64

/* The block of `c` that one task computes from one range of k. */
struct block {
    const struct gemm_job *job;
    int64_t batch, row, column, from; /* `from` is the first index along k */
    int64_t rows, columns, depth;     /* `depth` is the number of k indices */
    float *a, *b;                     /* workspace for converted operands */
    float *c;
    int64_t ld;
    float alpha, beta;
    bool is_unsplit; /* true if the block covers all of k */
};

/* `base` is the address of the first element. */
static void *matrix_at(const void *base, const struct tandem_matrix *matrix,
                       uint32_t dtype, int64_t batch, int64_t row,
                       int64_t column)
{
    int64_t at = batch * matrix->batch_stride + row * matrix->ld + column;
    return (unsigned char *)(uintptr_t)base +
           at * (int64_t)TANDEM_DTYPE_BYTES(dtype);
}

/* Returns the address in `c` of the first element of row `row` of the block. */
static void *c_at(const struct block *block, int64_t row)
{
    const struct tandem_gemm *gemm = block->job->gemm;
    return matrix_at(block->job->call->c, &gemm->c, gemm->c_dtype, block->batch,
                     block->row + row, block->column);
}

/* ---- one block ---------------------------------------------------------- */

/* Prepares a block of `c` before the CBLAS adds products to it.  If beta is not
 * 0, converts a 16-bit `c` to f32.  If no_product is true, no CBLAS call
 * follows, so this function multiplies `c` by beta. */
static void block_begin(const struct block *block, bool no_product)
{
    const struct gemm_job *job = block->job;
    bool converts =
        block->is_unsplit && job->f32_to_c != NULL && block->beta != 0;
    for (int64_t i = 0; (converts || no_product) && i < block->rows; i++) {
        float *c = block->c + i * block->ld;
        if (converts)
            job->c_to_f32(c, c_at(block, i), block->columns);
        for (int64_t j = 0; no_product && j < block->columns; j++)
            c[j] = block->beta == 0 ? 0.0f : c[j] * block->beta;
    }
}

/* Applies bias and activation to a block, and converts it to the type of
 * `c`. */
static void block_finish(const struct block *block)
{
    const struct gemm_job *job = block->job;
    const struct tandem_gemm *gemm = job->gemm;
    if (gemm->bias_kind == TANDEM_BIAS_NONE &&
        gemm->activation == TANDEM_OP_INVALID && job->f32_to_c == NULL)
        return;
    for (int64_t i = 0; i < block->rows; i++) {
        float *c = block->c + i * block->ld;
        gemm_epilogue_apply(job->call, c, block->row + i, block->column,
                            block->columns);
        if (job->f32_to_c != NULL)
            job->f32_to_c(c_at(block, i), c, block->columns);
    }
}

/* Returns a part of an operand as f32: `rows` x `columns` elements from (row,
 * column) of the matrix, or of the transposed matrix if `transposed` is true.
 * A 16-bit operand is converted into `space`; an f32 operand is not copied.
 * *out_ld receives the row stride of the returned elements. */
static const float *operand_as_f32(const struct block *block, float *space,
                                   const struct tandem_matrix *matrix,
                                   bool transposed, int64_t row, int64_t column,
                                   int64_t rows, int64_t columns,
                                   int64_t *out_ld)
{
    const struct gemm_job *job = block->job;
    int64_t lines = transposed ? columns : rows;
    int64_t width = transposed ? rows : columns;
    const float *base = matrix == &job->gemm->a ? job->call->a : job->call->b;
    const void *from =
        matrix_at(base, matrix, job->gemm->dtype, block->batch,
                  transposed ? column : row, transposed ? row : column);
    *out_ld = job->ab_to_f32 == NULL ? matrix->ld : width;
    if (job->ab_to_f32 == NULL)
        return from;
    const uint16_t *x = from;
    for (int64_t i = 0; i < lines; i++)
        job->ab_to_f32(space + i * width, x + i * matrix->ld, width);
    return space;
}

static void block_multiply(const struct block *block)
{
    const struct gemm_job *job = block->job;
    const struct tandem_gemm *gemm = job->gemm;
    int64_t terms = job->ab_to_f32 != NULL ? MAX_16BIT_DEPTH : block->depth;
    struct blas_product product = {.ta = job->ta,
                                   .tb = job->tb,
                                   .rows = block->rows,
                                   .columns = block->columns,
                                   .alpha = block->alpha,
                                   .c = block->c,
                                   .c_ld = block->ld};
    for (int64_t done = 0; done < block->depth; done += terms) {
        int64_t from = block->from + done;
        product.depth = min64(terms, block->depth - done);
        product.a =
            operand_as_f32(block, block->a, &gemm->a, job->ta, block->row, from,
                           block->rows, product.depth, &product.a_ld);
        product.b = operand_as_f32(block, block->b, &gemm->b, job->tb, from,
                                   block->column, product.depth, block->columns,
                                   &product.b_ld);
        product.beta = done == 0 ? block->beta : 1.0f;
        blas_multiply(&product);
    }
}

/* Returns the block of task `index`, which uses workspace slot `slot`. */
static struct block block_of(const struct gemm_job *job, int64_t index,
                             int64_t slot)
{
    const struct tandem_gemm *gemm = job->gemm;
    int64_t split = index % job->splits, tile = index / job->splits;
    int64_t row_tile = tile / job->column_blocks;
    struct block out = {.job = job,
                        .batch = row_tile / job->row_blocks,
                        .row = row_tile % job->row_blocks * job->rows,
                        .column = tile % job->column_blocks * job->columns,
                        .from = split * job->depth,
                        .alpha = (float)gemm->alpha,
                        .beta = (float)gemm->beta,
                        .is_unsplit = job->splits == 1};
    out.rows = min64(job->rows, gemm->m - out.row);
    out.columns = min64(job->columns, gemm->n - out.column);
    out.depth = min64(job->depth, gemm->k - out.from);
    out.ld = out.columns;
    if (job->workspace != NULL) {
        out.a = job->workspace + slot * job->slot_floats;
        out.b = out.a + job->a_floats;
        out.c = out.b + job->b_floats;
    }
    if (!out.is_unsplit) {
        out.c = job->sums +
                (out.batch * job->splits + split) * gemm->m * gemm->n +
                out.row * gemm->n + out.column;
        out.ld = gemm->n;
        out.alpha = 1;
        out.beta = 0;
    } else if (job->c_floats == 0) {
        out.c = c_at(&out, 0);
        out.ld = gemm->c.ld;
    }
    return out;
}

/* Thread-pool function.  Each task computes a block of `c` for a range of k. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct gemm_job *job = context;
    bool multiplies = job->gemm->k > 0 && (float)job->gemm->alpha != 0;
    int64_t slot = slot_take(job->slot_taken, job->threads);
    for (int64_t index = first; index < end; index++) {
        struct block block = block_of(job, index, slot);
        block_begin(&block, !multiplies);
        if (multiplies)
            block_multiply(&block);
        if (block.is_unsplit)
            block_finish(&block);
    }
    slot_return(job->slot_taken, slot);
}

/* Thread-pool function.  Each task computes one row of one result matrix of the
 * batch: c = alpha * (sum over the ranges of k) + beta * c. */
static void splits_combine(const void *context, int64_t first, int64_t end)
{
    const struct gemm_job *job = context;
    const struct tandem_gemm *gemm = job->gemm;
    float alpha = (float)gemm->alpha, beta = (float)gemm->beta;
    int64_t elements = gemm->m * gemm->n;
    for (int64_t task = first; task < end; task++) {
        struct block block = {.job = job,
                              .batch = task / gemm->m,
                              .row = task % gemm->m,
                              .rows = 1,
                              .columns = gemm->n,
                              .ld = gemm->n,
                              .beta = beta,
                              .is_unsplit = true};
        float *sum = job->sums + block.batch * job->splits * elements +
                     block.row * gemm->n;
        for (int64_t split = 1; split < job->splits; split++)
            for (int64_t i = 0; i < gemm->n; i++)
                sum[i] += sum[split * elements + i];
        block.c = sum + elements; /* reuses the memory of the sums of range 1 */
        if (job->f32_to_c == NULL)
            block.c = c_at(&block, 0);
        block_begin(&block, false);
        for (int64_t i = 0; i < gemm->n; i++)
            block.c[i] =
                alpha * sum[i] + (beta != 0 ? beta * block.c[i] : 0.0f);
        block_finish(&block);
    }
}

/* ---- partition ---------------------------------------------------------- */

/* Returns the estimated time until the last thread finishes if blocks of `c`
 * have rows x columns elements.  The unit is multiply-adds per index of k. */
static double partition_cost(const struct gemm_job *job, int64_t threads,
                             int64_t rows, int64_t columns)
{
    const struct tandem_gemm *gemm = job->gemm;
    int64_t count = ceil_div(gemm->m, rows) * ceil_div(gemm->n, columns) *
                    gemm->batch * job->splits;
    double one =
        (double)rows * (double)columns + PACK_COST * (double)(rows + columns);
    return one * (double)ceil_div(count, threads);
}

/* Returns the block length that divides `extent` elements into about `count`
 * blocks.  Rounds it up to a multiple of `multiple`, and limits it to `max`. */
static int64_t block_extent(int64_t extent, int64_t count, int64_t multiple,
                            int64_t max)
{
    return min64(ceil_div(ceil_div(extent, count), multiple) * multiple, max);
}

/* Chooses the block size with the lowest cost according to partition_cost. */
static void block_size_choose(struct gemm_job *job)
{
    const struct tandem_gemm *gemm = job->gemm;
    int64_t max_rows = job->needs_workspace ? MAX_16BIT_ROWS : gemm->m;
    int64_t max_columns = job->needs_workspace ? MAX_16BIT_COLUMNS : gemm->n;
    double work = (double)gemm->batch * (double)gemm->m * (double)gemm->n *
                  (double)gemm->k / MIN_THREAD_WORK;
    int64_t threads =
        work < (double)job->threads ? (int64_t)work : job->threads;
    double best = 0;
    threads = max64(threads, 1);
    for (int64_t down = 1; down <= 4 * threads; down += 1 + down / 2) {
        int64_t rows =
            block_extent(gemm->m, down, BLOCK_ROW_MULTIPLE, max_rows);
        for (int64_t across = 1; across <= 4 * threads;
             across += 1 + across / 2) {
            int64_t columns = block_extent(gemm->n, across,
                                           BLOCK_COLUMN_MULTIPLE, max_columns);
            double cost = partition_cost(job, threads, rows, columns);
            if (best != 0 && cost >= best)
                continue;
            best = cost;
            job->rows = rows;
            job->columns = columns;
        }
    }
    job->rows = min64(job->rows, gemm->m);
    job->columns = min64(job->columns, gemm->n);
    job->row_blocks = ceil_div(gemm->m, job->rows);
    job->column_blocks = ceil_div(gemm->n, job->columns);
}

/* Splits k into ranges if `c` is small, k is large and `allowed` is true. */
static void split_k_choose(struct gemm_job *job, bool allowed)
{
    const struct tandem_gemm *gemm = job->gemm;
    job->splits = 1;
    job->depth = gemm->k;
    if (!allowed || gemm->k < MIN_SPLIT_K || (float)gemm->alpha == 0 ||
        gemm->m * gemm->n > MAX_SPLIT_ELEMENTS)
        return;
    job->depth = max64(ceil_div(gemm->k, MAX_SPLITS), MIN_SPLIT_DEPTH);
    job->splits = ceil_div(gemm->k, job->depth);
}

/* Computes the sizes of the parts of the workspace.  The workspace holds one
 * slot per thread, the partial sums of all ranges of k, and the bias in f32. */
static void workspace_size(struct gemm_job *job)
{
    const struct tandem_gemm *gemm = job->gemm;
    int64_t depth = min64(MAX_16BIT_DEPTH, job->depth);
    if (job->ab_to_f32 != NULL) {
        job->a_floats = round_to_lines(job->rows * depth);
        job->b_floats = round_to_lines(job->columns * depth);
    }
    if (job->splits > 1)
        job->sum_floats =
            round_to_lines(gemm->batch * job->splits * gemm->m * gemm->n);
    else if (job->f32_to_c != NULL)
        job->c_floats = round_to_lines(job->rows * job->columns);
    if (job->f32_to_c != NULL && gemm->bias_kind != TANDEM_BIAS_NONE)
        job->bias_floats =
            gemm->bias_kind == TANDEM_BIAS_PER_COLUMN ? gemm->n : gemm->m;
    job->slot_floats = job->a_floats + job->b_floats + job->c_floats;
    job->workspace_bytes =
        sizeof(float) *
        (uint64_t)(job->threads * job->slot_floats + job->sum_floats +
                   round_to_lines(job->bias_floats));
}

void parallel_gemm_prepare(struct gemm_job *job, struct gemm_call *call)
{
    const struct tandem_gemm *gemm = call->gemm;
    const struct kernels *kernels = call->kernels;
    bool bf16_c = gemm->c_dtype == TANDEM_BF16;
    memset(job, 0, sizeof *job);
    job->call = call;
    job->gemm = gemm;
    job->ab_to_f32 = gemm->dtype == TANDEM_BF16  ? kernels->bf16_widen
                     : gemm->dtype == TANDEM_F16 ? kernels->f16_widen
                                                 : NULL;
    job->c_to_f32 = bf16_c ? kernels->bf16_widen : kernels->f16_widen;
    job->f32_to_c = bf16_c                        ? kernels->bf16_narrow
                    : gemm->c_dtype == TANDEM_F16 ? kernels->f16_narrow
                                                  : NULL;
    job->needs_workspace = job->ab_to_f32 != NULL || job->f32_to_c != NULL;
    job->ta = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    job->tb = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    job->threads = min64(pool_threads(call->pool), MAX_BLAS_THREADS);
    split_k_choose(job, true);
    block_size_choose(job);
    workspace_size(job);
}

void parallel_gemm_run(struct gemm_job *job, void *workspace)
{
    const struct tandem_gemm *gemm = job->gemm;
    struct pool *pool = job->call->pool;
    atomic_uchar slot_taken[MAX_BLAS_THREADS] = {0};
    job->slot_taken = slot_taken;
    if (workspace == NULL && job->splits > 1) {
        split_k_choose(job, false);
        block_size_choose(job);
    }
    if (workspace != NULL) {
        job->workspace = workspace;
        job->sums = job->workspace + job->threads * job->slot_floats;
    }
    if (job->bias_floats > 0) {
        float *bias = job->sums + job->sum_floats;
        job->c_to_f32(bias, (const void *)job->call->bias, job->bias_floats);
        job->call->bias = bias;
    }
    bool limited = blas_limit();
    pool_run(pool, POOL_GEMM, blocks_run, job,
             gemm->batch * job->row_blocks * job->column_blocks * job->splits,
             job->rows * job->columns * (job->depth + 1));
    if (job->splits > 1)
        pool_run(pool, POOL_GEMM_SPLITS, splits_combine, job,
                 gemm->batch * gemm->m, gemm->n * job->splits);
    if (limited)
        blas_release();
}
