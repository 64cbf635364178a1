/* SPDX-License-Identifier: Apache-2.0 */
/* Plans attention: cl/attention.cl, cl/attention_split.cl for few queries, and
 * cl/nvidia/attention_mma.cl for tensor cores. */
#include "common/op_attention.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_step.h"
#include "common/attention_scores.cl"

/* Constants of cl/attention.cl: columns of a chunk, log2 of the work-items of a
 * query, and log2 of the work-group size. */
#define CHUNK 32u
#define ITEMS_PER_QUERY_LOG2 3u
#define MAX_GROUP_LOG2 7u
/* A work-group keeps up to 8 * 32 columns in registers. */
#define MAX_VALUE_CHUNKS 8u

/* Limits of cl/attention_split.cl.  More queries, rows or columns would take
 * too much local memory or too many registers. */
#define MAX_SPLIT_QUERIES 8
#define MAX_NVIDIA_ROWS_LOG2 3u
#define MAX_ROWS_LOG2 2u
#define MAX_SPLIT_WIDTH 256
/* Work-groups have at most 2^MAX_ROWS_LOG2 rows if a row has more elements. */
#define LONG_SPLIT_WIDTH 128
/* Work-groups for each compute unit that hide the latency of memory. */
#define GROUPS_PER_UNIT 8u

/* A call and its parameters, which all kernels share. */
struct attention_call {
    const struct op_request *request;
    struct attention attention;
    struct attention_params params;
    uint8_t mask; /* the macro MASK */
};

/* Bits of the key's op_form: the macro MASK, and a bit that is set if the
 * portable kernel recomputes tiles that are not finite, or if the tensor-core
 * kernel applies a softcap. */
#define FORM_MASK 3u
#define FORM_SECOND_LOG2 2u

static uint8_t op_form(uint8_t mask, bool second)
{
    return (uint8_t)(mask | second << FORM_SECOND_LOG2);
}

static uint32_t define_mask(const struct define_input *in)
{
    return in->key->op_form & FORM_MASK;
}

static uint32_t define_second_form(const struct define_input *in)
{
    return in->key->op_form >> FORM_SECOND_LOG2;
}

#define DEFINE_MASK DEFINE_NUMBER("MASK", define_mask, 0)

