/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the operators whose outputs depend on positions: cl/generate.cl. */
#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"
#include "generate.cl"

static uint32_t output_is_float(const struct define_input *in)
{
    return in->key->types[0] == TYPE_FLOAT;
}

static const struct kernel_define one_hot_defines[] = {
    DEFINE_TYPE("BITS", 0), DEFINE_TYPE("INDEX", 1), END_OF_DEFINES};
static const struct kernel_define range_defines[] = {
    DEFINE_TYPE("OUT", 0), DEFINE_NUMBER("IS_FLOAT", output_is_float, 0),
    END_OF_DEFINES};
static const struct kernel_define trilu_defines[] = {DEFINE_TYPE("BITS", 0),
                                                     END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(generate);
static const struct kernel_info kernel_one_hot = {
    KERNEL_SOURCE(generate), .function = "one_hot", .defines = one_hot_defines,
    .param_bytes = sizeof(struct one_hot_params)};
static const struct kernel_info kernel_range = {
    KERNEL_SOURCE(generate), .function = "range", .defines = range_defines,
    .param_bytes = sizeof(struct range_params)};
static const struct kernel_info kernel_trilu = {
    KERNEL_SOURCE(generate), .function = "trilu", .defines = trilu_defines,
    .param_bytes = sizeof(struct trilu_params)};

static void plan_one_hot(struct launch_plan *plan,
                         const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *indices = request->inputs[0];
    const struct tandem_tensor_desc *values = request->inputs[1];
    struct tandem_tensor_desc repeated;
    struct iteration_space space;
    int64_t positions[TANDEM_MAX_RANK] = {0};
    int64_t axis = request->op->ints[0];
    axis += axis < 0 ? target->rank : 0;
    positions[axis] = 1;
    tensor_insert_axis(&repeated, indices, (uint32_t)axis, target->shape[axis]);
    space_with_positions(&space, target, &repeated, positions);
    const struct kernel_key key = {.kernel = &kernel_one_hot,
                                   .group_log2 = request->group_log2,
                                   .index_64bit = needs_64bit_index(&space),
                                   .types = {kernel_bits_type(target->dtype),
                                             kernel_type_of(indices->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct one_hot_params *out = (struct one_hot_params *)step->params;
    step_add_operands(step, request,
                      (const uint32_t[]){AT(one_hot_params, target_offset),
                                         AT(one_hot_params, index_offset),
                                         AT(one_hot_params, off_offset)});
    step_patch_offset(step, values, AT(one_hot_params, on_offset));
    out->items = (uint64_t)space.elements;
    out->target_offset = element_offset(target);
    out->index_offset = element_offset(indices);
    out->off_offset = element_offset(values);
    out->on_offset = out->off_offset + (uint64_t)values->strides[0];
    out->depth = (uint64_t)target->shape[axis];
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->target_strides, &space, 0);
    strides_fill(out->index_strides, &space, 1);
    strides_fill(out->position_strides, &space, 2);
    step_set_items(step, out->items);
}

static void plan_range(struct launch_plan *plan,
                       const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct kernel_key key = {.kernel = &kernel_range,
                                   .group_log2 = request->group_log2,
                                   .index_64bit =
                                       target->shape[0] > MAX_32BIT_INDEX,
                                   .types = {kernel_type_of(target->dtype)}};
    const struct range_params params = {
        .items = (uint64_t)target->shape[0],
        .target_offset = element_offset(target),
        .target_stride = target->strides[0],
        .start = request->op->ints[0],
        .delta = request->op->ints[1],
        .float_start = attribute_f32(request->op->floats[0]),
        .float_delta = attribute_f32(request->op->floats[1])};
    struct kernel_step *step = plan_add_step(plan, &key, &params);
    step_add_operands(step, request,
                      (const uint32_t[]){AT(range_params, target_offset)});
    step_set_items(step, params.items);
}

static void plan_trilu(struct launch_plan *plan,
                       const struct op_request *request)
{
    const struct tandem_tensor_desc *target = request->outputs[0];
    const struct tandem_tensor_desc *source = request->inputs[0];
    struct iteration_space space;
    int64_t positions[TANDEM_MAX_RANK] = {0};
    positions[target->rank - 1] = 1;
    positions[target->rank - 2] = -1;
    space_with_positions(&space, target, source, positions);
    const struct kernel_key key = {.kernel = &kernel_trilu,
                                   .group_log2 = request->group_log2,
                                   .index_64bit = needs_64bit_index(&space),
                                   .types = {kernel_bits_type(target->dtype)}};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct trilu_params *out = (struct trilu_params *)step->params;
    step_add_operands(step, request,
                      (const uint32_t[]){AT(trilu_params, target_offset),
                                         AT(trilu_params, source_offset)});
    out->items = (uint64_t)space.elements;
    out->target_offset = element_offset(target);
    out->source_offset = element_offset(source);
    out->upper = request->op->ints[0] != 0;
    out->diagonal = request->op->ints[1];
    out->rank = fast_divmod_fill(&out->space, &space);
    strides_fill(out->target_strides, &space, 0);
    strides_fill(out->source_strides, &space, 1);
    strides_fill(out->position_strides, &space, 2);
    step_set_items(step, out->items);
}

const struct plan_class plan_class_one_hot = {.plan = plan_one_hot};
const struct plan_class plan_class_range = {.plan = plan_range};
const struct plan_class plan_class_trilu = {.plan = plan_trilu};
