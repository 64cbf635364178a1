/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/reduce.cl. */
#include <string.h>

#include "common/argument_check.h"
#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/device/device_enumeration.h"

/* A lane of a split takes at least so many elements. */
#define SPLIT_LANE_ELEMENTS 32u
#define MOST_SPLITS 4096u
/* A lane takes sixteen elements at a time. */
#define TURN_LOG2 4u
/* Where lanes are costly to join, each takes so many, of rows that are long. */
#define COSTLY_LOG2 6u
#define COSTLY_LANES_LOG2 3u
/* Of sums of exponentials two, as several are computed to join lanes. */
#define EXP_LANES_LOG2 1u
/* So many groups for each multiprocessor keep a GPU busy until the last are
 * done: of rows, and of columns, of which a group has many. */
#define ROW_GROUPS 32u
#define COLUMN_GROUPS 16u
/* Neighbouring outputs that are read together where rows are strided; of long
 * columns whose values are quick to join, whole groups of them. */
#define ACROSS_LOG2 5u
#define LONG_ELEMENTS 4096u
/* A lane of a group that joins splits has so many at most, as it reads them
 * while nobody else works. */
#define JOINED_TURNS 16u
/* So many outputs keep a device busy with eight lanes each to join splits. */
#define JOIN_ACROSS 4096u

/* As in cl/reduce.cl. */
struct reduce {
    uint64_t outputs, count, chunk;
    uint64_t output_groups;
    uint32_t splits, lanes_log2, across, vector;
    uint32_t kept_rank, reduced_rank;
    uint64_t out_offset, in_offset, other_offset;
    struct fast_divmod kept, reduced;
    int64_t out_strides[TANDEM_MAX_RANK], in_strides[TANDEM_MAX_RANK];
    int64_t reduced_strides[TANDEM_MAX_RANK], other_strides[TANDEM_MAX_RANK];
};

/* REDUCTION of cl/reduce.cl. */
static uint32_t reduction_of(uint32_t op)
{
    static const struct {
        uint32_t op, reduction;
    } table[] = {{TANDEM_OP_SUM, 1},        {TANDEM_OP_MEAN, 2},
                 {TANDEM_OP_PROD, 3},       {TANDEM_OP_REDUCE_MAX, 4},
                 {TANDEM_OP_REDUCE_MIN, 5}, {TANDEM_OP_SUM_SQUARE, 6},
                 {TANDEM_OP_L2, 7},         {TANDEM_OP_LOG_SUM_EXP, 8},
                 {TANDEM_OP_ARGMAX, 9},     {TANDEM_OP_ARGMIN, 10},
                 {TANDEM_OP_DOT, 11}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].op == op)
            return table[i].reduction;
    return 0;
}

/* Of kept_t in cl/reduce.cl. */
static uint32_t part_bytes(uint32_t op)
{
    switch (op) {
    case TANDEM_OP_PROD:
    case TANDEM_OP_REDUCE_MAX:
    case TANDEM_OP_REDUCE_MIN:
        return 4;
    case TANDEM_OP_ARGMAX:
    case TANDEM_OP_ARGMIN:
        return 16;
    default:
        return 8;
    }
}

/* Whether lanes are joined by a few additions, or the like. */
static bool quick_to_join(uint32_t op)
{
    return op != TANDEM_OP_ARGMAX && op != TANDEM_OP_ARGMIN &&
           op != TANDEM_OP_LOG_SUM_EXP;
}

static void layouts_of(struct layout_reduction *out,
                       const struct op_request *request)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    if (request->op->id != TANDEM_OP_DOT) {
        layout_reduce(out, input, request->outputs[0],
                      (uint32_t)request->op->ints[0]);
        return;
    }
    layout_reduce(out, input, request->outputs[0], 1u);
    layout_broadcast(&out->reduced, request->inputs, 2, true);
}

static int64_t inner_stride(const struct layout *layout, uint32_t operand)
{
    int64_t stride = layout->strides[operand][layout->rank - 1];
    return stride < 0 ? -stride : stride;
}

static uint32_t lanes_log2(uint64_t count, uint32_t op)
{
    uint32_t log2 = log2_ceil(count);
    uint32_t lanes = log2 > TURN_LOG2 ? log2 - TURN_LOG2 : 0;
    uint32_t fewer = log2 > COSTLY_LOG2 ? log2 - COSTLY_LOG2 : 0;
    uint32_t least =
        op == TANDEM_OP_LOG_SUM_EXP ? EXP_LANES_LOG2 : COSTLY_LANES_LOG2;
    fewer = fewer > least ? fewer : least;
    return quick_to_join(op) || lanes < fewer ? lanes : fewer;
}

