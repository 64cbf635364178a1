/* SPDX-License-Identifier: Apache-2.0 */
/* Functions to iterate over the axes of a reduction.  Pure functions. */
#ifndef TANDEM_CPU_KERNELS_REDUCE_H
#define TANDEM_CPU_KERNELS_REDUCE_H

#include <math.h>

#include "common/iteration_space.h"
#include "cpu/kernels/kernel_table.h"

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

/* Advances by `steps` elements along `axis`, at most to its end.  From the end,
 * the cursor returns to the start and advances by 1 along the next outer
 * axis. */
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

/* Returns the f32 result of a reduction of n elements.  `value` is their
 * product, maximum or minimum.  Only log_sum_exp uses both. */
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

/* For n elements x that are `step` apart, line_max returns the maximum, and
 * line_sum_exp returns the sum of e^(x - m). */
float line_max(const struct kernels *kernels, const float *x, int64_t step,
               int64_t n);
double line_sum_exp(const struct kernels *kernels, const float *x, int64_t step,
                    int64_t n, float m);

#endif
