/* SPDX-License-Identifier: Apache-2.0 */
/* Plans reductions, argmax, argmin and dot products (cl/reduce.cl). */
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/kernel_step.h"
#include "reduce.cl"

/* Minimum number of elements that each work-item reads if a row is split. */
#define MIN_SPLIT_LANE_ELEMENTS 32u
#define MAX_SPLITS 4096u
/* Log2 of the elements that a lane (a work-item) reads per loop iteration. */
#define ITERATION_LOG2 4u
/* For operators that combine the results of two lanes slowly: log2 of the
 * elements per lane in a long row, and log2 of the minimum lanes per row. */
#define SLOW_LANE_ELEMENTS_LOG2 6u
#define MIN_SLOW_LANES_LOG2 3u
/* Log2 of the minimum number of lanes per row for log-sum-exp, which computes
 * several exponentials to combine the results of two lanes. */
#define MIN_EXP_LANES_LOG2 1u
/* Number of work-groups per compute unit that keeps a GPU busy until the kernel
 * ends.  Columns need fewer work-groups, because each reduces many columns. */
#define ROW_GROUPS 32u
#define COLUMN_GROUPS 16u
/* Log2 of the minimum number of neighbouring outputs that a work-group computes
 * if rows are strided.  If these rows have at least LONG_COLUMN_ELEMENTS
 * elements and the results of two lanes are fast to combine, a work-group
 * computes up to one output per work-item. */
#define INTERLEAVED_OUTPUTS_LOG2 5u
#define LONG_COLUMN_ELEMENTS 4096u
/* Maximum number of splits per lane that the last work-group combines.  The
 * number is small, because the other compute units are idle at that time. */
#define MAX_LAST_GROUP_SPLITS 16u
/* With at least this number of outputs, a few lanes per output keep a device
 * busy.  Lanes of different outputs are then interleaved to combine splits. */
#define MIN_INTERLEAVED_OUTPUTS 4096u

#define REDUCE_DEFINES(last_group_combines)                                    \
    {                                                                          \
        DEFINE_FIELD("REDUCTION", op_form),                                    \
            DEFINE_CONSTANT("LAST_GROUP_COMBINES", last_group_combines),       \
            END_OF_DEFINES                                                     \
    }
static const struct kernel_define defines[] = REDUCE_DEFINES(0);
static const struct kernel_define last_group_defines[] = REDUCE_DEFINES(1);

DECLARE_KERNEL_SOURCE(reduce);
static const struct kernel_info kernel_reduce = {
    KERNEL_SOURCE(reduce), .function = "reduce", .defines = defines,
    .param_bytes = sizeof(struct reduce_params)};
static const struct kernel_info kernel_reduce_last_group = {
    KERNEL_SOURCE(reduce), .function = "reduce", .defines = last_group_defines,
    .param_bytes = sizeof(struct reduce_params)};
static const struct kernel_info kernel_reduce_combine_splits = {
    KERNEL_SOURCE(reduce), .function = "reduce_combine_splits",
    .defines = defines, .param_bytes = sizeof(struct reduce_params)};

/* Returns the value of the macro REDUCTION in cl/reduce.cl. */
static uint8_t reduction_of(uint32_t op)
{
    static const uint8_t reductions[TANDEM_OP_ID_END] = {
        [TANDEM_OP_SUM] = 1,        [TANDEM_OP_MEAN] = 2,
        [TANDEM_OP_PROD] = 3,       [TANDEM_OP_REDUCE_MAX] = 4,
        [TANDEM_OP_REDUCE_MIN] = 5, [TANDEM_OP_SUM_SQUARE] = 6,
        [TANDEM_OP_L2] = 7,         [TANDEM_OP_LOG_SUM_EXP] = 8,
        [TANDEM_OP_ARGMAX] = 9,     [TANDEM_OP_ARGMIN] = 10,
        [TANDEM_OP_DOT] = 11};
    return reductions[op];
}

/* Returns the size of split_result_t in cl/reduce.cl. */
static uint32_t split_result_bytes(uint32_t op)
{
    if (op == TANDEM_OP_ARGMAX || op == TANDEM_OP_ARGMIN)
        return 16;
    return op == TANDEM_OP_PROD || op == TANDEM_OP_REDUCE_MAX ||
                   op == TANDEM_OP_REDUCE_MIN
               ? 4
               : 8;
}

