/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/softmax.cl. */
#include "common/operator.h"
#include "opencl/plan.h"
#include "opencl/platform.h"

#define ACROSS_LOG2 5u

/* As in cl/softmax.cl. */
struct softmax {
    uint64_t rows, count;
    uint32_t lanes_log2, across;
    uint32_t vector, kept_rank;
    uint64_t out_offset, in_offset, label_offset;
    int64_t in_stride, out_stride, label_stride;
    float scale;
    uint32_t reserved;
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

static void divide_work(struct softmax *out, const struct layout *kept,
                        uint32_t group_log2)
{
    uint32_t most = group_log2;
    int64_t kept_stride = magnitude(kept->strides[1][kept->rank - 1]);
    out->across = out->rows > 1 && kept_stride < magnitude(out->in_stride);
    if (out->across) {
        uint32_t side = log2_ceil(out->rows);
        side = side < ACROSS_LOG2 ? side : ACROSS_LOG2;
        most = group_log2 > side ? group_log2 - side : 0;
    }
    out->lanes_log2 = log2_ceil((out->count + 1) / 2);
    if (out->lanes_log2 > most)
        out->lanes_log2 = most;
}

static void fill(struct softmax *out, const struct layout_reduction *by,
                 const struct request *request, enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    out->rows = (uint64_t)by->kept.elements;
    out->count = (uint64_t)by->reduced.elements;
    out->in_stride = by->reduced.strides[0][by->reduced.rank - 1];
    out->out_stride =
        form == FORM_LOSS ? 0 : by->reduced.strides[1][by->reduced.rank - 1];
    divide_work(out, &by->kept, request->group_log2);
    out->vector = !out->across && out->in_stride == 1 &&
                  walks_fours(&by->kept, 1, input) &&
                  (form == FORM_LOSS ||
                   (out->out_stride == 1 && walks_fours(&by->kept, 0, output)));
    out->kept_rank = by->kept.rank;
    out->in_offset = element_offset(input);
    out->out_offset = element_offset(output);
    extents_fill(&out->kept, &by->kept);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
}

enum tandem_status plan_softmax(struct plan *plan,
                                const struct request *request)
{
    enum form form = form_of(request->op->id);
    struct layout_reduction by;
    layouts_of(&by, request, form);
    uint64_t key = kernel_key(KERNEL_SOFTMAX, form, needs_wide(&by.kept),
                              request->group_log2);
    struct step *step = plan_step(plan, key, sizeof(struct softmax));
    struct softmax *out = (struct softmax *)step->params;
    fill(out, &by, request, form);
    step_buffer(step, request->outputs[0]->buffer, true);
    step_buffer(step, request->inputs[0]->buffer, false);
    if (form == FORM_LOSS || form == FORM_GRADIENT) {
        const struct tandem_tensor_desc *labels = request->inputs[1];
        step->key |= key_type(1, type_of(labels->dtype));
        step_buffer(step, labels->buffer, false);
        out->label_offset = element_offset(labels);
        out->label_stride = labels->strides[0];
    }
    if (form == FORM_GRADIENT)
        out->scale = (float)request->op->floats[0];
    uint64_t rows_of_group = (uint64_t)1
                             << (request->group_log2 - out->lanes_log2);
    step->groups = (out->rows + rows_of_group - 1) / rows_of_group;
    return TANDEM_OK;
}
