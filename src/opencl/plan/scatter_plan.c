/* SPDX-License-Identifier: Apache-2.0 */
/* Plans scatters: cl/scatter.cl.  The first step copies the data to the output,
 * unless the output is the data. */
#include "common/tensor_overlap.h"
#include "opencl/plan/kernel_step.h"
#include "scatter.cl"

static const struct kernel_define clear_defines[] = {END_OF_DEFINES};
static const struct kernel_define index_defines[] = {
    DEFINE_TYPE("INDEX", 1), DEFINE_FIELD("COMPONENTS", op_form),
    END_OF_DEFINES};
static const struct kernel_define write_defines[] = {
    DEFINE_TYPE("BITS", 0), DEFINE_TYPE("INDEX", 1),
    DEFINE_FIELD("COMPONENTS", op_form), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(scatter);
static const struct kernel_info kernel_scatter_clear = {
    KERNEL_SOURCE(scatter), .function = "scatter_clear",
    .defines = clear_defines,
    .param_bytes = sizeof(struct scatter_clear_params)};
static const struct kernel_info kernel_scatter_select = {
    KERNEL_SOURCE(scatter), .function = "scatter_select",
    .defines = index_defines, .param_bytes = sizeof(struct scatter_params)};
static const struct kernel_info kernel_scatter_write = {
    KERNEL_SOURCE(scatter), .function = "scatter_write",
    .defines = write_defines, .param_bytes = sizeof(struct scatter_params)};
static const struct kernel_info kernel_scatter_reduce = {
    KERNEL_SOURCE(scatter), .function = "scatter_reduce",
    .defines = index_defines,
    .param_bytes = sizeof(struct scatter_reduce_params)};

/* Plans the copy of the data to the output. */
static void plan_data_copy(struct launch_plan *plan,
                           const struct op_request *request)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_COPY};
    struct op_request copy = *request;
    copy.op = &op;
    copy.input_count = 1;
    plan_class_copy.plan(plan, &copy);
}

static void params_fill(struct scatter_params *out,
                        const struct iteration_space *space,
                        const struct scatter_spaces *spaces,
                        const struct op_request *request)
{
    out->items = (uint64_t)space->elements;
    out->target_offset = element_offset(request->outputs[0]);
    out->index_offset = element_offset(request->inputs[1]);
    out->update_offset = element_offset(request->inputs[2]);
    out->component_stride = spaces->axes.component_stride;
    for (uint32_t i = 0; i < spaces->axes.count; i++) {
        out->axis_strides[i] = spaces->axes.strides[i];
        out->axis_slot_strides[i] = spaces->slot_strides[i];
        out->axis_extents[i] = spaces->axes.extents[i];
    }
    out->rank = fast_divmod_fill(&out->space, space);
    strides_fill(out->target_strides, space, 0);
    strides_fill(out->update_strides, space, 1);
    strides_fill(out->index_strides, space, 2);
    strides_fill(out->slot_strides, space, 3);
    strides_fill(out->number_strides, space, 4);
}

static void plan_clear(struct launch_plan *plan, uint64_t slots,
                       const struct op_request *request)
{
    const struct scatter_clear_params params = {.items = slots};
    const struct kernel_key key = {.kernel = &kernel_scatter_clear,
                                   .group_log2 = request->group_log2,
                                   .index_64bit = slots > MAX_32BIT_INDEX};
    struct kernel_step *step = plan_add_step(plan, &key, &params);
    plan->temp_bytes = slots * sizeof(uint32_t);
    step_add_temp(step, true);
    step_set_items(step, slots);
}

/* Plans the choice of the update that wins each slot. scatter_nd needs one
 * element of each slice. */
static void plan_select(struct launch_plan *plan, struct kernel_key key,
                        const struct op_request *request)
{
    struct tandem_tensor_desc output = *request->outputs[0];
    struct tandem_tensor_desc updates = *request->inputs[2];
    const struct tandem_tensor_desc *indices = request->inputs[1];
    struct scatter_spaces spaces;
    if (request->op->id == TANDEM_OP_SCATTER_ND) {
        updates.rank = indices->rank - 1;
        output.rank = (uint32_t)indices->shape[indices->rank - 1];
    }
    space_scatter(&spaces, request->op, &output, indices, &updates);
    key.kernel = &kernel_scatter_select;
    key.index_64bit = needs_64bit_index(&spaces.all);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    params_fill((struct scatter_params *)step->params, &spaces.all, &spaces,
                request);
    step_add_temp(step, true);
    step_add_tensor(step, indices, false, AT(scatter_params, index_offset));
    step_set_items(step, (uint64_t)spaces.all.elements);
}

/* Returns true if four neighbouring updates have the same index, and aligned
 * vec4 can access them and their elements. */
