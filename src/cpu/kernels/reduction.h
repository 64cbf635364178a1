/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, and functions to iterate over the axes of a reduction. */
#ifndef TANDEM_CPU_KERNELS_REDUCTION_H
#define TANDEM_CPU_KERNELS_REDUCTION_H

#include <math.h>

#include "common/iteration_space.h"
#include "cpu/objects.h"

/* Maximum columns that are reduced at once: a 4 KiB page of each f32 row. */
#define MAX_COLUMNS 1024

/* A reduction.  A chunk is a range of elements (rows in column_reduce.c). */
struct reduction {
    const struct kernels *kernels;
    /* Pool that runs the chunks of each result.  NULL means that the calling
     * thread runs the chunks. */
    struct pool *pool;
    uint32_t op;
    struct reduction_spaces spaces;
    const float *in;
    void *out;             /* f32 results; i64 for argmax and argmin */
    int64_t chunk, chunks; /* size of a chunk; chunks per result */
    int64_t width, blocks; /* columns per block; blocks per row of results */
};

/* Returns true if adjacent results come from adjacent columns of the input, and
 * reducing many columns at once is faster than one column at a time. */
bool column_reduce_supports(const struct reduction_spaces *spaces);
/* Runs a reduction that column_reduce_supports accepts.  Reduces many columns
 * at once, row by row.  Sets reduction->pool and the members that are declared
 * after `out`. */
void column_reduce_run(struct reduction *reduction, struct pool *pool);

/* Position in a space of at most two operands. */
struct cursor {
    int64_t index[TANDEM_MAX_RANK];
    int64_t offsets[2]; /* offset in each operand, in elements */
};

static inline void cursor_seek(struct cursor *cursor,
                               const struct iteration_space *space,
                               int64_t element)
{
    cursor->offsets[0] = cursor->offsets[1] = 0;
    for (uint32_t axis = space->rank; axis-- > 0;) {
        cursor->index[axis] = element % space->shape[axis];
        element /= space->shape[axis];
        for (uint32_t i = 0; i < 2; i++)
            cursor->offsets[i] += cursor->index[axis] * space->strides[i][axis];
    }
}

/* Advances by `steps` elements along `axis`, but not beyond the end of the
 * axis.  If the cursor reaches the end, it returns to the start of the axis and
 * advances by 1 along the next outer axis. */
static inline void cursor_move(struct cursor *cursor,
                               const struct iteration_space *space,
                               uint32_t axis, int64_t steps)
{
    cursor->index[axis] += steps;
    for (uint32_t i = 0; i < 2; i++)
        cursor->offsets[i] += steps * space->strides[i][axis];
    while (cursor->index[axis] == space->shape[axis] && axis > 0) {
        for (uint32_t i = 0; i < 2; i++)
            cursor->offsets[i] += space->strides[i][axis - 1] -
                                  space->shape[axis] * space->strides[i][axis];
        cursor->index[axis--] = 0;
        cursor->index[axis]++;
    }
}

/* Each row of results is divided into `blocks` blocks of up to `width` columns.
 * Moves the cursor to the first result of block number `task`.  Returns the
 * number of columns of that block. */
static inline int64_t columns_seek(struct cursor *cursor,
                                   const struct iteration_space *kept,
                                   int64_t task, int64_t blocks, int64_t width)
{
    int64_t extent = kept->shape[kept->rank - 1];
    int64_t column = task % blocks * width;
    cursor_seek(cursor, kept, task / blocks * extent + column);
    return min64(extent - column, width);
}

static inline void line_pack(float *to, const float *from, int64_t step,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * step];
}

static inline bool reduction_finds_index(uint32_t op)
{
    return op == TANDEM_OP_ARGMAX || op == TANDEM_OP_ARGMIN;
}

/* Returns true if the first pass of the reduction computes a product, maximum
 * or minimum, not a sum. */
static inline bool reduction_has_value(uint32_t op)
{
    return op == TANDEM_OP_PROD || op == TANDEM_OP_REDUCE_MAX ||
           op == TANDEM_OP_REDUCE_MIN || op == TANDEM_OP_LOG_SUM_EXP ||
           reduction_finds_index(op);
}

/* Returns the f32 result for n elements.  `value` is their product, maximum or
 * minimum.  Only log_sum_exp uses both `sum` and `value`. */
static inline float reduction_finish(uint32_t op, double sum, float value,
                                     int64_t n)
{
    switch (op) {
    case TANDEM_OP_PROD:
    case TANDEM_OP_REDUCE_MAX:
    case TANDEM_OP_REDUCE_MIN:
        return value;
    case TANDEM_OP_LOG_SUM_EXP:
        return isinf(value) || isnan(value) ? value
                                            : (float)((double)value + log(sum));
    case TANDEM_OP_MEAN:
        return (float)(sum / (double)n);
    case TANDEM_OP_L2:
        return (float)sqrt(sum);
    default:
        return (float)sum;
    }
}

#endif
