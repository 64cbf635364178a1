/* SPDX-License-Identifier: Apache-2.0 */
/* Plans softmax, log-softmax and cross-entropy (cl/softmax.cl). */
#include <math.h>

#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/row_mapping.h"
#include "softmax.cl"

/* Log2 of the number of rows that a work-group processes if lanes are
 * interleaved, that is, if neighbouring work-items belong to different rows. */
#define INTERLEAVED_ROWS_LOG2 5u
/* Columns with at most this number of elements need few registers.  Hence a
 * work-group processes twice as many of them as of longer columns. */
#define SHORT_COLUMN_ELEMENTS 256u
/* Log2 of the maximum number of vec4 of a row that a work-item keeps in
 * registers on NVIDIA GPUs, which have 255 registers per work-item. */
#define NVIDIA_MAX_VEC4_LOG2 5
/* Largest scale of a loss gradient at which rounding errors of subnormal
 * probabilities stay within the tolerance. */
#define MAX_SUBNORMAL_SCALE 16.0f

/* Values of the macro FORM in cl/softmax.cl. */
enum form { FORM_SOFTMAX = 1, FORM_LOG = 2, FORM_LOSS = 3, FORM_GRADIENT = 4 };

static bool label_type(char out[DEFINE_VALUE_BYTES],
                       const struct define_input *in)
{
    return define_string(out, in->key->types[1] == TYPE_LONG ? "long" : "int");
}

