/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/softmax.cl. */
#include <math.h>
#include <string.h>

#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/row_mapping.h"

#define ACROSS_LOG2 5u
/* Of so many rows twice as many columns fit into a group's registers. */
#define WIDE_ROWS 256u
/* A work-item may have 255 registers. */
#define NVIDIA_KEEP_LOG2 5
/* A scale of a gradient up to which what subnormal numbers lose is within the
 * allowance. */
#define MOST_SCALE 16.0f
/* As in cl/softmax.cl. */
struct softmax {
    struct row_mapping by;
    uint32_t kept_rank;
    float scale;
    uint64_t out_offset, in_offset, label_offset;
    int64_t in_stride, out_stride, label_stride;
    struct fast_divmod kept;
    int64_t out_strides[TANDEM_MAX_RANK], in_strides[TANDEM_MAX_RANK];
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
                       const struct op_request *request, enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    if (form == FORM_LOSS)
        layout_reduce(out, input, output, 2u);
    else
        layout_softmax(out, input, output,
                       form == FORM_GRADIENT ? 1 : request->op->ints[0]);
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* How many work-items may share a row. */
static uint32_t most_lanes_log2(const struct softmax *softmax,
                                enum row_access access, uint32_t group_log2)
{
    if (!softmax->by.lanes_interleaved)
        return group_log2;
    uint32_t side = log2_ceil(softmax->by.rows);
    side = side < ACROSS_LOG2 ? side : ACROSS_LOG2;
    if (access == ROW_ACCESS_VEC4_COLUMNS)
        side = softmax->by.count <= WIDE_ROWS ? MIN_VEC4_COLUMNS_LOG2 + 1
                                              : MIN_VEC4_COLUMNS_LOG2;
    return group_log2 > side ? group_log2 - side : 0;
}

/* Whether the rows of operand can be read by fours that lie side by side. */
static bool columns_aligned(const struct layout *kept, uint32_t operand,
                            int64_t stride,
                            const struct tandem_tensor_desc *tensor)
{
    uint32_t inner = kept->rank - 1;
    if (kept->strides[operand][inner] != 1 || stride % 4 != 0 ||
        !tensor_is_vec4_aligned(tensor))
        return false;
    for (uint32_t i = 0; i < inner; i++)
        if (kept->strides[operand][i] % 4 != 0)
            return false;
    return true;
}

static enum row_access access_of(const struct softmax *softmax,
                                 const struct layout *kept,
                                 const struct op_request *request,
                                 enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    bool writes = form != FORM_LOSS;
    if (softmax->by.lanes_interleaved)
        return form <= FORM_LOG && kept->shape[kept->rank - 1] % 4 == 0 &&
                       columns_aligned(kept, 0, softmax->out_stride, output) &&
                       columns_aligned(kept, 1, softmax->in_stride, input)
                   ? ROW_ACCESS_VEC4_COLUMNS
                   : ROW_ACCESS_STRIDED;
    if (softmax->in_stride != 1 || (writes && softmax->out_stride != 1))
        return ROW_ACCESS_STRIDED;
    if (softmax->by.count % 4 == 0 && rows_are_vec4_aligned(kept, 1, input) &&
        (!writes || rows_are_vec4_aligned(kept, 0, output)))
        return ROW_ACCESS_VEC4;
    return writes ? row_access_unaligned(&softmax->by, kept)
                  : ROW_ACCESS_STRIDED;
}

static void fill(struct softmax *out, const struct layout_reduction *by,
                 const struct op_request *request, enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    uint32_t last = by->reduced.rank - 1;
    out->by.rows = (uint64_t)by->kept.elements;
    out->by.count = (uint64_t)by->reduced.elements;
    out->in_stride = by->reduced.strides[0][last];
    out->out_stride = form == FORM_LOSS ? 0 : by->reduced.strides[1][last];
    out->by.lanes_interleaved =
        out->by.rows > 1 && magnitude(by->kept.strides[1][by->kept.rank - 1]) <
                                magnitude(out->in_stride);
    out->by.misalignments = rows_misalignments(input, output);
    out->kept_rank = by->kept.rank;
    out->in_offset = element_offset(input);
    out->out_offset = element_offset(output);
    if (form == FORM_GRADIENT)
        out->scale = attribute_f32(request->op->floats[0]);
    if (form == FORM_LOSS || form == FORM_GRADIENT) {
        const struct tandem_tensor_desc *labels = request->inputs[1];
        out->label_offset = element_offset(labels);
        out->label_stride = labels->strides[0];
    }
}

/* The rows as the kernel counts them. */
static void fill_kept(struct softmax *out, const struct layout *kept,
                      enum row_access access)
{
    struct layout counted = *kept;
    if (access == ROW_ACCESS_VEC4_COLUMNS)
        layout_to_vec4(&counted);
    out->by.rows = (uint64_t)counted.elements;
    fast_divmod_fill(&out->kept, &counted);
    strides_fill(out->out_strides, &counted, 0);
    strides_fill(out->in_strides, &counted, 1);
}

/* How the rows are divided: true where they are kept, and how many vectors by
 * each work-item. */
static bool divide(struct softmax *out, const struct layout *kept,
                   const struct op_request *request, enum row_access *access,
                   uint64_t *out_key)
{
    int32_t keep =
        request->hardware->nvidia ? NVIDIA_KEEP_LOG2 : MAX_ROW_VEC4_LOG2;
    fill_kept(out, kept, *access);
    uint32_t most = most_lanes_log2(out, *access, request->group_log2);
    if (row_mapping_divide(&out->by, *access, most, keep, request, out_key))
        return true;
    if (*access != ROW_ACCESS_LOCAL_MEMORY &&
        *access != ROW_ACCESS_VEC4_COLUMNS)
        return false;
    *access = ROW_ACCESS_STRIDED;
    return divide(out, kept, request, access, out_key);
}

/* The output, the input and the labels. */
static void buffers_fill(struct kernel_step *step,
                         const struct op_request *request)
{
    step_add_buffer(step, request->outputs[0]->buffer, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_add_buffer(step, request->inputs[i]->buffer, false);
}

static void plan_split(struct launch_plan *plan,
                       const struct op_request *request,
                       const struct softmax *softmax, enum form form,
                       uint64_t options)
{
    struct kernel_step *step = plan_add_step(
        plan,
        options | variant_key_kernel(KERNEL_SOFTMAX_PARTIAL_PASS, 0, 0, 0),
        sizeof(*softmax));
    memcpy(step->params, softmax, sizeof(*softmax));
    step->groups = softmax->by.row_groups * softmax->by.splits;
    step_add_buffer(step, NULL, true);
    step_add_buffer(step, request->inputs[0]->buffer, false);
    step = plan_add_step(
        plan, options | variant_key_kernel(KERNEL_SOFTMAX_FINAL_PASS, 0, 0, 0),
        sizeof(*softmax));
    memcpy(step->params, softmax, sizeof(*softmax));
    step->groups = softmax->by.row_groups *
                   (form == FORM_LOSS ? 1 : softmax->by.splits);
    buffers_fill(step, request);
    step_add_buffer(step, NULL, false);
    plan->temp_bytes =
        softmax->by.rows * softmax->by.splits * 2 * sizeof(float);
}

enum tandem_status plan_softmax(struct launch_plan *plan,
                                const struct op_request *request)
{
    enum form form = form_of(request->op->id);
    struct layout_reduction by;
    struct softmax softmax = {0};
    uint64_t kept;
    layouts_of(&by, request, form);
    fill(&softmax, &by, request, form);
    struct op_request grouped = *request;
    grouped.group_log2 = row_mapping_group_log2(&softmax.by, request);
    request = &grouped;
    enum row_access access = access_of(&softmax, &by.kept, request, form);
    bool held = divide(&softmax, &by.kept, request, &access, &kept);
    uint64_t options = variant_key_kernel(0, form, needs_64bit_index(&by.kept),
                                          request->group_log2) |
                       variant_key_row_access(access);
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        options |= variant_key_count(softmax.by.count);
    options |= variant_key_large_loss_scale(fabsf(softmax.scale) > MOST_SCALE);
    if (request->input_count > 1)
        options |=
            variant_key_type(1, kernel_type_of(request->inputs[1]->dtype));
    if (!held) {
        plan_split(plan, request, &softmax, form, options);
        return TANDEM_OK;
    }
    struct kernel_step *step = plan_add_step(
        plan,
        options | variant_key_kernel(KERNEL_SOFTMAX_SINGLE_PASS, 0, 0, 0) |
            kept,
        sizeof(softmax));
    memcpy(step->params, &softmax, sizeof(softmax));
    buffers_fill(step, request);
    step->groups = softmax.by.row_groups;
    return TANDEM_OK;
}
