/* SPDX-License-Identifier: Apache-2.0 */
/* Plans attention: cl/attention.cl. */
#include "common/op_attention.h"
#include "opencl/plan/kernel_step.h"
#include "attention.cl"

/* Constants of cl/attention.cl: queries of a work-group, columns of a chunk,
 * and log2 of the work-group size. */
#define CHUNK 32u
#define ITEMS_PER_QUERY_LOG2 3u
#define MAX_GROUP_LOG2 7u
/* A work-group keeps up to 8 * 32 columns in registers. */
#define MAX_VALUE_CHUNKS 8u

static const struct kernel_define attention_defines[] = {
    DEFINE_FIELD("MASK", op_form), DEFINE_FIELD("VALUE_CHUNKS", item_vec4),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(attention);
static const struct kernel_info kernel_attention = {
    KERNEL_SOURCE(attention), .function = "attention",
    .defines = attention_defines,
    .param_bytes = sizeof(struct attention_params)};

/* Copies the strides in the order columns, rows, heads, batch. */
static void strides_copy(int64_t *out, const struct attention_strides *strides)
{
    out[0] = strides->column;
    out[1] = strides->row;
    out[2] = strides->head;
    out[3] = strides->batch;
}

static void plan_attention(struct launch_plan *plan,
                           const struct op_request *request)
{
    struct attention attention;
    attention_read(&attention, request->op, request->inputs,
                   request->input_count, request->outputs[0]);
    const struct tandem_tensor_desc *mask = attention.mask_tensor;
    uint32_t chunks =
        (uint32_t)div_ceil((uint64_t)attention.value_width, CHUNK);
    uint32_t group_log2 = min_u32(request->group_log2, MAX_GROUP_LOG2);
    uint32_t queries = 1u << (group_log2 > ITEMS_PER_QUERY_LOG2
                                  ? group_log2 - ITEMS_PER_QUERY_LOG2
                                  : 0);
    uint32_t value_tiles = (uint32_t)div_ceil(chunks, MAX_VALUE_CHUNKS);
    const struct kernel_key key = {.kernel = &kernel_attention,
                                   .group_log2 = group_log2,
                                   .op_form = mask == NULL                 ? 0
                                              : mask->dtype == TANDEM_BOOL ? 2
                                                                           : 1,
                                   .item_vec4 =
                                       (uint8_t)div_ceil(chunks, value_tiles)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct attention_params *out = (struct attention_params *)step->params;
    out->q_offset = element_offset(request->inputs[0]);
    out->k_offset = element_offset(request->inputs[1]);
    out->v_offset = element_offset(request->inputs[2]);
    out->out_offset = element_offset(request->outputs[0]);
    strides_copy(out->q_strides, &attention.q);
    strides_copy(out->k_strides, &attention.k);
    strides_copy(out->v_strides, &attention.v);
    strides_copy(out->out_strides, &attention.out);
    strides_copy(out->mask_strides, &attention.mask);
    out->past = attention.past;
    out->heads = (uint32_t)attention.heads;
    out->group = (uint32_t)attention.group;
    out->queries = (uint32_t)attention.queries;
    out->keys = (uint32_t)attention.keys;
    out->width = (uint32_t)attention.width;
    out->value_width = (uint32_t)attention.value_width;
    out->query_tiles = (uint32_t)div_ceil((uint64_t)attention.queries, queries);
    out->value_tiles = value_tiles;
    out->scale = attention.scale;
    out->softcap = attention.softcap;
    out->causal = attention.causal;
    step_add_tensor(step, request->outputs[0], true);
    for (uint32_t i = 0; i < 3; i++)
        step_add_tensor(step, request->inputs[i], false);
    if (mask != NULL)
        out->mask_offset = element_offset(mask);
    step_add_tensor(step, mask != NULL ? mask : request->inputs[0], false);
    step->groups = (uint64_t)out->query_tiles * value_tiles *
                   (uint64_t)(attention.batch * attention.heads);
}

const struct plan_class plan_class_attention = {.plan = plan_attention};
