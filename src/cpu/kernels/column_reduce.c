/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of many columns at once; see column_reduce_run in reduction.h. */
#include "config.h"

#include <math.h>

#include "cpu/kernels/reduction.h"

/* Minimum number of rows per chunk, and maximum number of chunks per block.
 * ACCUMULATORS is the number of accumulators on the stack, another limit. */
#define MIN_CHUNK_ROWS 512
#define MAX_CHUNKS 32
#define ACCUMULATORS (4 * MAX_COLUMNS)
/* Minimum number of column blocks per thread.  Blocks are not made narrower
 * than MIN_COLUMNS columns to reach this number. */
#define BLOCKS_PER_THREAD 2
#define MIN_COLUMNS 64

/* A block of columns that one thread reduces in chunks of rows. */
struct column_block {
    const struct reduction *reduction;
    const float *start;
    int64_t width;
    bool shifted;  /* true in the second pass of log_sum_exp */
    double *sums;  /* `width` partial sums for each chunk of rows */
    float *values; /* `width` products, maxima or minima for each chunk.  In
                    * pass 2 of log_sum_exp, `width` maxima over all chunks. */
};

bool column_reduce_supports(const struct reduction_spaces *spaces)
{
    uint32_t inner = spaces->kept.rank - 1;
    return spaces->kept.strides[1][inner] == 1 &&
           spaces->kept.shape[inner] >= 4 &&
           spaces->reduced.strides[0][spaces->reduced.rank - 1] != 1;
}

/* Returns true if this pass computes products, maxima or minima, not sums. */
static bool computes_values(const struct column_block *block)
{
    return !block->shifted && reduction_has_value(block->reduction->op);
}

/* Combines rows with a chunk's accumulators.  `stride` is the row pitch. */
static void rows_add(const struct column_block *block, int64_t chunk,
                     const float *x, int64_t rows, int64_t stride)
{
    const struct kernels *kernels = block->reduction->kernels;
    int64_t width = block->width;
    double *sums = block->sums + chunk * width;
    float *values = block->values + chunk * width;
    if (block->shifted) {
        kernels->column_exp(NULL, 0, x, rows, stride, width, block->values,
                            sums);
        return;
    }
    switch (block->reduction->op) {
    case TANDEM_OP_SUM:
    case TANDEM_OP_MEAN:
        kernels->column_sum(x, rows, stride, width, sums);
        break;
    case TANDEM_OP_PROD:
        kernels->column_product(x, rows, stride, width, values);
        break;
    case TANDEM_OP_REDUCE_MIN:
        kernels->column_min(x, rows, stride, width, values);
        break;
    case TANDEM_OP_REDUCE_MAX:
    case TANDEM_OP_LOG_SUM_EXP:
        kernels->column_max(x, rows, stride, width, values);
        break;
    default:
        kernels->column_sum_square(x, rows, stride, width, sums);
    }
}

static void accumulators_start(const struct column_block *block, int64_t chunk)
{
    uint32_t op = block->reduction->op;
    float start = op == TANDEM_OP_PROD         ? 1.0f
                  : op == TANDEM_OP_REDUCE_MIN ? INFINITY
                                               : -INFINITY;
    int64_t from = chunk * block->width;
    for (int64_t i = from; i < from + block->width; i++) {
        block->sums[i] = 0.0;
        if (!block->shifted)
            block->values[i] = start;
    }
}

static void chunks_run(const void *context, int64_t first, int64_t end)
{
    const struct column_block *block = context;
    const struct iteration_space *rows = &block->reduction->spaces.reduced;
    uint32_t inner = rows->rank - 1;
    for (int64_t chunk = first; chunk < end; chunk++) {
        int64_t from = chunk * block->reduction->chunk;
        int64_t to = min64(rows->elements, from + block->reduction->chunk);
        struct cursor cursor;
        accumulators_start(block, chunk);
        cursor_seek(&cursor, rows, from);
        for (int64_t n; from < to; from += n) {
            n = min64(rows->shape[inner] - cursor.index[inner], to - from);
            rows_add(block, chunk, block->start + cursor.offsets[0], n,
                     rows->strides[0][inner]);
            cursor_move(&cursor, rows, inner, n);
        }
    }
}

/* Combines the accumulators of all chunks, in order, into those of chunk 0. */
static void chunks_combine(const struct column_block *block)
{
    int64_t width = block->width;
    for (int64_t chunk = 1; chunk < block->reduction->chunks; chunk++)
        if (computes_values(block))
            rows_add(block, 0, block->values + chunk * width, 1, 0);
        else
            for (int64_t i = 0; i < width; i++)
                block->sums[i] += block->sums[chunk * width + i];
}

static void block_pass(const struct column_block *block)
{
    const struct reduction *reduction = block->reduction;
    if (reduction->pool != NULL)
        pool_run(reduction->pool, reduction->op + POOL_VARIANT, chunks_run,
                 block, reduction->chunks, reduction->chunk * block->width);
    else
        chunks_run(block, 0, reduction->chunks);
    chunks_combine(block);
}

