/* SPDX-License-Identifier: Apache-2.0 */
/* What the planners share: kernel steps, and tensors and axes as the kernels
 * take them.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_STEP_H
#define TANDEM_OPENCL_PLAN_KERNEL_STEP_H

#include "opencl/plan/plan.h"

#define AXES TANDEM_MAX_RANK

/* As in cl/common/indexing.cl, innermost axis first. */
struct extents {
    uint64_t extent[AXES];
    uint32_t multiplier[AXES];
    uint32_t shift[AXES];
};

void extents_fill(struct extents *out, const struct layout *layout);
/* One operand's strides, innermost first. */
void strides_fill(int64_t *out, const struct layout *layout, uint32_t operand);
/* Starts a step of plan; params is zeroed for param_bytes. */
struct step *plan_step(struct plan *plan, uint64_t key, uint32_t param_bytes);
void step_buffer(struct step *step, struct tandem_buffer *buffer, bool written);
/* Enough groups for items work-items of the key's group size. */
void step_items(struct step *step, uint64_t items);
/* Offset in elements of the descriptor's dtype. */
uint64_t element_offset(const struct tandem_tensor_desc *tensor);
/* Whether four elements from the tensor's start on are aligned as one. */
bool vector_aligned(const struct tandem_tensor_desc *tensor);
uint32_t type_of(uint32_t dtype);
/* By size alone. */
uint32_t bits_type(uint32_t dtype);
/* Groups of so many work-items are large enough for large tiles; devices whose
 * groups are smaller have little local memory, too. */
#define LARGE_GROUP_LOG2 6u
/* cl/transpose.cl's tiles of a type that bits_type gave, in vectors or not:
 * BLOCK, PER, SHEAR and the sides. */
struct copy_tile {
    uint32_t block, per, shear, columns, rows;
};
struct copy_tile copy_tile(uint32_t type, bool vector);
/* The smallest power of two >= value, as its logarithm. */
uint32_t log2_ceil(uint64_t value);
/* What indices of 32 bits count, or reach. */
#define MOST_NARROW INT32_MAX
bool needs_64bit_index(const struct layout *layout);
/* Whether elements, or places within an operand, are beyond 32 bits. */
bool needs_far(const struct layout *layout);
/* Counts in fours along the innermost axis from here on. */
void layout_fours(struct layout *layout);
/* Takes axis out of layout. */
void layout_drop(struct layout *layout, uint32_t axis);

#endif
