/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with online softmax.  A task computes a block of queries of one
 * head: for each block of keys, it multiplies the queries by the keys, and adds
 * the weighted values to sums.  If a block of keys raises the maximum of a
 * query's scores, the query's earlier sums are scaled down.  Runs on the
 * caller's thread and on the thread pool. */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "cpu/attention/attention.h"
#include "cpu/gemm/blas_guard.h"
#include "cpu/gemm/blas_multiply.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/threads/slots.h"

/* Maximum numbers of queries and keys of a block. */
#define QUERIES 64
#define KEYS 256

/* A matrix with contiguous rows. */
struct matrix {
    const float *at;
    int64_t ld;
};

/* A block of queries, and the sums of its results. */
struct query_block {
    int64_t image, head, first, count;
    float *scores, *sums, *space_k, *space_v;
    struct matrix q;
    float max[QUERIES];
    double total[QUERIES]; /* sum of e^(score - max) */
};

/* Returns `rows` rows of a tensor, from row `first` on.  Copies them to `space`
 * if the CBLAS cannot read them. */
static struct matrix rows_get(const float *base,
                              const struct attention_strides *strides,
                              int64_t first, int64_t rows, int64_t columns,
                              float *space)
{
    const float *at = base + first * strides->row;
    if (strides->column == 1 && strides->row >= columns &&
        strides->row <= INT_MAX)
        return (struct matrix){at, strides->row};
    for (int64_t i = 0; i < rows; i++)
        elements_copy(space + i * columns, 1, at + i * strides->row,
                      strides->column, columns, sizeof *space);
    return (struct matrix){space, columns};
}

static const float *head_of(const float *base,
                            const struct attention_strides *strides,
                            int64_t image, int64_t head)
{
    return base + image * strides->batch + head * strides->head;
}

/* ---- scores ------------------------------------------------------------- */

/* Applies the mask to the scores of a query for `n` keys from `first` on. */
static void mask_apply(const struct attention_job *job,
                       const struct query_block *block, int64_t query,
                       int64_t first, int64_t n, float *scores)
{
    const struct attention *a = &job->attention;
    int64_t at = block->image * a->mask.batch + block->head * a->mask.head +
                 query * a->mask.row + first * a->mask.column;
    if (a->mask_tensor == NULL)
        return;
    if (a->mask_tensor->dtype == TANDEM_BOOL) {
        const uint8_t *mask = (const uint8_t *)job->mask + at;
        for (int64_t i = 0; i < n; i++)
            scores[i] = mask[i * a->mask.column] != 0 ? scores[i] : -INFINITY;
        return;
    }
    const float *mask = (const float *)job->mask + at;
    for (int64_t i = 0; i < n; i++) {
        float added = mask[i * a->mask.column];
        scores[i] = added == -INFINITY ? -INFINITY : scores[i] + added;
    }
}

static void scores_cap(const struct attention_job *job, float *scores,
                       int64_t n)
{
    float cap = job->attention.softcap;
    const struct row row = {.n = n, .in = {scores}, .out = {scores}};
    job->kernels->scale_row(scores, scores, n, 1 / cap);
    job->kernels->rows[TANDEM_OP_TANH](&row);
    job->kernels->scale_row(scores, scores, n, cap);
}

/* Turns the scores of query i of the block into weights, and scales the sums
 * of earlier keys. */
static void weights_make(const struct attention_job *job,
                         struct query_block *block, int64_t i, int64_t first,
                         int64_t n)
{
    const struct attention *a = &job->attention;
    int64_t query = block->first + i;
    int64_t visible = attention_key_end(a, query) - first;
    float *scores = block->scores + i * n;
    float *sums = block->sums + i * a->value_width;
    visible = min64(max64(visible, 0), n);
    if (a->softcap > 0)
        scores_cap(job, scores, visible);
    mask_apply(job, block, query, first, visible, scores);
    for (int64_t j = visible; j < n; j++)
        scores[j] = -INFINITY;
    float pair[] = {block->max[i], job->kernels->max(scores, n)};
    float max = job->kernels->max(pair, 2);
    if (max == -INFINITY) {
        memset(scores, 0, (size_t)n * sizeof *scores);
        return;
    }
    float factor = expf(block->max[i] - max);
    if (factor != 1)
        job->kernels->scale_row(sums, sums, a->value_width, factor);
    block->total[i] = block->total[i] * (double)factor +
                      job->kernels->exp_row(scores, scores, n, max);
    block->max[i] = max;
}

/* ---- blocks ------------------------------------------------------------- */