static const struct kernel_define defines[] = {
    DEFINE_FIELD("FORM", op_form),
    DEFINE_FIELD("LARGE_LOSS_SCALE", large_scale),
    DEFINE_TEXT("LABEL", label_type, 0), ROW_DEFINES, END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(softmax);
static const struct kernel_info single_pass = {
    KERNEL_SOURCE(softmax), .function = "softmax_single_pass",
    .defines = defines, .param_bytes = sizeof(struct softmax_params)};
static const struct kernel_info partial_pass = {
    KERNEL_SOURCE(softmax), .function = "softmax_partial_pass",
    .defines = defines, .param_bytes = sizeof(struct softmax_params)};
static const struct kernel_info final_pass = {
    KERNEL_SOURCE(softmax), .function = "softmax_final_pass",
    .defines = defines, .param_bytes = sizeof(struct softmax_params)};

static enum form form_of(uint32_t op)
{
    return op == TANDEM_OP_LOG_SOFTMAX          ? FORM_LOG
           : op == TANDEM_OP_CROSS_ENTROPY      ? FORM_LOSS
           : op == TANDEM_OP_CROSS_ENTROPY_GRAD ? FORM_GRADIENT
                                                : FORM_SOFTMAX;
}

/* Returns log2 of the maximum number of work-items that share a row. */
static uint32_t max_lanes_log2(const struct softmax_params *params,
                               enum row_access access, uint32_t group_log2)
{
    uint32_t rows = min_u32(log2_ceil(params->by.rows), INTERLEAVED_ROWS_LOG2);
    if (!params->by.lanes_interleaved)
        return group_log2;
    if (access == ROW_ACCESS_VEC4_COLUMNS)
        rows = params->by.count <= SHORT_COLUMN_ELEMENTS
                   ? MIN_VEC4_COLUMNS_LOG2 + 1
                   : MIN_VEC4_COLUMNS_LOG2;
    return group_log2 > rows ? group_log2 - rows : 0;
}

static enum row_access access_of(const struct softmax_params *params,
                                 const struct iteration_space *outer,
                                 const struct op_request *request,
                                 enum form form)
{
    const struct tandem_tensor_desc *input = request->inputs[0];
    const struct tandem_tensor_desc *output = request->outputs[0];
    bool writes_rows = form != FORM_LOSS;
    uint32_t inner = outer->rank - 1;
    if (params->by.lanes_interleaved)
        return form <= FORM_LOG && outer->shape[inner] % 4 == 0 &&
                       params->in_stride % 4 == 0 &&
                       params->out_stride % 4 == 0 &&
                       axis_is_vec4(outer, 0, inner, output) &&
                       axis_is_vec4(outer, 1, inner, input)
                   ? ROW_ACCESS_VEC4_COLUMNS
                   : ROW_ACCESS_STRIDED;
    if (params->in_stride != 1 || (writes_rows && params->out_stride != 1))
        return ROW_ACCESS_STRIDED;
    if (params->by.count % 4 == 0 && rows_are_vec4_aligned(outer, 1, input) &&
        (!writes_rows || rows_are_vec4_aligned(outer, 0, output)))
        return ROW_ACCESS_VEC4;
    return writes_rows ? row_access_unaligned(&params->by, outer)
                       : ROW_ACCESS_STRIDED;
}

static void params_fill(struct softmax_params *out,
                        const struct reduction_spaces *by,
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
        out->by.rows > 1 &&
        stride_magnitude(by->kept.strides[1][by->kept.rank - 1]) <
            stride_magnitude(out->in_stride);
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

/* Sets the number and the strides of the rows.  With ROW_ACCESS_VEC4_COLUMNS,
 * four neighbouring rows count as one. */
static void outer_fill(struct softmax_params *out,
                       const struct iteration_space *outer,
                       enum row_access access)
{
    struct iteration_space rows = *outer;
    if (access == ROW_ACCESS_VEC4_COLUMNS)
        space_to_vec4(&rows);
    out->by.rows = (uint64_t)rows.elements;
    out->outer_rank = fast_divmod_fill(&out->outer, &rows);
    strides_fill(out->out_strides, &rows, 0);
    strides_fill(out->in_strides, &rows, 1);
}

/* Divides the rows among work-items.  Returns true if they fit in registers,
 * otherwise splits them and returns false.  If rows do not fit with
 * ROW_ACCESS_VEC4_COLUMNS, uses ROW_ACCESS_STRIDED.  Sets the fields of the key
 * that describe rows. */
static bool rows_divide(struct softmax_params *out,
                        const struct iteration_space *outer,
                        const struct op_request *request,
                        enum row_access access, struct kernel_key *key)
{
    int32_t max_vec4 =
        request->hardware->nvidia ? NVIDIA_MAX_VEC4_LOG2 : MAX_ROW_VEC4_LOG2;
    outer_fill(out, outer, access);
    if (row_mapping_divide(&out->by, access,
                           max_lanes_log2(out, access, request->group_log2),
                           max_vec4, request, key))
        return true;
    if (access != ROW_ACCESS_VEC4_COLUMNS)
        return false;
    return rows_divide(out, outer, request, ROW_ACCESS_STRIDED, key);
}

static void plan_softmax(struct launch_plan *plan,
                         const struct op_request *request)
{
    static const struct row_kernels kernels = {
        &single_pass,
        &partial_pass,
        &final_pass,
        2,
        {AT(softmax_params, out_offset), AT(softmax_params, in_offset),
         AT(softmax_params, label_offset)}};
    enum form form = form_of(request->op->id);
    struct reduction_spaces by;
    struct softmax_params params = {0};
    if (form == FORM_LOSS)
        space_reduce(&by, request->inputs[0], request->outputs[0], 2u);
    else
        space_along_axis(&by, request->inputs[0], request->outputs[0],
                         form == FORM_GRADIENT ? 1 : request->op->ints[0]);
    params_fill(&params, &by, request, form);
    struct op_request grouped = *request;
    grouped.group_log2 = row_mapping_group_log2(&params.by, request);
    request = &grouped;
    struct kernel_key key = {.op_form = form,
                             .group_log2 = request->group_log2,
                             .index_64bit = needs_64bit_index(&by.kept),
                             .large_scale =
                                 fabsf(params.scale) > MAX_SUBNORMAL_SCALE};
    if (request->input_count > 1)
        key.types[1] = kernel_type_of(request->inputs[1]->dtype);
    bool register_resident =
        rows_divide(&params, &by.kept, request,
                    access_of(&params, &by.kept, request, form), &key);
    plan_row_kernels(plan, request, &kernels, &key, register_resident, &params);
    /* The final pass of a loss writes a single value per row. */
    if (form == FORM_LOSS && !register_resident)
        plan->step[1].groups = params.by.row_groups;
}

const struct plan_class plan_class_softmax = {.plan = plan_softmax};
const struct plan_class plan_class_cross_entropy = {.plan = plan_softmax};