/* Returns true if combining the results of two lanes takes few instructions. */
static bool combines_fast(uint32_t op)
{
    return op != TANDEM_OP_ARGMAX && op != TANDEM_OP_ARGMIN &&
           op != TANDEM_OP_LOG_SUM_EXP;
}

static uint64_t inner_stride(const struct iteration_space *space,
                             uint32_t operand)
{
    return stride_magnitude(space->strides[operand][space->rank - 1]);
}

/* Returns log2 of the preferred number of lanes per row. */
static uint32_t preferred_lanes_log2(uint64_t count, uint32_t op)
{
    uint32_t log2 = log2_ceil(count);
    uint32_t lanes = log2 - min_u32(log2, ITERATION_LOG2);
    uint32_t slow_lanes = log2 - min_u32(log2, SLOW_LANE_ELEMENTS_LOG2);
    uint32_t min_slow_lanes =
        op == TANDEM_OP_LOG_SUM_EXP ? MIN_EXP_LANES_LOG2 : MIN_SLOW_LANES_LOG2;
    return combines_fast(op)
               ? lanes
               : min_u32(lanes, max_u32(slow_lanes, min_slow_lanes));
}

/* Returns log2 of the largest number of lanes per output in a work-group. */
static uint32_t max_lanes_log2(const struct reduce_params *params,
                               const struct op_request *request)
{
    uint32_t group_log2 = request->group_log2;
    uint32_t outputs = log2_ceil(params->outputs);
    if (!params->lanes_interleaved)
        return group_log2;
    if (!combines_fast(request->op->id) || params->count < LONG_COLUMN_ELEMENTS)
        outputs = min_u32(outputs, INTERLEAVED_OUTPUTS_LOG2);
    return group_log2 - min_u32(outputs, group_log2);
}

static void lanes_set(struct reduce_params *out, uint32_t lanes_log2,
                      uint32_t group_log2)
{
    out->lanes_log2 = lanes_log2;
    out->output_groups =
        div_ceil(out->outputs, (uint64_t)1 << (group_log2 - lanes_log2));
}

/* Chooses how many lanes and how many splits compute each output. */
static void divide_work(struct reduce_params *out,
                        const struct reduction_spaces *by,
                        const struct op_request *request)
{
    const struct tandem_device_info *info = &request->hardware->info;
    out->lanes_interleaved =
        out->outputs > 1 && by->reduced.elements > 0 &&
        inner_stride(&by->kept, 1) < inner_stride(&by->reduced, 0);
    uint32_t groups_per_unit = info->kind == TANDEM_DEVICE_CPU ? 2u
                               : out->lanes_interleaved        ? COLUMN_GROUPS
                                                               : ROW_GROUPS;
    lanes_set(out,
              min_u32(preferred_lanes_log2(out->count, request->op->id),
                      max_lanes_log2(out, request)),
              request->group_log2);
    uint64_t lanes = (uint64_t)1 << out->lanes_log2;
    uint64_t splits =
        (uint64_t)info->compute_units * groups_per_unit / out->output_groups;
    uint64_t max_splits = out->count / (lanes * MIN_SPLIT_LANE_ELEMENTS);
    splits = splits < max_splits ? splits : max_splits;
    splits = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    out->splits = 1;
    out->elements_per_split = out->count;
    if (splits < 2)
        return;
    uint64_t unit = lanes << ITERATION_LOG2;
    out->elements_per_split =
        div_ceil(div_ceil(out->count, splits), unit) * unit;
    out->splits = (uint32_t)div_ceil(out->count, out->elements_per_split);
}

/* Returns true if the rows are contiguous and aligned to vec4. */
static bool rows_are_vec4(const struct reduce_params *params,
                          const struct reduction_spaces *by,
                          const struct op_request *request)
{
    bool rows = !params->lanes_interleaved && by->reduced.rank == 1 &&
                params->count >= 4 && by->reduced.strides[0][0] == 1 &&
                rows_are_vec4_aligned(&by->kept, 1, request->inputs[0]);
    return rows && (request->op->id != TANDEM_OP_DOT ||
                    (by->reduced.strides[1][0] == 1 &&
                     tensor_is_vec4_aligned(request->inputs[1])));
}

