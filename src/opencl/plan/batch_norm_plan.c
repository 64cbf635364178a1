/* SPDX-License-Identifier: Apache-2.0 */
/* Plans batch norm: cl/batch_norm.cl. */
#include "common/operator_table.h"
#include "common/tensor_extent.h"
#include "opencl/plan/kernel_step.h"
#include "batch_norm.cl"

static const struct kernel_define batch_norm_defines[] = {
    DEFINE_FIELD("VECTOR", vec4), DEFINE_FIELD("VECTOR_OF_CHANNELS", op_form),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(batch_norm);
static const struct kernel_info kernel_batch_norm = {
    KERNEL_SOURCE(batch_norm), .function = "batch_norm",
    .defines = batch_norm_defines,
    .param_bytes = sizeof(struct batch_norm_params)};

/* Returns true if aligned vec4 can access all operands.  The elements of a vec4
 * are in one channel or in four consecutive channels. */
static bool operands_are_vec4(const struct iteration_space *space,
                              const struct op_request *request)
{
    uint32_t inner = space->rank - 1;
    if (space->shape[inner] % 4 != 0 ||
        !axis_is_vec4(space, 0, inner, request->outputs[0]) ||
        !axis_is_vec4(space, 1, inner, request->inputs[0]))
        return false;
    for (uint32_t i = 1;
         i < request->input_count && space->strides[2][inner] != 0; i++)
        if (!tensor_contiguous(request->inputs[i]) ||
            !tensor_is_vec4_aligned(request->inputs[i]))
            return false;
    return true;
}

void plan_batch_norm(struct launch_plan *plan, const struct op_request *request)
{
    struct iteration_space space;
    space_batch_norm(&space, request->inputs[0], request->outputs[0]);
    bool vec4 = operands_are_vec4(&space, request);
    struct kernel_key key = {.kernel = &kernel_batch_norm,
                             .group_log2 = request->group_log2,
                             .vec4 = vec4,
                             .op_form =
                                 vec4 && space.strides[2][space.rank - 1] != 0,
                             .index_64bit = needs_64bit_index(&space)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct batch_norm_params *out = (struct batch_norm_params *)step->params;
    if (vec4)
        space_to_vec4(&space);
    out->items = (uint64_t)space.elements;
    out->epsilon = epsilon_f32(request->op->floats[0]);
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->out_strides, &space, 0);
    strides_fill(out->in_strides, &space, 1);
    strides_fill(out->channel_steps, &space, 2);
    out->out_offset = element_offset(request->outputs[0]);
    out->in_offset = element_offset(request->inputs[0]);
    for (uint32_t i = 0; i < 4; i++) {
        out->offset[i] = element_offset(request->inputs[i + 1]);
        out->channel_stride[i] = request->inputs[i + 1]->strides[0];
    }
    step_add_operands(step, request,
                      (const uint32_t[]){AT(batch_norm_params, out_offset),
                                         AT(batch_norm_params, in_offset),
                                         AT(batch_norm_params, offset[0]),
                                         AT(batch_norm_params, offset[1]),
                                         AT(batch_norm_params, offset[2]),
                                         AT(batch_norm_params, offset[3])});
    step_set_items(step, vec4 ? out->items : div_ceil(out->items, 4));
}
