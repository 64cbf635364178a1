/* SPDX-License-Identifier: Apache-2.0 */
/* Plans gathers: cl/gather.cl. */
#include "opencl/plan/kernel_step.h"
#include "gather.cl"

static const struct kernel_define gather_defines[] = {
    DEFINE_TYPE("BITS", 0), DEFINE_TYPE("INDEX", 1),
    DEFINE_FIELD("COMPONENTS", op_form), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(gather);
static const struct kernel_info kernel_gather = {
    KERNEL_SOURCE(gather), .function = "gather", .defines = gather_defines,
    .param_bytes = sizeof(struct gather_params)};

/* Returns the bits of the result for an index that is out of range: a quiet NaN
 * for floats, 0 for integers. */
static uint64_t default_bits(uint32_t dtype)
{
    return dtype == TANDEM_F16    ? 0x7e00u
           : dtype == TANDEM_BF16 ? 0x7fc0u
           : dtype == TANDEM_F32  ? 0x7fc00000u
           : dtype == TANDEM_F64  ? 0x7ff8000000000000u
                                  : 0;
}

/* Returns true if all strides are multiples of four. */
static bool axes_are_vec4(const struct indexed_axes *axes)
{
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->strides[i] % 4 != 0)
            return false;
    return true;
}

static void plan_gather(struct launch_plan *plan,
                        const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *data = request->inputs[0];
    const struct tandem_tensor_desc *indices = request->inputs[1];
    struct iteration_space space;
    struct indexed_axes axes;
    space_gather(&space, &axes, request->op, data, indices, target);
    const struct kernel_key key = {.kernel = &kernel_gather,
                                   .op_form = (uint8_t)axes.count,
                                   .index_64bit = needs_64bit_index(&space),
                                   .group_log2 = request->group_log2,
                                   .types = {kernel_bits_type(target->dtype),
                                             kernel_type_of(indices->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct gather_params *out = (struct gather_params *)step->params;
    step_add_operands(step, request,
                      (const uint32_t[]){AT(gather_params, target_offset),
                                         AT(gather_params, data_offset),
                                         AT(gather_params, index_offset)});
    uint32_t inner = space.rank - 1;
    out->is_vec4 = space.shape[inner] % 4 == 0 &&
                   axis_is_vec4(&space, 0, inner, target) &&
                   axis_is_vec4(&space, 1, inner, data) &&
                   axes_are_vec4(&axes) && space.strides[2][inner] == 0;
    if (out->is_vec4)
        space_to_vec4(&space);
    out->items = (uint64_t)space.elements;
    out->target_offset = element_offset(target);
    out->data_offset = element_offset(data);
    out->index_offset = element_offset(indices);
    out->component_stride = axes.component_stride;
    for (uint32_t i = 0; i < axes.count; i++) {
        out->axis_strides[i] = axes.strides[i];
        out->axis_extents[i] = axes.extents[i];
    }
    out->default_bits = default_bits(target->dtype);
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->target_strides, &space, 0);
    strides_fill(out->data_strides, &space, 1);
    strides_fill(out->index_strides, &space, 2);
    step_set_items(step, out->items);
}

const struct plan_class plan_class_gather = {.plan = plan_gather};
