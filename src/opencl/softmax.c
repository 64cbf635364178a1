/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/softmax.cl. */
#include <string.h>

#include "common/operator.h"
#include "opencl/plan.h"
#include "opencl/platform.h"

#define ACROSS_LOG2 5u
/* A work-item keeps so many vectors of four elements before more of them share
 * a row, and at most: where registers are few, or plenty. */
#define HELD_LOG2 3u
#define MOST_HELD_LOG2 3u
#define MOST_HELD_LOG2_NVIDIA 5u
/* Lanes up to here cost no local memory where there are shuffles. */
#define WARP_LOG2 5u
/* A lane of a split takes sixteen elements so many times. */
#define MOST_TURNS 8u
/* Rows shorter than this are not split. */
#define SPLIT_ELEMENTS 8192u

/* As in cl/softmax.cl. */
struct softmax {
    uint64_t rows, count, chunk;
    uint64_t row_groups;
    uint32_t lanes_log2, across;
    uint32_t vector, kept_rank;
    uint64_t out_offset, in_offset, label_offset;
    int64_t in_stride, out_stride, label_stride;
    float scale;
    uint32_t splits;
    struct extents kept;
    int64_t out_strides[AXES], in_strides[AXES];
};

enum form { FORM_SOFTMAX = 1, FORM_LOG = 2, FORM_LOSS = 3, FORM_GRADIENT = 4 };

static enum form form_of(uint32_t op)
{
    switch (op) {
    case TANDEM_OP_LOG_SOFTMAX:
        return FORM_LOG;
    case TANDEM_OP_CROSS_ENTROPY:
        return FORM_LOSS;
    case TANDEM_OP_CROSS_ENTROPY_GRAD:
        return FORM_GRADIENT;
    default:
        return FORM_SOFTMAX;
    }
}

static void layouts_of(struct layout_reduction *out,
                       const struct request *request, enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    if (form == FORM_LOSS)
        layout_reduce(out, input, output, 2u);
    else
        layout_softmax(out, input, output,
                       form == FORM_GRADIENT ? 1 : request->op->ints[0]);
}

