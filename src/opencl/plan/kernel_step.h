/* SPDX-License-Identifier: Apache-2.0 */
/* Builds kernel steps, the launches of a plan, and describes tensors and axes
 * to kernels.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_STEP_H
#define TANDEM_OPENCL_PLAN_KERNEL_STEP_H

#include "opencl/plan/plan.h"

/* Largest element count or offset for which kernels use 32-bit indices. */
#define MAX_32BIT_INDEX INT32_MAX
/* Log2 of the smallest work-group for kernels with large tiles.  Devices with
 * smaller work-groups also have little local memory. */
#define LARGE_GROUP_LOG2 6u

/* Axis lengths with constants for fast division, innermost axis first.  The
 * struct must match the one in cl/common/indexing.cl. */
struct fast_divmod {
    uint64_t extent[TANDEM_MAX_RANK];
    uint32_t multiplier[TANDEM_MAX_RANK];
    uint32_t shift[TANDEM_MAX_RANK];
};
void fast_divmod_fill(struct fast_divmod *out, const struct layout *layout);
/* Copies the strides of one operand, the innermost axis first. */
void strides_fill(int64_t *out, const struct layout *layout, uint32_t operand);

/* Appends a step whose `param_bytes` bytes of parameters are zero. */
struct kernel_step *plan_add_step(struct launch_plan *plan, uint64_t key,
                                  uint32_t param_bytes);
void step_add_buffer(struct kernel_step *step, struct tandem_buffer *buffer,
                     bool written);
/* Adds the buffers of the first output and of all inputs.  A NULL input is a
 * scalar; the output is bound in its place and not read. */
void step_add_operands(struct kernel_step *step,
                       const struct op_request *request);
/* Sets the number of work-groups so that they have `items` work-items. */
void step_set_items(struct kernel_step *step, uint64_t items);

/* Reserves bytes of the temporary buffer and returns their offset. */
uint64_t plan_reserve_temp(struct launch_plan *plan, uint64_t bytes,
                           uint64_t alignment);

/* Returns the offset of a tensor's first element in elements. */
uint64_t element_offset(const struct tandem_tensor_desc *tensor);
/* Returns how far the buffer starts after a 64-byte boundary, in elements. */
uint32_t misalignment_elements(const struct tandem_tensor_desc *tensor);
/* Returns true if the tensor's first four elements are an aligned vec4. */
bool tensor_is_vec4_aligned(const struct tandem_tensor_desc *tensor);
/* Returns true if the operand's strides are multiples of four along all axes
 * except `skipped_axis`. */
bool strides_are_vec4(const struct layout *layout, uint32_t operand,
                      uint32_t skipped_axis);
/* A value for `skipped_axis` that skips no axis. */
#define NO_AXIS UINT32_MAX

/* Return the enum kernel_type of elements with this dtype, or of an unsigned
 * integer of the same size. */
uint32_t kernel_type_of(uint32_t dtype);
uint32_t kernel_bits_type(uint32_t dtype);

/* A tile of cl/transpose.cl: its macros BLOCK and VECTOR_ELEMENTS, the store
 * alignment in elements, and the sides of the tile in elements. */
struct transpose_tile {
    uint32_t block, per, store_alignment, columns, rows;
};
/* Returns the transpose tile for a type that kernel_bits_type returned. */
struct transpose_tile transpose_tile(uint32_t type, bool vec4);

/* Returns true if the number of elements exceeds MAX_32BIT_INDEX. */
bool needs_64bit_index(const struct layout *layout);
/* Returns true if the number of elements, or an element's offset within an
 * operand, exceeds MAX_32BIT_INDEX. */
bool needs_64bit_offset(const struct layout *layout);
/* Changes the unit of the innermost axis from elements to vec4. */
void layout_to_vec4(struct layout *layout);
void layout_remove_axis(struct layout *layout, uint32_t axis);

/* Returns log2 of the smallest power of two that is at least `value`. */
uint32_t log2_ceil(uint64_t value);
static inline uint64_t div_ceil(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}
static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}
static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

#endif
