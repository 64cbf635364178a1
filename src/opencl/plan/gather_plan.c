/* SPDX-License-Identifier: Apache-2.0 */
/* Plans gathers: cl/gather.cl. */
#include "opencl/plan/kernel_step.h"
#include "gather.cl"

static const struct kernel_define gather_defines[] = {
    DEFINE_TYPE("BITS", 0), DEFINE_TYPE("INDEX", 1), END_OF_DEFINES};
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

static void plan_gather(struct launch_plan *plan,
                        const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *data = request->inputs[0];
    const struct tandem_tensor_desc *indices = request->inputs[1];
    struct iteration_space space;
    const struct kernel_key key = {.kernel = &kernel_gather,
                                   .group_log2 = request->group_log2,
                                   .types = {kernel_bits_type(target->dtype),
                                             kernel_type_of(indices->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct gather_params *out = (struct gather_params *)step->params;
    space_gather(&space, data, indices, target, request->op->ints[0],
                 &out->axis_stride, &out->axis_elements);
    step->key.index_64bit = needs_64bit_index(&space);
    step_add_operands(step, request);
    uint32_t inner = space.rank - 1;
    out->is_vec4 = space.shape[inner] % 4 == 0 &&
                   axis_is_vec4(&space, 0, inner, target) &&
                   axis_is_vec4(&space, 1, inner, data) &&
                   out->axis_stride % 4 == 0 && space.strides[2][inner] == 0;
    if (out->is_vec4)
        space_to_vec4(&space);
    out->items = (uint64_t)space.elements;
    out->target_offset = element_offset(target);
    out->data_offset = element_offset(data);
    out->index_offset = element_offset(indices);
    out->default_bits = default_bits(target->dtype);
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->target_strides, &space, 0);
    strides_fill(out->data_strides, &space, 1);
    strides_fill(out->index_strides, &space, 2);
    step_set_items(step, out->items);
}

const struct plan_class plan_class_gather = {.plan = plan_gather};