static bool walks_fours(const struct layout *kept, uint32_t operand,
                        const struct tandem_tensor_desc *tensor)
{
    if (!vector_aligned(tensor))
        return false;
    for (uint32_t i = 0; i < kept->rank; i++)
        if (kept->strides[operand][i] % 4 != 0)
            return false;
    return true;
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* How many work-items may share a row. */
static uint32_t most_lanes_log2(struct softmax *out, const struct layout *kept,
                                uint32_t group_log2)
{
    int64_t kept_stride = magnitude(kept->strides[1][kept->rank - 1]);
    out->across = out->rows > 1 && kept_stride < magnitude(out->in_stride);
    if (!out->across)
        return group_log2;
    uint32_t side = log2_ceil(out->rows);
    side = side < ACROSS_LOG2 ? side : ACROSS_LOG2;
    return group_log2 > side ? group_log2 - side : 0;
}

/* The work of a GPU that keeps it busy, in groups. */
static uint64_t wanted_groups(const struct request *request)
{
    const struct tandem_device_info *info = &request->hardware->info;
    return (uint64_t)info->compute_units *
           (info->kind == TANDEM_DEVICE_CPU ? 1u : 8u);
}

static void groups_fill(struct softmax *out, uint32_t group_log2)
{
    uint64_t rows_of_group = (uint64_t)1 << (group_log2 - out->lanes_log2);
    out->row_groups = (out->rows + rows_of_group - 1) / rows_of_group;
}

/* Whether work-items can keep all of a row, and how many vectors each. */
static bool divide_held(struct softmax *out, uint32_t most,
                        const struct request *request, uint32_t *out_held_log2)
{
    uint32_t limit = request->hardware->nvidia ? MOST_HELD_LOG2_NVIDIA
                                               : MOST_HELD_LOG2;
    uint64_t fours = (out->count + 3) / 4;
    uint32_t log2 = log2_ceil(fours), cheap = out->across ? 0 : WARP_LOG2;
    uint32_t lanes = log2 > cheap + HELD_LOG2 ? log2 - HELD_LOG2 : cheap;
    lanes = lanes < log2 ? lanes : log2;
    out->lanes_log2 = lanes < most ? lanes : most;
    *out_held_log2 =
        log2_ceil((fours + ((uint64_t)1 << out->lanes_log2) - 1) >>
                  out->lanes_log2);
    groups_fill(out, request->group_log2);
    bool idle = out->count >= SPLIT_ELEMENTS &&
                out->row_groups * 16 < wanted_groups(request);
    return *out_held_log2 <= limit && !idle;
}

/* As many splits as keep the device busy, and as keep the error small. */
static void divide_split(struct softmax *out, uint32_t most,
                         const struct request *request)
{
    out->lanes_log2 = most;
    groups_fill(out, request->group_log2);
    uint64_t turn = (uint64_t)16 << most;
    uint64_t turns = (out->count + turn - 1) / turn;
    uint64_t each = turns * out->row_groups / wanted_groups(request);
    each = each < 1 ? 1 : each < MOST_TURNS ? each : MOST_TURNS;
    out->chunk = each * turn;
    out->splits = (uint32_t)((out->count + out->chunk - 1) / out->chunk);
}

/* Returns how many lanes a row may have. */
static uint32_t fill(struct softmax *out, const struct layout_reduction *by,
                 const struct request *request, enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    out->rows = (uint64_t)by->kept.elements;
    out->count = (uint64_t)by->reduced.elements;
    out->in_stride = by->reduced.strides[0][by->reduced.rank - 1];
    out->out_stride =
        form == FORM_LOSS ? 0 : by->reduced.strides[1][by->reduced.rank - 1];
    uint32_t most = most_lanes_log2(out, &by->kept, request->group_log2);
    out->vector = !out->across && out->in_stride == 1 &&
                  out->count % 4 == 0 && walks_fours(&by->kept, 1, input) &&
                  (form == FORM_LOSS ||
                   (out->out_stride == 1 && walks_fours(&by->kept, 0, output)));
    out->kept_rank = by->kept.rank;
    out->in_offset = element_offset(input);
    out->out_offset = element_offset(output);
    extents_fill(&out->kept, &by->kept);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
    if (form == FORM_GRADIENT)
        out->scale = (float)request->op->floats[0];
    if (form == FORM_LOSS || form == FORM_GRADIENT) {
        const struct tandem_tensor_desc *labels = request->inputs[1];
        out->label_offset = element_offset(labels);
        out->label_stride = labels->strides[0];
    }
    return most;
}

/* The output, the input and the labels. */
static void buffers_fill(struct step *step, const struct request *request)
{
    step_buffer(step, request->outputs[0]->buffer, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_buffer(step, request->inputs[i]->buffer, false);
}

static void plan_split(struct plan *plan, const struct request *request,
                       const struct softmax *softmax, enum form form,
                       uint64_t options)
{
    struct step *step = plan_step(
        plan, options | kernel_key(KERNEL_SOFTMAX_PART, 0, 0, 0),
        sizeof(*softmax));
    memcpy(step->params, softmax, sizeof(*softmax));
    step->groups = softmax->row_groups * softmax->splits;
    step->temp = 0;
    step_buffer(step, NULL, true);
    step_buffer(step, request->inputs[0]->buffer, false);
    step = plan_step(plan, options | kernel_key(KERNEL_SOFTMAX_WRITE, 0, 0, 0),
                     sizeof(*softmax));
    memcpy(step->params, softmax, sizeof(*softmax));
    step->groups = softmax->row_groups *
                   (form == FORM_LOSS ? 1 : softmax->splits);
    buffers_fill(step, request);
    step->temp = step->buffer_count;
    step_buffer(step, NULL, false);
    plan->temp_bytes = softmax->rows * softmax->splits * 2 * sizeof(float);
}

enum tandem_status plan_softmax(struct plan *plan,
                                const struct request *request)
{
    enum form form = form_of(request->op->id);
    struct layout_reduction by;
    struct softmax softmax = {0};
    uint32_t held_log2;
    layouts_of(&by, request, form);
    uint32_t most = fill(&softmax, &by, request, form);
    uint64_t options =
        kernel_key(0, form, needs_wide(&by.kept), request->group_log2);
    if (request->input_count > 1)
        options |= key_type(1, type_of(request->inputs[1]->dtype));
    if (!divide_held(&softmax, most, request, &held_log2)) {
        divide_split(&softmax, most, request);
        plan_split(plan, request, &softmax, form, options);
        return TANDEM_OK;
    }
    struct step *step = plan_step(
        plan, options | kernel_key(KERNEL_SOFTMAX, 0, 0, 0) |
                  key_held(held_log2),
        sizeof(softmax));
    memcpy(step->params, &softmax, sizeof(softmax));
    buffers_fill(step, request);
    step->groups = softmax.row_groups;
    return TANDEM_OK;
}
