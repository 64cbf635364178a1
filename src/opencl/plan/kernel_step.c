/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a struct kernel_step: its buffers, sizes, element types and axes. */
#include "opencl/plan/kernel_step.h"

#include <string.h>

#include "opencl/objects.h"

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

struct kernel_step *plan_add_step(struct launch_plan *plan, uint64_t key,
                                  const void *params, uint32_t param_bytes)
{
    struct kernel_step *step = &plan->step[plan->step_count++];
    step->key = key;
    step->groups = 0;
    step->buffer_count = 0;
    step->written = 0;
    step->arrival_counters = 0;
    step->param_bytes = param_bytes;
    if (params != NULL)
        memcpy(step->params, params, param_bytes);
    else
        memset(step->params, 0, param_bytes);
    return step;
}

void step_add_buffer(struct kernel_step *step, struct tandem_buffer *buffer,
                     bool written)
{
    step->written |= (uint32_t)written << step->buffer_count;
    step->buffers[step->buffer_count++] = buffer;
}

void step_add_operands(struct kernel_step *step,
                       const struct op_request *request)
{
    struct tandem_buffer *output = request->outputs[0]->buffer;
    step_add_buffer(step, output, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_add_buffer(step,
                        request->inputs[i] != NULL ? request->inputs[i]->buffer
                                                   : output,
                        false);
}

void step_set_items(struct kernel_step *step, uint64_t items)
{
    step->groups = div_ceil(items, (uint64_t)1 << KEY_GROUP_LOG2(step->key));
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

uint32_t kernel_type_of(uint32_t dtype)
{
    return dtype == TANDEM_I32    ? TYPE_INT
           : dtype == TANDEM_I64  ? TYPE_LONG
           : dtype == TANDEM_U8   ? TYPE_UCHAR
           : dtype == TANDEM_BOOL ? TYPE_BOOL
           : dtype == TANDEM_F16  ? TYPE_F16
           : dtype == TANDEM_BF16 ? TYPE_BF16
                                  : TYPE_FLOAT;
}

uint32_t kernel_bits_type(uint32_t dtype)
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
