/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a struct kernel_step: its buffers, sizes, element types and axes. */
#include "opencl/plan/kernel_step.h"

#include <string.h>

#include "common/tensor_extent.h"
#include "opencl/objects.h"

struct tandem_buffer plan_temp_buffer, plan_counter_buffer;

/* For a divisor d, sets the multiplier m and the shift s so that n / d =
 * (mulhi(n, m) + n) >> s for n < 2^31 (Granlund and Montgomery, "Division by
 * invariant integers using multiplication"). */
static void divider_fill(uint64_t divisor, uint32_t *multiplier,
                         uint32_t *shift)
{
    uint32_t s = log2_ceil(divisor);
    *shift = s;
    *multiplier = 0;
    if (s < 32)
        *multiplier =
            (uint32_t)((((((uint64_t)1 << s) - divisor) << 32) / divisor) + 1);
}

uint32_t fast_divmod_fill(struct fast_divmod *out,
                          const struct iteration_space *space)
{
    for (uint32_t i = 0; i < space->rank; i++) {
        out->extent[i] = (uint64_t)space->shape[space->rank - 1 - i];
        if (out->extent[i] != 0)
            divider_fill(out->extent[i], &out->multiplier[i], &out->shift[i]);
    }
    return space->rank;
}

void strides_fill(int64_t *out, const struct iteration_space *space,
                  uint32_t operand)
{
    for (uint32_t i = 0; i < space->rank; i++)
        out[i] = space->strides[operand][space->rank - 1 - i];
}

struct kernel_step *plan_add_step(struct launch_plan *plan,
                                  const struct kernel_key *key,
                                  const void *params)
{
    struct kernel_step *step = &plan->step[plan->step_count];
    if (plan->step_count < MAX_PLAN_STEPS)
        plan->step_count++;
    else
        plan->is_overfull = true;
    step->key = *key;
    step->groups = 0;
    step->buffer_count = 0;
    step->written = 0;
    step->param_bytes = key->kernel != NULL ? key->kernel->param_bytes : 0;
    if (params != NULL)
        memcpy(step->params, params, step->param_bytes);
    else
        memset(step->params, 0, step->param_bytes);
    return step;
}

void step_add_buffer(struct kernel_step *step, struct tandem_buffer *buffer,
                     uint64_t bytes, bool written)
{
    uint32_t i = step->buffer_count;
    if (i < MAX_STEP_BUFFERS) {
        step->written |= (uint32_t)written << i;
        step->buffer_bytes[i] = bytes;
        step->buffers[i] = buffer;
    }
    step->buffer_count = min_u32(i + 1, MAX_STEP_BUFFERS + 1);
}

void step_add_tensor(struct kernel_step *step,
                     const struct tandem_tensor_desc *tensor, bool written)
{
    uint64_t first, end;
    if (!tensor_extent(tensor, &first, &end))
        end = UINT64_MAX;
    step_add_buffer(step, tensor->buffer, end, written);
}

void step_add_temp(struct kernel_step *step, bool written)
{
    step_add_buffer(step, TEMP_BUFFER, 0, written);
}

void step_add_operands(struct kernel_step *step,
                       const struct op_request *request)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    step_add_tensor(step, output, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_add_tensor(
            step, request->inputs[i] != NULL ? request->inputs[i] : output,
            false);
}

void step_set_items(struct kernel_step *step, uint64_t items)
{
    step->groups = div_ceil(items, (uint64_t)1 << step->key.group_log2);
}

uint64_t plan_reserve_temp(struct launch_plan *plan, uint64_t bytes,
                           uint64_t alignment)
{
    uint64_t offset = div_ceil(plan->temp_bytes, alignment) * alignment;
    plan->temp_bytes = offset + bytes;
    return offset;
}

uint32_t misalignment_elements(const struct tandem_tensor_desc *tensor)
{
    return buffer_misalignment(tensor->buffer) /
           TANDEM_DTYPE_BYTES(tensor->dtype);
}

bool tensor_is_vec4_aligned(const struct tandem_tensor_desc *tensor)
{
    uint64_t offset = tensor->byte_offset + buffer_misalignment(tensor->buffer);
    return offset % (4u * TANDEM_DTYPE_BYTES(tensor->dtype)) == 0;
}

/* Returns true if the operand's strides are multiples of four along all axes
 * except `skipped_axis`. */
static bool strides_are_vec4(const struct iteration_space *space,
                             uint32_t operand, uint32_t skipped_axis)
{
    for (uint32_t axis = 0; axis < space->rank; axis++)
        if (axis != skipped_axis && space->strides[operand][axis] % 4 != 0)
            return false;
    return true;
}

bool rows_are_vec4_aligned(const struct iteration_space *outer,
                           uint32_t operand,
                           const struct tandem_tensor_desc *tensor)
{
    return tensor_is_vec4_aligned(tensor) &&
           strides_are_vec4(outer, operand, UINT32_MAX);
}

bool axis_is_vec4(const struct iteration_space *space, uint32_t operand,
                  uint32_t axis, const struct tandem_tensor_desc *tensor)
{
    return space->strides[operand][axis] == 1 &&
           tensor_is_vec4_aligned(tensor) &&
           strides_are_vec4(space, operand, axis);
}

uint8_t kernel_type_of(uint32_t dtype)
{
    return dtype == TANDEM_I32    ? TYPE_INT
           : dtype == TANDEM_I64  ? TYPE_LONG
           : dtype == TANDEM_U8   ? TYPE_UCHAR
           : dtype == TANDEM_BOOL ? TYPE_BOOL
           : dtype == TANDEM_F16  ? TYPE_F16
           : dtype == TANDEM_BF16 ? TYPE_BF16
                                  : TYPE_FLOAT;
}

uint8_t kernel_bits_type(uint32_t dtype)
{
    uint32_t bytes = TANDEM_DTYPE_BYTES(dtype);
    return bytes == 1   ? TYPE_UCHAR
           : bytes == 2 ? TYPE_USHORT
           : bytes == 4 ? TYPE_UINT
                        : TYPE_ULONG;
}

bool needs_64bit_offset(const struct iteration_space *space)
{
    for (uint32_t i = 0; i < space->operands; i++) {
        int64_t reach = 0;
        for (uint32_t axis = 0; axis < space->rank; axis++)
            reach += (int64_t)stride_magnitude(space->strides[i][axis]) *
                     (space->shape[axis] - 1);
        if (reach > MAX_32BIT_INDEX)
            return true;
    }
    return needs_64bit_index(space);
}

void space_to_vec4(struct iteration_space *space)
{
    uint32_t inner = space->rank - 1;
    space->shape[inner] /= 4;
    space->elements /= 4;
    for (uint32_t i = 0; i < space->operands; i++)
        space->strides[i][inner] *= 4;
}

void space_remove_axis(struct iteration_space *space, uint32_t axis)
{
    space->elements /= space->shape[axis];
    space->rank--;
    for (uint32_t i = axis; i < space->rank; i++) {
        space->shape[i] = space->shape[i + 1];
        for (uint32_t k = 0; k < space->operands; k++)
            space->strides[k][i] = space->strides[k][i + 1];
    }
}
