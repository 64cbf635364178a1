/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gather.cl. */
#include "common/argument_check.h"
#include "opencl/plan/kernel_step.h"

/* As in cl/gather.cl. */
struct gather {
    uint64_t items;
    uint32_t rank, vector;
    uint64_t target_offset, data_offset, index_offset;
    int64_t axis_stride, axis_elements;
    uint64_t outside;
    struct fast_divmod space;
    int64_t target_strides[TANDEM_MAX_RANK];
    int64_t data_strides[TANDEM_MAX_RANK];
    int64_t index_strides[TANDEM_MAX_RANK];
};

/* Whether operand walks the innermost axis by ones in aligned fours. */
static bool operand_vector(const struct layout *layout, uint32_t operand,
                           const struct tandem_tensor_desc *tensor)
{
    uint32_t inner = layout->rank - 1;
    if (layout->shape[inner] % 4 != 0 || !tensor_is_vec4_aligned(tensor) ||
        layout->strides[operand][inner] != 1)
        return false;
    for (uint32_t axis = 0; axis < inner; axis++)
        if (layout->strides[operand][axis] % 4 != 0)
            return false;
    return true;
}

/* The bits of a quiet NaN, or 0 for what has none. */
static uint64_t outside_bits(uint32_t dtype)
{
    switch (dtype) {
    case TANDEM_F16:
        return 0x7e00u;
    case TANDEM_BF16:
        return 0x7fc0u;
    case TANDEM_F32:
        return 0x7fc00000u;
    case TANDEM_F64:
        return 0x7ff8000000000000u;
    default:
        return 0;
    }
}

enum tandem_status plan_gather(struct launch_plan *plan,
                               const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *data = request->inputs[0];
    const struct tandem_tensor_desc *indices = request->inputs[1];
    struct layout layout;
    int64_t axis_stride, axis_elements;
    layout_gather(&layout, data, indices, target, request->op->ints[0],
                  &axis_stride, &axis_elements);
    uint64_t key =
        variant_key_kernel(KERNEL_GATHER, 0, needs_64bit_index(&layout),
                           request->group_log2) |
        variant_key_type(0, kernel_bits_type(target->dtype)) |
        variant_key_type(1, kernel_type_of(indices->dtype));
    struct kernel_step *step = plan_add_step(plan, key, sizeof(struct gather));
    struct gather *gather = (struct gather *)step->params;
    step_add_buffer(step, target->buffer, true);
    step_add_buffer(step, data->buffer, false);
    step_add_buffer(step, indices->buffer, false);
    gather->vector = operand_vector(&layout, 0, target) &&
                     operand_vector(&layout, 1, data) && axis_stride % 4 == 0 &&
                     layout.strides[2][layout.rank - 1] == 0;
    if (gather->vector)
        layout_to_vec4(&layout);
    gather->items = (uint64_t)layout.elements;
    gather->rank = layout.rank;
    gather->target_offset = element_offset(target);
    gather->data_offset = element_offset(data);
    gather->index_offset = element_offset(indices);
    gather->axis_stride = axis_stride;
    gather->axis_elements = axis_elements;
    gather->outside = outside_bits(target->dtype);
    fast_divmod_fill(&gather->space, &layout);
    strides_fill(gather->target_strides, &layout, 0);
    strides_fill(gather->data_strides, &layout, 1);
    strides_fill(gather->index_strides, &layout, 2);
    step_set_items(step, gather->items);
    return TANDEM_OK;
}