static bool updates_are_vec4(const struct scatter_spaces *spaces,
                             const struct op_request *request)
{
    const struct iteration_space *all = &spaces->all;
    uint32_t inner = all->rank - 1;
    for (uint32_t i = 0; i < spaces->axes.count; i++)
        if (spaces->axes.strides[i] % 4 != 0)
            return false;
    return all->shape[inner] % 4 == 0 &&
           axis_is_vec4(all, 0, inner, request->outputs[0]) &&
           axis_is_vec4(all, 1, inner, request->inputs[2]) &&
           all->strides[2][inner] == 0 && all->strides[3][inner] == 0 &&
           all->strides[4][inner] == 0;
}

static void plan_write(struct launch_plan *plan, struct kernel_key key,
                       struct scatter_spaces *spaces,
                       const struct op_request *request)
{
    bool is_vec4 = updates_are_vec4(spaces, request);
    key.kernel = &kernel_scatter_write;
    key.types[0] = kernel_bits_type(request->outputs[0]->dtype);
    key.index_64bit = needs_64bit_index(&spaces->all);
    if (is_vec4)
        space_to_vec4(&spaces->all);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct scatter_params *out = (struct scatter_params *)step->params;
    params_fill(out, &spaces->all, spaces, request);
    out->is_vec4 = is_vec4;
    step_add_tensor(step, request->outputs[0], true,
                    AT(scatter_params, target_offset));
    step_add_tensor(step, request->inputs[2], false,
                    AT(scatter_params, update_offset));
    step_add_tensor(step, request->inputs[1], false,
                    AT(scatter_params, index_offset));
    step_add_temp(step, false);
    step_set_items(step, out->items);
}

static void plan_reduce_updates(struct launch_plan *plan, struct kernel_key key,
                                const struct scatter_spaces *spaces,
                                const struct op_request *request,
                                int64_t reduction)
{
    key.kernel = &kernel_scatter_reduce;
    key.index_64bit = needs_64bit_index(&spaces->reached) ||
                      needs_64bit_index(&spaces->numbered);
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct scatter_reduce_params *out =
        (struct scatter_reduce_params *)step->params;
    out->items = (uint64_t)spaces->reached.elements;
    out->numbers = (uint64_t)spaces->numbered.elements;
    out->target_offset = element_offset(request->outputs[0]);
    out->index_offset = element_offset(request->inputs[1]);
    out->update_offset = element_offset(request->inputs[2]);
    out->component_stride = spaces->axes.component_stride;
    out->reduction = reduction;
    for (uint32_t i = 0; i < spaces->axes.count; i++) {
        out->axis_slot_strides[i] = spaces->slot_strides[i];
        out->axis_extents[i] = spaces->axes.extents[i];
    }
    out->rank = fast_divmod_fill(&out->space, &spaces->reached);
    strides_fill(out->target_strides, &spaces->reached, 0);
    strides_fill(out->update_strides, &spaces->reached, 1);
    strides_fill(out->index_strides, &spaces->reached, 2);
    strides_fill(out->slot_strides, &spaces->reached, 3);
    out->numbered_rank = fast_divmod_fill(&out->numbered, &spaces->numbered);
    strides_fill(out->numbered_update_strides, &spaces->numbered, 0);
    strides_fill(out->numbered_index_strides, &spaces->numbered, 1);
    step_add_tensor(step, request->outputs[0], true,
                    AT(scatter_reduce_params, target_offset));
    step_add_tensor(step, request->inputs[2], false,
                    AT(scatter_reduce_params, update_offset));
    step_add_tensor(step, request->inputs[1], false,
                    AT(scatter_reduce_params, index_offset));
    step_set_items(step, out->items);
}

static void plan_scatter(struct launch_plan *plan,
                         const struct op_request *request)
{
    const struct tandem_tensor_desc *output = request->outputs[0];
    const struct tandem_op *op = request->op;
    struct scatter_spaces spaces;
    int64_t reduction = op->ints[op->id == TANDEM_OP_SCATTER_ND ? 0 : 1];
    if (!tensors_same(request->inputs[0], output))
        plan_data_copy(plan, request);
    space_scatter(&spaces, op, output, request->inputs[1], request->inputs[2]);
    if (spaces.all.elements == 0)
        return;
    const struct kernel_key key = {
        .op_form = (uint8_t)spaces.axes.count,
        .group_log2 = request->group_log2,
        .types = {[1] = kernel_type_of(request->inputs[1]->dtype)}};
    if (reduction != 0) {
        plan_reduce_updates(plan, key, &spaces, request, reduction);
        return;
    }
    plan_clear(plan, (uint64_t)spaces.slots, request);
    plan_select(plan, key, request);
    plan_write(plan, key, &spaces, request);
}

const struct plan_class plan_class_scatter = {.plan = plan_scatter};