static void block_reduce(const struct reduction *reduction, const float *start,
                         float *out, int64_t width)
{
    const struct reduction_spaces *spaces = &reduction->spaces;
    double sums[ACCUMULATORS];
    float values[ACCUMULATORS];
    int64_t step = spaces->kept.strides[0][spaces->kept.rank - 1];
    struct column_block block = {reduction, start, width, false, sums, values};
    block_pass(&block);
    if (reduction->op == TANDEM_OP_LOG_SUM_EXP) {
        block.shifted = true;
        block_pass(&block);
    }
    for (int64_t i = 0; i < width; i++)
        out[i * step] = reduction_finish(reduction->op, sums[i], values[i],
                                         spaces->reduced.elements);
}

static void block_find(const struct reduction *reduction, const float *start,
                       int64_t *out, int64_t width)
{
    const struct kernels *kernels = reduction->kernels;
    const struct reduction_spaces *spaces = &reduction->spaces;
    int64_t rows = spaces->reduced.elements;
    int64_t stride = spaces->reduced.strides[0][spaces->reduced.rank - 1];
    int64_t step = spaces->kept.strides[0][spaces->kept.rank - 1];
    float best[MAX_COLUMNS];
    float found[MAX_COLUMNS]; /* row of a new maximum or minimum; -1 if none */
    for (int64_t i = 0; i < width; i++) {
        best[i] = start[i];
        out[i * step] = 0;
    }
    for (int64_t done = 0; done < rows; done += FIND_ROWS) {
        int64_t block = min64(rows - done, FIND_ROWS);
        for (int64_t i = 0; i < width; i++)
            found[i] = -1;
        (reduction->op == TANDEM_OP_ARGMIN ? kernels->column_argmin
                                           : kernels->column_argmax)(
            start + done * stride, block, stride, width, best, found);
        for (int64_t i = 0; i < width; i++)
            if (found[i] >= 0)
                out[i * step] = done + (int64_t)found[i];
    }
}

static void blocks_run(const void *context, int64_t first, int64_t end)
{
    const struct reduction *reduction = context;
    for (int64_t task = first; task < end; task++) {
        struct cursor cursor;
        int64_t width = columns_seek(&cursor, &reduction->spaces.kept, task,
                                     reduction->blocks, reduction->width);
        const float *start = reduction->in + cursor.offsets[1];
        if (reduction_finds_index(reduction->op))
            block_find(reduction, start,
                       (int64_t *)reduction->out + cursor.offsets[0], width);
        else
            block_reduce(reduction, start,
                         (float *)reduction->out + cursor.offsets[0], width);
    }
}

/* Chooses the number of columns per block: 4 KiB of each row, or less if
 * threads would be idle otherwise.  This number does not affect results. */
static void block_width_choose(struct reduction *reduction, int64_t threads)
{
    const struct iteration_space *kept = &reduction->spaces.kept;
    int64_t width = kept->shape[kept->rank - 1];
    int64_t lines = kept->elements / width;
    reduction->width = MAX_COLUMNS;
    while (threads > 1 && reduction->width > MIN_COLUMNS &&
           lines * ceil_div(width, reduction->width) <
               BLOCKS_PER_THREAD * threads)
        reduction->width /= 2;
    reduction->blocks = ceil_div(width, reduction->width);
}

/* Chooses the number of rows per chunk.  The number affects the rounding of
 * sums, so it must not depend on the number of threads. */
static void chunk_rows_choose(struct reduction *reduction)
{
    const struct iteration_space *kept = &reduction->spaces.kept;
    int64_t rows = reduction->spaces.reduced.elements;
    int64_t width = kept->shape[kept->rank - 1];
    int64_t max = min64(ACCUMULATORS / min64(width, MAX_COLUMNS), MAX_CHUNKS);
    reduction->chunk = max64(ceil_div(rows, max), MIN_CHUNK_ROWS);
    reduction->chunks = ceil_div(rows, reduction->chunk);
}

void column_reduce_run(struct reduction *reduction, struct pool *pool)
{
    const struct iteration_space *kept = &reduction->spaces.kept;
    int64_t width = kept->shape[kept->rank - 1], threads = pool_threads(pool);
    block_width_choose(reduction, threads);
    chunk_rows_choose(reduction);
    int64_t tasks = kept->elements / width * reduction->blocks;
    if (tasks < threads && reduction->chunks > 1 &&
        !reduction_finds_index(reduction->op)) {
        reduction->pool = pool;
        blocks_run(reduction, 0, tasks);
        return;
    }
    pool_run(pool, reduction->op + POOL_VARIANT, blocks_run, reduction, tasks,
             reduction->spaces.reduced.elements *
                 ceil_div(width, reduction->blocks));
}
