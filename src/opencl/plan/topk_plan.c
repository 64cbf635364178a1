/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the operator topk: cl/topk.cl. */
#include "common/topk_key.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_step.h"
#include "topk.cl"

/* Log2 of the most keys that a work-group keeps. Keys and their buffer take 16
 * KiB of local memory, of which Mesa's rusticl reserves twice as much. */
#define MAX_KEYS_LOG2 10u
#define MAX_KEYS_LOG2_32K 9u
#define MIN_GROUP_LOG2 5u
/* Work-groups per compute unit that keep a GPU busy, and the minimum number of
 * elements of a split. */
#define GROUPS_PER_UNIT 4u
#define MIN_SPLIT_ELEMENTS 8192u

static const struct kernel_define final_defines[] = {
    DEFINE_FIELD("KEYS_LOG2", op_form), END_OF_DEFINES};
static const struct kernel_define list_defines[] = {
    DEFINE_FIELD("KEYS_LOG2", op_form), DEFINE_CONSTANT("IS_FINAL", 0),
    END_OF_DEFINES};
static const struct kernel_define merge_defines[] = {END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(topk);
static const struct kernel_info kernel_select = {
    KERNEL_SOURCE(topk), .function = "topk_select", .defines = final_defines,
    .param_bytes = sizeof(struct topk_params)};
static const struct kernel_info kernel_select_lists = {
    KERNEL_SOURCE(topk), .function = "topk_select", .defines = list_defines,
    .param_bytes = sizeof(struct topk_params)};
static const struct kernel_info kernel_merge = {
    KERNEL_SOURCE(topk), .function = "topk_merge", .defines = merge_defines,
    .param_bytes = sizeof(struct topk_params)};

/* Divides the rows among work-groups. If k is larger than the keys of a
 * work-group, a split has as many elements as a work-group keeps keys, so that
 * its list has all of them. */
static void rows_divide(struct topk_params *out,
                        const struct tandem_device_info *info)
{
    const bool is_small = info->local_memory_bytes <= 32768;
    const uint64_t max_keys = (uint64_t)1
                              << (is_small ? MAX_KEYS_LOG2_32K : MAX_KEYS_LOG2);
    uint64_t groups = (uint64_t)info->compute_units * GROUPS_PER_UNIT;
    out->list_length = out->k;
    out->elements_per_split = out->count;
    if (out->k > max_keys) {
        out->list_length = max_keys;
        out->elements_per_split = max_keys;
    } else if (out->rows < groups) {
        uint64_t splits = div_ceil(groups, out->rows);
        uint64_t elements = div_ceil(out->count, splits);
        uint64_t least =
            4 * out->k > MIN_SPLIT_ELEMENTS ? 4 * out->k : MIN_SPLIT_ELEMENTS;
        out->elements_per_split = elements > least ? elements : least;
    }
    out->splits = div_ceil(out->count, out->elements_per_split);
}

static void params_fill(struct topk_params *out,
                        const struct iteration_space *rows,
                        const struct op_request *request, uint32_t axis)
{
    const struct tandem_tensor_desc *in = request->inputs[0];
    const struct tandem_tensor_desc *values = request->outputs[0];
    const struct tandem_tensor_desc *indices = request->outputs[1];
    out->rows = (uint64_t)rows->elements;
    out->count = (uint64_t)in->shape[axis];
    out->k = (uint64_t)values->shape[axis];
    out->value_offset = element_offset(values);
    out->index_offset = element_offset(indices);
    out->in_offset = element_offset(in);
    out->value_stride = values->strides[axis];
    out->index_stride = indices->strides[axis];
    out->in_stride = in->strides[axis];
    out->largest = request->op->ints[TOPK_LARGEST] != 0;
    out->rank = fast_divmod_fill(&out->space, rows);
    strides_fill(out->value_strides, rows, 0);
    strides_fill(out->index_strides, rows, 1);
    strides_fill(out->in_strides, rows, 2);
    rows_divide(out, &request->hardware->info);
}

static void plan_merge(struct launch_plan *plan,
                       const struct op_request *request,
                       const struct topk_params *params, struct kernel_key key)
{
    uint64_t keys = params->rows * params->splits * params->list_length;
    plan->temp_bytes = keys * sizeof(uint64_t);
    key.kernel = &kernel_merge;
    key.group_log2 = request->group_log2;
    key.op_form = 0;
    struct kernel_step *step = plan_add_step(plan, &key, params);
    step_add_tensor(step, request->outputs[0], true,
                    AT(topk_params, value_offset));
    step_add_tensor(step, request->outputs[1], true,
                    AT(topk_params, index_offset));
    step_add_temp(step, false);
    step_add_tensor(step, request->inputs[0], false,
                    AT(topk_params, in_offset));
    step_set_items(step, keys);
}

static void plan_topk(struct launch_plan *plan,
                      const struct op_request *request)
{
    const struct tandem_tensor_desc *in = request->inputs[0];
    uint32_t axis = topk_axis(request->op, in->rank);
    struct iteration_space rows;
    struct topk_params params = {0};
    space_topk(&rows, in, request->outputs[0], request->outputs[1], axis);
    params_fill(&params, &rows, request, axis);
    bool is_final = params.splits == 1;
    /* Short rows need few work-items. */
    uint32_t items_log2 =
        max_u32(log2_ceil(div_ceil(params.elements_per_split, ITEM_ELEMENTS)),
                MIN_GROUP_LOG2);
    struct kernel_key key = {
        .kernel = is_final ? &kernel_select : &kernel_select_lists,
        .group_log2 = (uint8_t)min_u32(items_log2, request->group_log2),
        .index_64bit = params.rows * params.splits > MAX_32BIT_INDEX};
    key.op_form =
        (uint8_t)max_u32(log2_ceil(params.list_length), key.group_log2);
    struct kernel_step *step = plan_add_step(plan, &key, &params);
    step->groups = params.rows * params.splits;
    if (is_final) {
        step_add_tensor(step, request->outputs[0], true,
                        AT(topk_params, value_offset));
        step_add_tensor(step, request->outputs[1], true,
                        AT(topk_params, index_offset));
    } else {
        step_add_temp(step, true);
    }
    step_add_tensor(step, in, false, AT(topk_params, in_offset));
    if (!is_final)
        plan_merge(plan, request, &params, key);
}

const struct plan_class plan_class_topk = {.plan = plan_topk};