static void params_fill(struct reduce_params *out,
                        const struct reduction_spaces *by,
                        const struct op_request *request)
{
    out->outputs = (uint64_t)by->kept.elements;
    out->count = (uint64_t)by->reduced.elements;
    divide_work(out, by, request);
    out->is_vec4 = rows_are_vec4(out, by, request);
    out->out_offset = element_offset(request->outputs[0]);
    out->in_offset = element_offset(request->inputs[0]);
    out->outer_rank = fast_divmod_fill(&out->outer, &by->kept);
    out->reduced_rank = fast_divmod_fill(&out->reduced, &by->reduced);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
    strides_fill(out->reduced_strides, &by->reduced, 0);
    if (request->op->id == TANDEM_OP_DOT) {
        out->other_offset = element_offset(request->inputs[1]);
        strides_fill(out->other_strides, &by->reduced, 1);
    }
}

static void plan_combine_splits(struct launch_plan *plan,
                                const struct op_request *request,
                                const struct reduce_params *from,
                                struct kernel_key key)
{
    uint32_t group_log2 = request->group_log2, max_lanes = group_log2;
    key.kernel = &kernel_reduce_combine_splits;
    struct kernel_step *step = plan_add_step(plan, &key, from);
    struct reduce_params *out = (struct reduce_params *)step->params;
    out->lanes_interleaved = out->outputs >= MIN_INTERLEAVED_OUTPUTS;
    if (out->lanes_interleaved && group_log2 > INTERLEAVED_OUTPUTS_LOG2)
        max_lanes -= INTERLEAVED_OUTPUTS_LOG2;
    lanes_set(out, min_u32(log2_ceil(out->splits), max_lanes), group_log2);
    step->groups = out->output_groups;
    step_add_tensor(step, request->outputs[0], true,
                    AT(reduce_params, out_offset));
    step_add_temp(step, false);
}

/* Returns true if the last work-group to finish combines all split results. */
static bool last_group_combines(const struct reduce_params *params,
                                const struct op_request *request)
{
    return request->has_device_scope_visibility && params->splits > 1 &&
           params->splits <= MAX_LAST_GROUP_SPLITS << params->lanes_log2 &&
           params->output_groups <= ARRIVAL_COUNTERS;
}

static void plan_reduce(struct launch_plan *plan,
                        const struct op_request *request)
{
    uint32_t op = request->op->id;
    bool dot = op == TANDEM_OP_DOT;
    struct reduction_spaces by;
    space_reduce(&by, request->inputs[0], request->outputs[0],
                 dot ? 1u : (uint32_t)request->op->ints[0]);
    if (dot)
        space_broadcast(&by.reduced, request->inputs, 2, true);
    const struct kernel_key key = {.kernel = &kernel_reduce,
                                   .op_form = reduction_of(op),
                                   .group_log2 = request->group_log2,
                                   .index_64bit =
                                       needs_64bit_index(&by.kept) ||
                                       needs_64bit_index(&by.reduced)};
    struct kernel_step *step = plan_add_step(plan, &key, NULL);
    struct reduce_params *out = (struct reduce_params *)step->params;
    params_fill(out, &by, request);
    step->groups = out->output_groups * out->splits;
    /* Buffer 1 is for split results, or a placeholder if rows are not split. */
    step_add_tensor(step, request->outputs[0], true,
                    AT(reduce_params, out_offset));
    if (out->splits == 1)
        step_add_tensor(step, request->outputs[0], true, NO_OFFSET);
    else
        step_add_temp(step, true);
    step_add_tensor(step, request->inputs[0], false,
                    AT(reduce_params, in_offset));
    if (dot)
        step_add_tensor(step, request->inputs[1], false,
                        AT(reduce_params, other_offset));
    if (out->splits == 1)
        return;
    plan->temp_bytes =
        (uint64_t)out->splits * out->outputs * split_result_bytes(op);
    if (!last_group_combines(out, request)) {
        plan_combine_splits(plan, request, out, key);
        return;
    }
    step->key.kernel = &kernel_reduce_last_group;
    step_add_slot(step, SLOT_COUNTERS, 0, 0, true);
}

const struct plan_class plan_class_reduce = {.plan = plan_reduce};
const struct plan_class plan_class_arg_reduce = {.plan = plan_reduce};
const struct plan_class plan_class_dot = {.plan = plan_reduce};
