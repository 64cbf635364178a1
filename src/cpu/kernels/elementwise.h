/* SPDX-License-Identifier: Apache-2.0 */
/* Functions to iterate over the rows of a tensor layout, and to convert the
 * attributes of element-wise operators.  Pure functions. */
#ifndef TANDEM_CPU_KERNELS_ELEMENTWISE_H
#define TANDEM_CPU_KERNELS_ELEMENTWISE_H

#include "common/iteration_space.h"
#include "cpu/kernels/kernel_table.h"

/* Converts the attributes of a validated operator to the form that its row
 * function reads.  The caller has cleared `out` to zero. */
void elementwise_params(struct params *out, const struct tandem_op *op);

/* Computes the multi-dimensional index of row number `line`, along all axes
 * except the innermost. */
static inline void layout_seek(const struct layout *layout, int64_t line,
                               int64_t *index)
{
    for (uint32_t axis = layout->rank - 1; axis-- > 0;) {
        index[axis] = line % layout->shape[axis];
        line /= layout->shape[axis];
    }
}

/* Returns the element offset of the row at `index` from an operand's start. */
static inline int64_t layout_offset(const struct layout *layout,
                                    uint32_t operand, const int64_t *index)
{
    int64_t offset = 0;
    for (uint32_t axis = 0; axis + 1 < layout->rank; axis++)
        offset += index[axis] * layout->strides[operand][axis];
    return offset;
}

/* Advances the index and the pointers of all operands to the next row.  After
 * the last row, the pointers point to the first row again. */
static inline void layout_next(const struct layout *layout, int64_t *index,
                               unsigned char **pointers, const uint32_t *bytes)
{
    for (uint32_t axis = layout->rank - 1; axis-- > 0;) {
        bool wraps = ++index[axis] == layout->shape[axis];
        int64_t steps = wraps ? 1 - layout->shape[axis] : 1;
        for (uint32_t i = 0; i < layout->operands; i++)
            pointers[i] += steps * layout->strides[i][axis] * (int64_t)bytes[i];
        if (!wraps)
            return;
        index[axis] = 0;
    }
}

#endif
