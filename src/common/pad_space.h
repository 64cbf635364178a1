/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration spaces of the class PAD, which copies an input and adds elements at
 * both ends of its axes.  Pure functions for checked calls. */
#ifndef TANDEM_COMMON_PAD_SPACE_H
#define TANDEM_COMMON_PAD_SPACE_H

#include "common/tensor_desc.h"
#include "common/iteration_space.h"

/* Values of the attribute `mode`.  PAD_CONSTANT adds the value of an attribute,
 * PAD_EDGE repeats the first and the last element.  PAD_REFLECT mirrors the
 * axis at these two, without repeating them; PAD_WRAP repeats the axis. */
enum pad_mode { PAD_CONSTANT = 0, PAD_REFLECT = 1, PAD_EDGE = 2, PAD_WRAP = 3 };

/* The space covers the output, with the operands output and input.  Element i
 * of an axis is element i - begin of this axis of the input if that is in
 * [0, length).  Otherwise it is added as the mode says. */
struct pad_space {
    struct iteration_space space;
    enum pad_mode mode;
    /* Number of the input's first element, because negative pads remove
     * elements. */
    int64_t input_offset;
    int64_t begin[TANDEM_MAX_RANK], length[TANDEM_MAX_RANK];
};
void pad_space_build(struct pad_space *out, const struct tandem_op *op,
                     const struct tandem_tensor_desc *input,
                     const struct tandem_tensor_desc *output);

/* Reads how many elements the operator pad adds at the beginning and at the end
 * of an axis. */
static inline void pad_lengths(const struct tandem_op *op,
                               const struct tandem_tensor_desc *input,
                               uint32_t axis, int64_t *out_begin,
                               int64_t *out_end)
{
    *out_begin = op->ints[2 + axis];
    *out_end = op->ints[2 + input->rank + axis];
}

/* Returns how many of the n elements of an axis are in the output. Negative
 * pads remove elements. They may remove more than n if others are added. */
static inline int64_t pad_kept_length(int64_t n, int64_t begin, int64_t end)
{
    int64_t removed_first = begin < -n ? n : begin < 0 ? -begin : 0;
    int64_t removed_last = end < -n ? n : end < 0 ? -end : 0;
    return removed_first < n - removed_last ? n - removed_last - removed_first
                                            : 0;
}

/* Returns the bits of the value that PAD_CONSTANT adds. */
uint64_t pad_value_bits(const struct tandem_op *op, uint32_t dtype);

#endif
