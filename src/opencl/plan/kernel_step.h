/* SPDX-License-Identifier: Apache-2.0 */
/* What the planners share: kernel steps, and tensors and axes as the kernels
 * take them.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_STEP_H
#define TANDEM_OPENCL_PLAN_KERNEL_STEP_H

#include "opencl/plan/plan.h"

/* As in cl/common/indexing.cl, innermost axis first. */
struct fast_divmod {
    uint64_t extent[TANDEM_MAX_RANK];
    uint32_t multiplier[TANDEM_MAX_RANK];
    uint32_t shift[TANDEM_MAX_RANK];
};

void fast_divmod_fill(struct fast_divmod *out, const struct layout *layout);
/* One operand's strides, innermost first. */
void strides_fill(int64_t *out, const struct layout *layout, uint32_t operand);
/* Starts a step of plan; params is zeroed for param_bytes. */
struct kernel_step *plan_add_step(struct launch_plan *plan, uint64_t key,
                                  uint32_t param_bytes);
void step_add_buffer(struct kernel_step *step, struct tandem_buffer *buffer,
                     bool written);
/* Enough groups for items work-items of the key's group size. */
void step_set_items(struct kernel_step *step, uint64_t items);
/* Offset in elements of the descriptor's dtype. */
uint64_t element_offset(const struct tandem_tensor_desc *tensor);
/* Whether four elements from the tensor's start on are aligned as one. */
bool tensor_is_vec4_aligned(const struct tandem_tensor_desc *tensor);
uint32_t kernel_type_of(uint32_t dtype);
/* By size alone. */
uint32_t kernel_bits_type(uint32_t dtype);
/* Groups of so many work-items are large enough for large tiles; devices whose
 * groups are smaller have little local memory, too. */
#define LARGE_GROUP_LOG2 6u
/* cl/transpose.cl's tiles of a type that kernel_bits_type gave, in vectors or
 * not: BLOCK, PER, SHEAR and the sides. */
struct transpose_tile {
    uint32_t block, per, store_alignment, columns, rows;
};
struct transpose_tile transpose_tile(uint32_t type, bool vector);
/* The smallest power of two >= value, as its logarithm. */
uint32_t log2_ceil(uint64_t value);
/* What indices of 32 bits count, or reach. */
#define MAX_32BIT_INDEX INT32_MAX
bool needs_64bit_index(const struct layout *layout);
/* Whether elements, or places within an operand, are beyond 32 bits. */
bool needs_64bit_offset(const struct layout *layout);
/* Counts in fours along the innermost axis from here on. */
void layout_to_vec4(struct layout *layout);
/* Takes axis out of layout. */
void layout_remove_axis(struct layout *layout, uint32_t axis);

#endif
