/* SPDX-License-Identifier: Apache-2.0 */
/* Functions to iterate over the rows of an iteration space, and to convert the
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
static inline void space_seek(const struct iteration_space *space, int64_t line,
                              int64_t *index)
{
    for (uint32_t axis = space->rank - 1; axis-- > 0;) {
        index[axis] = line % space->shape[axis];
        line /= space->shape[axis];
    }
}

/* Returns the element offset of the row at `index` from an operand's start. */
static inline int64_t space_offset(const struct iteration_space *space,
                                   uint32_t operand, const int64_t *index)
{
    int64_t offset = 0;
    for (uint32_t axis = 0; axis + 1 < space->rank; axis++)
        offset += index[axis] * space->strides[operand][axis];
    return offset;
}

/* Advances the index and the pointers of all operands to the next row.  After
 * the last row, the pointers point to the first row again. */
static inline void space_next(const struct iteration_space *space,
                              int64_t *index, unsigned char **pointers,
                              const uint32_t *bytes)
{
    for (uint32_t axis = space->rank - 1; axis-- > 0;) {
        bool wraps = ++index[axis] == space->shape[axis];
        int64_t steps = wraps ? 1 - space->shape[axis] : 1;
        for (uint32_t i = 0; i < space->operands; i++)
            pointers[i] += steps * space->strides[i][axis] * (int64_t)bytes[i];
        if (!wraps)
            return;
        index[axis] = 0;
    }
}

#endif