/* Adds the values of `n` keys, from key `first` on, to the sums. */
static void keys_add(const struct attention_job *job, struct query_block *block,
                     int64_t first, int64_t n)
{
    const struct attention *a = &job->attention;
    int64_t head = block->head / a->group;
    bool is_row = block->count == 1; /* a matrix-vector product */
    struct matrix k = rows_get(head_of(job->k, &a->k, block->image, head),
                               &a->k, first, n, a->width, block->space_k);
    struct matrix v = rows_get(head_of(job->v, &a->v, block->image, head),
                               &a->v, first, n, a->value_width, block->space_v);
    const struct blas_product scores = {.tb = true,
                                        .rows = block->count,
                                        .columns = n,
                                        .depth = a->width,
                                        .alpha = is_row ? 1 : a->scale,
                                        .a = block->q.at,
                                        .b = k.at,
                                        .c = block->scores,
                                        .a_ld = block->q.ld,
                                        .b_ld = k.ld,
                                        .c_ld = n};
    if (a->width > 0)
        blas_multiply(&scores);
    else
        memset(block->scores, 0,
               (size_t)(block->count * n) * sizeof *block->scores);
    if (is_row)
        job->kernels->scale_row(block->scores, block->scores, n, a->scale);
    for (int64_t i = 0; i < block->count; i++)
        weights_make(job, block, i, first, n);
    const struct blas_product values = {.rows = block->count,
                                        .columns = a->value_width,
                                        .depth = n,
                                        .alpha = 1,
                                        .beta = 1,
                                        .a = block->scores,
                                        .b = v.at,
                                        .c = block->sums,
                                        .a_ld = n,
                                        .b_ld = v.ld,
                                        .c_ld = a->value_width};
    blas_multiply(&values);
}

static void block_run(const struct attention_job *job,
                      struct query_block *block)
{
    const struct attention *a = &job->attention;
    int64_t end = attention_key_end(a, block->first + block->count - 1);
    memset(block->sums, 0,
           (size_t)(block->count * a->value_width) * sizeof *block->sums);
    for (int64_t i = 0; i < block->count; i++) {
        block->max[i] = -INFINITY;
        block->total[i] = 0;
    }
    for (int64_t first = 0; first < end; first += KEYS)
        keys_add(job, block, first, min64(KEYS, end - first));
    for (int64_t i = 0; i < block->count; i++) {
        float *sums = block->sums + i * a->value_width;
        float *out = job->out + block->image * a->out.batch +
                     block->head * a->out.head +
                     (block->first + i) * a->out.row;
        if (block->total[i] != 0)
            job->kernels->scale_row(sums, sums, a->value_width,
                                    (float)(1 / block->total[i]));
        elements_copy(out, a->out.column, sums, 1, a->value_width, sizeof *out);
    }
}

/* Thread-pool function.  Each task computes a block of queries. */
static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct attention_job *job = context;
    const struct attention *a = &job->attention;
    int64_t slot = slot_take(job->slot_taken, job->threads);
    float *space = job->slots + slot * job->slot_floats;
    for (int64_t task = first; task < end; task++) {
        int64_t rest = task / job->query_blocks;
        struct query_block block = {.head = rest % a->heads,
                                    .image = rest / a->heads,
                                    .first = task % job->query_blocks *
                                             job->query_rows,
                                    .space_k = space + job->query_floats};
        block.space_v = block.space_k + job->key_floats;
        block.scores = block.space_v + job->value_floats;
        block.sums = block.scores + job->score_floats;
        block.count = min64(job->query_rows, a->queries - block.first);
        block.q = rows_get(head_of(job->q, &a->q, block.image, block.head),
                           &a->q, block.first, block.count, a->width, space);
        block_run(job, &block);
    }
    slot_return(job->slot_taken, slot);
}

uint64_t attention_prepare(struct attention_job *job, const struct work *work)
{
    struct attention *a = &job->attention;
    *job = (struct attention_job){.op = work->op->id,
                                  .kernels = work->device->kernels,
                                  .pool = work->device->pool,
                                  .q = tensor_data(work->inputs[0]),
                                  .k = tensor_data(work->inputs[1]),
                                  .v = tensor_data(work->inputs[2]),
                                  .out = tensor_data(work->outputs[0])};
    attention_read(a, work->op, work->inputs, work->input_count,
                   work->outputs[0]);
    if (a->mask_tensor != NULL)
        job->mask = tensor_data(a->mask_tensor);
    if (a->batch * a->heads * a->queries * a->value_width == 0)
        return 0;
    job->threads = min64(pool_threads(job->pool), MAX_BLAS_THREADS);
    job->query_rows = min64(a->queries, QUERIES);
    job->query_blocks = ceil_div(a->queries, job->query_rows);
    job->query_floats = round_to_lines(job->query_rows * a->width);
    job->key_floats = round_to_lines(KEYS * a->width);
    job->value_floats = round_to_lines(KEYS * a->value_width);
    job->score_floats = round_to_lines(job->query_rows * KEYS);
    job->sum_floats = round_to_lines(job->query_rows * a->value_width);
    job->slot_floats = job->query_floats + job->key_floats + job->value_floats +
                       job->score_floats + job->sum_floats;
    return sizeof(float) * (uint64_t)(job->threads * job->slot_floats);
}

void attention_run(struct attention_job *job, void *workspace)
{
    const struct attention *a = &job->attention;
    atomic_uchar slot_taken[MAX_BLAS_THREADS] = {0};
    job->slots = workspace;
    job->slot_taken = slot_taken;
    bool limited = blas_limit();
    pool_run(job->pool, job->op, blocks_run, job,
             a->batch * a->heads * job->query_blocks,
             job->query_rows * (a->keys * (a->width + a->value_width) + 1));
    if (limited)
        blas_release();
}