static const struct kernel_define attention_defines[] = {
    DEFINE_MASK, DEFINE_FIELD("VALUE_CHUNKS", item_vec4),
    DEFINE_NUMBER("ONLY_NONFINITE", define_second_form, 0), END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(attention);
static const struct kernel_info kernel_attention = {
    KERNEL_SOURCE(attention), .function = "attention",
    .defines = attention_defines,
    .param_bytes = sizeof(struct attention_params)};

static uint32_t define_power_of_two(const struct define_input *in)
{
    return 1u << ((const uint8_t *)in->key)[in->argument];
}

static const struct kernel_define split_defines[] = {
    DEFINE_MASK,
    DEFINE_NUMBER("ROWS", define_power_of_two,
                  offsetof(struct kernel_key, item_vec4)),
    DEFINE_FIELD("WIDTH_BLOCKS", row_elements),
    DEFINE_FIELD("VALUE_LANES_LOG2", lanes_log2),
    DEFINE_FIELD("K_VEC4", vec4),
    DEFINE_FIELD("V_VEC4", b_vec4),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(attention_split);
static const struct kernel_info kernel_split = {
    KERNEL_SOURCE(attention_split), .function = "attention_split",
    .defines = split_defines, .param_bytes = sizeof(struct attention_params)};
static const struct kernel_info kernel_merge = {
    KERNEL_SOURCE(attention_split), .function = "attention_merge",
    .defines = split_defines, .param_bytes = sizeof(struct attention_params)};

/* Limit of the columns of keys and values of cl/nvidia/attention_mma.cl, and
 * log2 of its work-group size. */
#define MAX_MMA_WIDTH 128
#define MMA_GROUP_LOG2 7u
/* With fewer multiplications, the second launch, which recomputes tiles that
 * are not finite, takes longer than the tensor cores save. */
#define MIN_MMA_MULTIPLICATIONS 65536.0

static const struct kernel_define mma_defines[] = {
    DEFINE_MASK,
    DEFINE_FIELD("WIDTH_BLOCKS", row_elements),
    DEFINE_FIELD("VALUE_BLOCKS", item_vec4),
    DEFINE_NUMBER("HAS_SOFTCAP", define_second_form, 0),
    DEFINE_FIELD("OUT_VEC4", vec4),
    END_OF_DEFINES};
DECLARE_KERNEL_SOURCE(attention_mma);
static const struct kernel_info kernel_mma = {
    KERNEL_SOURCE(attention_mma), .function = "attention_mma",
    .defines = mma_defines, .param_bytes = sizeof(struct attention_params),
    .flags = KERNEL_FIXED_GROUP_SIZE};

/* ---- parameters and arguments ---- */

/* Copies the strides in the order columns, rows, heads, batch. */
static void strides_copy(int64_t *out, const struct attention_strides *strides)
{
    out[0] = strides->column;
    out[1] = strides->row;
    out[2] = strides->head;
    out[3] = strides->batch;
}

static void call_read(struct attention_call *out,
                      const struct op_request *request)
{
    struct attention *attention = &out->attention;
    attention_read(attention, request->op, request->inputs,
                   request->input_count, request->outputs[0]);
    const struct tandem_tensor_desc *mask = attention->mask_tensor;
    struct attention_params *params = &out->params;
    out->request = request;
    out->mask = mask == NULL ? 0 : mask->dtype == TANDEM_BOOL ? 2 : 1;
    *params = (struct attention_params){
        .q_offset = element_offset(request->inputs[0]),
        .k_offset = element_offset(request->inputs[1]),
        .v_offset = element_offset(request->inputs[2]),
        .mask_offset = mask != NULL ? element_offset(mask) : 0,
        .out_offset = element_offset(request->outputs[0]),
        .past = attention->past,
        .heads = (uint32_t)attention->heads,
        .group = (uint32_t)attention->group,
        .queries = (uint32_t)attention->queries,
        .keys = (uint32_t)attention->keys,
        .width = (uint32_t)attention->width,
        .value_width = (uint32_t)attention->value_width,
        .scale = attention->scale,
        .softcap = attention->softcap,
        .causal = attention->causal};
    strides_copy(params->q_strides, &attention->q);
    strides_copy(params->k_strides, &attention->k);
    strides_copy(params->v_strides, &attention->v);
    strides_copy(params->out_strides, &attention->out);
    strides_copy(params->mask_strides, &attention->mask);
}

static void step_add_output(struct kernel_step *step,
                            const struct attention_call *call)
{
    step_add_tensor(step, call->request->outputs[0], true,
                    AT(attention_params, out_offset));
}

static void step_add_inputs(struct kernel_step *step,
                            const struct attention_call *call)
{
    const struct tandem_tensor_desc *mask = call->attention.mask_tensor;
    const struct op_request *request = call->request;
    static const uint32_t at[] = {AT(attention_params, q_offset),
                                  AT(attention_params, k_offset),
                                  AT(attention_params, v_offset)};
    for (uint32_t i = 0; i < 3; i++)
        step_add_tensor(step, request->inputs[i], false, at[i]);
    step_add_tensor(step, mask != NULL ? mask : request->inputs[0], false,
                    mask != NULL ? AT(attention_params, mask_offset)
                                 : NO_OFFSET);
}

/* Returns true if aligned vec4 loads can read all rows of an operand with
 * `columns` columns. */
static bool rows_are_vec4(const struct tandem_tensor_desc *tensor,
                          int64_t columns)
{
    bool aligned = columns % 4 == 0 && tensor->strides[3] == 1 &&
                   tensor_is_vec4_aligned(tensor);
    /* The stride of an axis of length 1 is not used. */
    for (uint32_t axis = 0; axis < 3; axis++)
        if (tensor->shape[axis] > 1)
            aligned = aligned && tensor->strides[axis] % 4 == 0;
    return aligned;
}

/* ---- portable kernel ---- */

/* Plans cl/attention.cl.  If `only_nonfinite` is true, the kernel computes only
 * the tiles whose flags in the temporary buffer are set. */
static void plan_portable(struct launch_plan *plan,
                          const struct attention_call *call,
                          bool only_nonfinite)
{
    const struct attention *attention = &call->attention;
    uint32_t chunks =
        (uint32_t)div_ceil((uint64_t)attention->value_width, CHUNK);
    uint32_t group_log2 = min_u32(call->request->group_log2, MAX_GROUP_LOG2);
    uint32_t queries = 1u << (group_log2 > ITEMS_PER_QUERY_LOG2
                                  ? group_log2 - ITEMS_PER_QUERY_LOG2
                                  : 0);
    uint32_t value_tiles = (uint32_t)div_ceil(chunks, MAX_VALUE_CHUNKS);
    const struct kernel_key key = {
        .kernel = &kernel_attention,
        .group_log2 = (uint8_t)group_log2,
        .op_form = op_form(call->mask, only_nonfinite),
        .item_vec4 = (uint8_t)div_ceil(chunks, value_tiles)};
    struct kernel_step *step = plan_add_step(plan, &key, &call->params);
    struct attention_params *params = (struct attention_params *)step->params;
    params->query_tiles =
        (uint32_t)div_ceil((uint64_t)attention->queries, queries);
    params->value_tiles = value_tiles;
    step_add_output(step, call);
    step_add_inputs(step, call);
    if (only_nonfinite)
        step_add_temp(step, false);
    step->groups = (uint64_t)params->query_tiles * value_tiles *
                   (uint64_t)(attention->batch * attention->heads);
}

/* ---- few queries ---- */

static bool split_supports(const struct attention_call *call)
{
    const struct attention *attention = &call->attention;
    return call->request->group_log2 >= LARGE_GROUP_LOG2 &&
           attention->queries <= MAX_SPLIT_QUERIES && attention->width > 0 &&
           attention->width <= MAX_SPLIT_WIDTH &&
           attention->value_width <= (int64_t)4 << LARGE_GROUP_LOG2;
}

/* Sets the numbers of splits and of keys of a split. */
static void splits_choose(struct attention_call *call, uint64_t groups,
                          uint32_t group_log2)
{
    const struct tandem_device_info *info = &call->request->hardware->info;
    struct attention_params *params = &call->params;
    params->key_end = (uint32_t)attention_key_end(&call->attention,
                                                  call->attention.queries - 1);
    uint64_t tiles = div_ceil(params->key_end, (uint64_t)1 << group_log2);
    /* A driver that does not know the number of compute units reports 0. */
    uint64_t units = info->compute_units != 0 ? info->compute_units : 1;
    uint64_t wanted = div_ceil(units * GROUPS_PER_UNIT, groups);
    if (wanted > tiles)
        wanted = tiles > 0 ? tiles : 1;
    uint64_t split_tiles = div_ceil(tiles, wanted);
    params->split_keys = (uint32_t)split_tiles << group_log2;
    params->splits = tiles > 0 ? (uint32_t)div_ceil(tiles, split_tiles) : 1;
}

static void plan_merge(struct launch_plan *plan,
                       const struct attention_call *call,
                       const struct kernel_key *split_key, uint64_t rows)
{
    struct kernel_key key = {.kernel = &kernel_merge,
                             .group_log2 = split_key->group_log2,
                             .row_elements = 1,
                             .lanes_log2 = split_key->lanes_log2};
    struct kernel_step *step = plan_add_step(plan, &key, &call->params);
    step_add_output(step, call);
    step_add_temp(step, false);
    step->groups = rows;
}

static void plan_split(struct launch_plan *plan, struct attention_call *call)
{
    const struct attention *attention = &call->attention;
    const struct op_request *request = call->request;
    uint64_t shared_rows = (uint64_t)(attention->group * attention->queries);
    bool has_registers =
        request->hardware->nvidia && attention->width <= LONG_SPLIT_WIDTH;
    uint32_t max_rows_log2 =
        has_registers ? MAX_NVIDIA_ROWS_LOG2 : MAX_ROWS_LOG2;
    uint32_t rows_log2 = min_u32(log2_ceil(shared_rows), max_rows_log2);
    const struct kernel_key key = {
        .kernel = &kernel_split,
        .group_log2 = (uint8_t)min_u32(request->group_log2, MAX_GROUP_LOG2),
        .op_form = call->mask,
        .item_vec4 = (uint8_t)rows_log2,
        .row_elements = (uint8_t)div_ceil((uint64_t)attention->width, CHUNK),
        .lanes_log2 =
            (uint8_t)log2_ceil(div_ceil((uint64_t)attention->value_width, 4)),
        .vec4 = rows_are_vec4(request->inputs[1], attention->width),
        .b_vec4 = rows_are_vec4(request->inputs[2], attention->value_width)};
    struct attention_params *params = &call->params;
    params->row_tiles = (uint32_t)div_ceil(shared_rows, 1u << rows_log2);
    uint64_t groups =
        params->row_tiles *
        (uint64_t)(attention->batch * (attention->heads / attention->group));
    splits_choose(call, groups, key.group_log2);
    uint64_t rows =
        (uint64_t)(attention->batch * attention->heads * attention->queries);
    if (params->splits > 1) {
        uint64_t partials = rows * params->splits;
        params->state_offset = partials << (key.lanes_log2 + 2);
        plan_reserve_temp(plan, (params->state_offset + partials * 2) * 4, 16);
    }
    struct kernel_step *step = plan_add_step(plan, &key, params);
    step_add_tensor(step, request->outputs[0], params->splits == 1,
                    AT(attention_params, out_offset));
    if (params->splits > 1)
        step_add_temp(step, true);
    else
        step_add_tensor(step, request->outputs[0], true, NO_OFFSET);
    step_add_inputs(step, call);
    step->groups = groups * params->splits;
    if (params->splits > 1)
        plan_merge(plan, call, &key, rows);
}

/* ---- tensor cores ---- */

static bool mma_supports(const struct attention_call *call)
{
    const struct attention *attention = &call->attention;
    const struct op_request *request = call->request;
    double multiplications =
        (double)(attention->batch * attention->heads) *
        (double)attention->queries * (double)attention->keys *
        (double)(attention->width + attention->value_width);
    return request->hardware->tensor_cores && !request->avoids_attention_mma &&
           multiplications >= MIN_MMA_MULTIPLICATIONS && attention->width > 0 &&
           attention->width <= MAX_MMA_WIDTH &&
           attention->value_width <= MAX_MMA_WIDTH &&
           rows_are_vec4(request->inputs[0], attention->width) &&
           rows_are_vec4(request->inputs[1], attention->width) &&
           rows_are_vec4(request->inputs[2], attention->value_width);
}

static void plan_mma(struct launch_plan *plan, struct attention_call *call)
{
    const struct attention *attention = &call->attention;
    const struct op_request *request = call->request;
    struct attention_params *params = &call->params;
    const struct kernel_key key = {
        .kernel = &kernel_mma,
        .group_log2 = MMA_GROUP_LOG2,
        .op_form = op_form(call->mask, attention->softcap > 0.0f),
        .row_elements = (uint8_t)div_ceil((uint64_t)attention->width, CHUNK),
        .item_vec4 = (uint8_t)div_ceil((uint64_t)attention->value_width, CHUNK),
        .vec4 = rows_are_vec4(request->outputs[0], attention->value_width)};
    params->row_tiles =
        (uint32_t)div_ceil((uint64_t)attention->queries, MMA_QUERIES);
    uint64_t groups =
        params->row_tiles * (uint64_t)(attention->batch * attention->heads);
    params->nonfinite_flags_offset =
        (uint32_t)(plan_reserve_temp(plan, groups * sizeof(uint32_t), 16) / 4);
    struct kernel_step *step = plan_add_step(plan, &key, params);
    step_add_output(step, call);
    step_add_inputs(step, call);
    step_add_temp(step, true);
    step->groups = groups;
    plan_portable(plan, call, true);
    plan->uses_attention_mma = true;
}

static void plan_attention(struct launch_plan *plan,
                           const struct op_request *request)
{
    struct attention_call call;
    call_read(&call, request);
    if (split_supports(&call))
        plan_split(plan, &call);
    else if (mma_supports(&call))
        plan_mma(plan, &call);
    else
        plan_portable(plan, &call, false);
}

const struct plan_class plan_class_attention = {.plan = plan_attention};