/* Lanes for one output, and how many groups share its elements. */
static void divide_work(struct reduce *out, const struct layout_reduction *by,
                        const struct op_request *request)
{
    uint32_t group_log2 = request->group_log2;
    const struct tandem_device_info *info = &request->hardware->info;
    uint32_t most = group_log2;
    out->across = out->outputs > 1 && by->reduced.elements > 0 &&
                  inner_stride(&by->kept, 1) < inner_stride(&by->reduced, 0);
    if (out->across) {
        uint32_t side = log2_ceil(out->outputs);
        bool whole = quick_to_join(request->op->id) &&
                     out->count >= LONG_ELEMENTS;
        uint32_t limit = whole ? group_log2 : ACROSS_LOG2;
        side = side < limit ? side : limit;
        most = group_log2 > side ? group_log2 - side : 0;
    }
    uint64_t wanted = (uint64_t)info->compute_units *
                      (info->kind == TANDEM_DEVICE_CPU ? 2u
                       : out->across                   ? COLUMN_GROUPS
                                                       : ROW_GROUPS);
    out->lanes_log2 = lanes_log2(out->count, request->op->id);
    if (out->lanes_log2 > most)
        out->lanes_log2 = most;
    uint64_t outputs_of_group = (uint64_t)1 << (group_log2 - out->lanes_log2);
    out->output_groups =
        (out->outputs + outputs_of_group - 1) / outputs_of_group;
    uint64_t lanes = (uint64_t)1 << out->lanes_log2;
    uint64_t splits = wanted / out->output_groups;
    uint64_t useful = out->count / (lanes * SPLIT_LANE_ELEMENTS);
    splits = splits < useful ? splits : useful;
    splits = splits < MOST_SPLITS ? splits : MOST_SPLITS;
    out->splits = 1;
    out->chunk = out->count;
    if (splits < 2)
        return;
    uint64_t unit = lanes << TURN_LOG2;
    out->chunk = ((out->count + splits - 1) / splits + unit - 1) / unit * unit;
    out->splits = (uint32_t)((out->count + out->chunk - 1) / out->chunk);
}

/* Rows that lie in aligned fours. */
static bool rows_vector(const struct reduce *out,
                        const struct layout_reduction *by,
                        const struct op_request *request)
{
    if (out->across || by->reduced.rank != 1 || out->count < 4 ||
        by->reduced.strides[0][0] != 1 ||
        !tensor_is_vec4_aligned(request->inputs[0]))
        return false;
    for (uint32_t i = 0; i < by->kept.rank; i++)
        if (by->kept.strides[1][i] % 4 != 0)
            return false;
    return request->op->id != TANDEM_OP_DOT ||
           (by->reduced.strides[1][0] == 1 &&
            tensor_is_vec4_aligned(request->inputs[1]));
}

static void fill(struct reduce *out, const struct layout_reduction *by,
                 const struct op_request *request)
{
    out->outputs = (uint64_t)by->kept.elements;
    out->count = (uint64_t)by->reduced.elements;
    divide_work(out, by, request);
    out->vector = rows_vector(out, by, request);
    out->kept_rank = by->kept.rank;
    out->reduced_rank = by->reduced.rank;
    out->out_offset = element_offset(request->outputs[0]);
    out->in_offset = element_offset(request->inputs[0]);
    fast_divmod_fill(&out->kept, &by->kept);
    fast_divmod_fill(&out->reduced, &by->reduced);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
    strides_fill(out->reduced_strides, &by->reduced, 0);
    if (request->op->id == TANDEM_OP_DOT) {
        out->other_offset = element_offset(request->inputs[1]);
        strides_fill(out->other_strides, &by->reduced, 1);
    }
}

static void plan_join(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct reduce *from, uint64_t key)
{
    uint32_t group_log2 = request->group_log2;
    struct kernel_step *step = plan_add_step(plan, key, sizeof(struct reduce));
    struct reduce *out = (struct reduce *)step->params;
    *out = *from;
    out->across = out->outputs >= JOIN_ACROSS;
    uint32_t most = out->across && group_log2 > ACROSS_LOG2
                        ? group_log2 - ACROSS_LOG2
                        : group_log2;
    out->lanes_log2 = log2_ceil(out->splits);
    if (out->lanes_log2 > most)
        out->lanes_log2 = most;
    uint64_t outputs_of_group = (uint64_t)1 << (group_log2 - out->lanes_log2);
    out->output_groups =
        (out->outputs + outputs_of_group - 1) / outputs_of_group;
    step->groups = out->output_groups;
    step_add_buffer(step, request->outputs[0]->buffer, true);
    step_add_buffer(step, NULL, false);
}

/* Whether the group that comes last joins the splits. */
static bool joined(const struct reduce *by, const struct op_request *request)
{
    return request->has_device_scope_visibility && by->splits > 1 &&
           by->splits <= JOINED_TURNS << by->lanes_log2 &&
           by->output_groups <= ARRIVAL_COUNTERS;
}

enum tandem_status plan_reduce(struct launch_plan *plan,
                               const struct op_request *request)
{
    uint32_t op = request->op->id;
    struct layout_reduction by;
    layouts_of(&by, request);
    bool wide = needs_64bit_index(&by.kept) || needs_64bit_index(&by.reduced);
    uint32_t reduction = reduction_of(op);
    uint64_t key =
        variant_key_kernel(KERNEL_REDUCE, reduction, wide, request->group_log2);
    struct kernel_step *step = plan_add_step(plan, key, sizeof(struct reduce));
    struct reduce *out = (struct reduce *)step->params;
    fill(out, &by, request);
    step->groups = out->output_groups * out->splits;
    /* A place for partial results must be bound even where none are made. */
    step_add_buffer(step, request->outputs[0]->buffer, true);
    step_add_buffer(step, request->outputs[0]->buffer, true);
    step_add_buffer(step, request->inputs[0]->buffer, false);
    if (op == TANDEM_OP_DOT)
        step_add_buffer(step, request->inputs[1]->buffer, false);
    if (out->splits == 1)
        return TANDEM_OK;
    step->buffers[1] = NULL;
    plan->temp_bytes = (uint64_t)out->splits * out->outputs * part_bytes(op);
    if (joined(out, request)) {
        step->key = variant_key_kernel(KERNEL_REDUCE_LAST_GROUP, reduction,
                                       wide, request->group_log2);
        step->arrival_counters = step->buffer_count;
        step_add_buffer(step, NULL, true);
        return TANDEM_OK;
    }
    plan_join(plan, request, out,
              variant_key_kernel(KERNEL_REDUCE_COMBINE_SPLITS, reduction, wide,
                                 request->group_log2));
    return TANDEM_OK;
}
