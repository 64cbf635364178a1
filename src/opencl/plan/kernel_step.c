/* SPDX-License-Identifier: Apache-2.0 */
/* Fills a struct kernel_step: its buffers, sizes, element types and axes. */
#include "opencl/plan/kernel_step.h"

#include <string.h>

#include "common/tensor_extent.h"

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
    step->patch_count = 0;
    step->param_bytes = key->kernel != NULL ? key->kernel->param_bytes : 0;
    if (params != NULL)
        memcpy(step->params, params, step->param_bytes);
    else
        memset(step->params, 0, step->param_bytes);
    return step;
}

void step_add_slot(struct kernel_step *step, uint32_t slot, uint64_t before,
                   uint64_t after, bool written)
{
    uint32_t i = step->buffer_count;
    if (i < MAX_STEP_BUFFERS) {
        step->written |= (uint32_t)written << i;
        step->bytes_before[i] = before;
        step->bytes_after[i] = after;
        step->slots[i] = (uint8_t)slot;
    }
    step->buffer_count = min_u32(i + 1, MAX_STEP_BUFFERS + 1);
}

void step_add_tensor(struct kernel_step *step,
                     const struct tandem_tensor_desc *tensor, bool written,
                     uint32_t at)
{
    /* Negative strides reach before the start, and a buffer begins at 0. */
    const uint64_t start = UINT64_MAX / 4;
    struct tandem_tensor_desc moved = *tensor;
    uint64_t first, end, before = 0, after = UINT64_MAX;
    moved.byte_offset += start;
    if (tensor_extent(&moved, &first, &end)) {
        before = first < start ? start - first : 0;
        after = end > start ? end - start : 0;
    }
    step_add_slot(step, buffer_slot(tensor->buffer), before, after, written);
    if (at != NO_OFFSET)
        step_patch_offset(step, tensor, at);
}

void step_add_temp(struct kernel_step *step, bool written)
{
    step_add_slot(step, SLOT_TEMP, 0, 0, written);
}

void step_add_operands(struct kernel_step *step,
                       const struct op_request *request, const uint32_t *at)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    step_add_tensor(step, output, true, at[0]);
    for (uint32_t i = 0; i < request->input_count; i++) {
        const struct tandem_tensor_desc *input = request->inputs[i];
        step_add_tensor(step, input != NULL ? input : output, false,
                        input != NULL ? at[i + 1] : NO_OFFSET);
    }
}

void step_add_patch(struct kernel_step *step, enum patch_kind kind,
                    const struct tandem_tensor_desc *tensor, uint32_t at,
                    uint32_t modulus, uint32_t shift)
{
    if (step->patch_count < MAX_STEP_PATCHES)
        step->patches[step->patch_count] = (struct patch){
            .kind = (uint8_t)kind,
            .slot = (uint8_t)buffer_slot(tensor->buffer),
            .element_bytes = (uint8_t)TANDEM_DTYPE_BYTES(tensor->dtype),
            .shift = (uint8_t)shift,
            .at = (uint16_t)at,
            .modulus = (uint16_t)modulus};
    step->patch_count = min_u32(step->patch_count + 1, MAX_STEP_PATCHES + 1);
}

void step_patch_offset(struct kernel_step *step,
                       const struct tandem_tensor_desc *tensor, uint32_t at)
{
    step_add_patch(step, PATCH_OFFSET, tensor, at, 0, 0);
}

void step_params_patch(unsigned char *out, const struct kernel_step *step,
                       const struct slot_address *addresses)
{
    memcpy(out, step->params, step->param_bytes);
    for (uint32_t i = 0; i < step->patch_count; i++) {
        const struct patch *patch = &step->patches[i];
        const struct slot_address *address = &addresses[patch->slot];
        uint64_t offset, bytes = address->misalignment;
        uint32_t bits;
        if (patch->kind == PATCH_OFFSET) {
            memcpy(&offset, out + patch->at, sizeof(offset));
            offset += address->byte_offset / patch->element_bytes;
            memcpy(out + patch->at, &offset, sizeof(offset));
            continue;
        }
        if (patch->kind == PATCH_MISALIGNMENT)
            bytes += address->byte_offset;
        memcpy(&bits, out + patch->at, sizeof(bits));
        bits |= (uint32_t)(bytes / patch->element_bytes % patch->modulus)
                << patch->shift;
        memcpy(out + patch->at, &bits, sizeof(bits));
    }
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

bool tensor_is_vec4_aligned(const struct tandem_tensor_desc *tensor)
{
    uint64_t offset = tensor->byte_offset | slot_alignment(tensor->buffer);
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
