/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the planners.  They fill a struct kernel_step, and they describe
 * tensors and axes to kernels.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_KERNEL_STEP_H
#define TANDEM_OPENCL_PLAN_KERNEL_STEP_H

#include "common/tensor_desc.h"
#include "opencl/plan/plan.h"
#include "common/params.cl"

_Static_assert(MAX_AXES == TANDEM_MAX_RANK, "params.cl");

/* Largest element count or offset for which kernels use 32-bit indices. */
#define MAX_32BIT_INDEX INT32_MAX
/* Log2 of the minimum work-group size for kernels with large tiles.  Devices
 * with smaller work-groups also have little local memory. */
#define LARGE_GROUP_LOG2 6u

/* Sets `out` to the axes of the space and returns the number of axes. */
uint32_t fast_divmod_fill(struct fast_divmod *out,
                          const struct iteration_space *space);
/* Copies the strides of one operand, starting with the innermost axis. */
void strides_fill(int64_t *out, const struct iteration_space *space,
                  uint32_t operand);

/* Adds a step to the plan.  Copies its parameters, key->kernel->param_bytes
 * bytes, from `params`.  If `params` is NULL, the parameters are zero. */
struct kernel_step *plan_add_step(struct launch_plan *plan,
                                  const struct kernel_key *key,
                                  const void *params);
/* The position of a member of a parameter struct, for `at` below. */
#define AT(params, member) ((uint32_t)offsetof(struct params, member))
/* The kernel gets no offset of this argument, or does not use it. */
#define NO_OFFSET UINT32_MAX
/* Adds an argument.  The kernel accesses at most `before` bytes before the
 * start of the operand, and `after` bytes from there on. */
void step_add_slot(struct kernel_step *step, uint32_t slot, uint64_t before,
                   uint64_t after, bool written);
/* Adds an argument and the patch of its offset, a uint64_t at position `at` of
 * the parameters.  The planner sets this parameter to element_offset(). */
void step_add_tensor(struct kernel_step *step,
                     const struct tandem_tensor_desc *tensor, bool written,
                     uint32_t at);
void step_add_temp(struct kernel_step *step, bool written);
/* Adds the buffers of the first output and of all inputs, whose offsets are at
 * at[0], at[1], ...  If an input is NULL (a scalar), adds the output's buffer
 * as a placeholder, because the argument must be a valid buffer; the kernel
 * does not read it. */
void step_add_operands(struct kernel_step *step,
                       const struct op_request *request, const uint32_t *at);
/* Adds a patch of a further offset. */
void step_patch_offset(struct kernel_step *step,
                       const struct tandem_tensor_desc *tensor, uint32_t at);
void step_add_patch(struct kernel_step *step, enum patch_kind kind,
                    const struct tandem_tensor_desc *tensor, uint32_t at,
                    uint32_t modulus, uint32_t shift);

/* The start of a slot's operand: its offset in the buffer, and the number of
 * bytes from a 64-byte boundary to the buffer. */
struct slot_address {
    uint64_t byte_offset;
    uint32_t misalignment;
};
/* Copies the parameters of the step to `out`, which has room for
 * MAX_PARAM_BYTES, and applies the patches.  `addresses` is indexed by slot. */
void step_params_patch(unsigned char *out, const struct kernel_step *step,
                       const struct slot_address *addresses);
/* Sets the number of work-groups to the minimum for `items` work-items. */
void step_set_items(struct kernel_step *step, uint64_t items);

/* Reserves `bytes` bytes of the temporary buffer and returns their offset. */
uint64_t plan_reserve_temp(struct launch_plan *plan, uint64_t bytes,
                           uint64_t alignment);

/* Returns the offset of a tensor's first element in its operand, in elements.
 * It is negative, modulo 2^64, for some views of an operand with negative
 * strides. */
static inline uint64_t element_offset(const struct tandem_tensor_desc *tensor)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(tensor->dtype);
    return (uint64_t)((int64_t)tensor->byte_offset / bytes);
}
/* Returns true if an aligned vec4 load can read the tensor's first elements. */
bool tensor_is_vec4_aligned(const struct tandem_tensor_desc *tensor);
/* Returns true if aligned vec4 loads can read all rows of the operand, provided
 * that the row length is a multiple of four.  `outer` has the axes that number
 * the rows. */
bool rows_are_vec4_aligned(const struct iteration_space *outer,
                           uint32_t operand,
                           const struct tandem_tensor_desc *tensor);
/* Returns true if aligned vec4 loads and stores can access the operand along
 * `axis`, provided that the length of this axis is a multiple of four. */
bool axis_is_vec4(const struct iteration_space *space, uint32_t operand,
                  uint32_t axis, const struct tandem_tensor_desc *tensor);

/* The first function returns the enum kernel_type of a dtype, the second that
 * of the unsigned integer type with the same size. */
uint8_t kernel_type_of(uint32_t dtype);
uint8_t kernel_bits_type(uint32_t dtype);

/* Tile of cl/transpose.cl.  `block` and `per` are the values of its macros
 * BLOCK and VECTOR_ELEMENTS.  The other members are in elements. */
struct transpose_tile {
    uint32_t block, per, store_alignment, columns, rows;
};
/* Returns the transpose tile for `type`, which kernel_bits_type() returned. */
struct transpose_tile transpose_tile(uint32_t type, bool vec4);

/* Returns true if the number of elements exceeds MAX_32BIT_INDEX. */
static inline bool needs_64bit_index(const struct iteration_space *space)
{
    return space->elements > MAX_32BIT_INDEX;
}
/* Returns true if the number of elements or the largest offset of an operand
 * exceeds MAX_32BIT_INDEX. */
bool needs_64bit_offset(const struct iteration_space *space);
/* Divides the length of the innermost axis by four, to count vec4. */
void space_to_vec4(struct iteration_space *space);
void space_remove_axis(struct iteration_space *space, uint32_t axis);

/* Returns log2 of the smallest power of two that is at least `value`. */
static inline uint32_t log2_ceil(uint64_t value)
{
    return value <= 1 ? 0 : 64u - (uint32_t)__builtin_clzll(value - 1);
}
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
static inline uint64_t stride_magnitude(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

#endif
