/* SPDX-License-Identifier: Apache-2.0 */
/* Plans layer norm, RMS norm, group norm and instance norm, which cl/norm.cl
 * computes. */
#include "common/operator_table.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/row_mapping.h"
#include "norm.cl"

/* Log2 of the maximum number of vec4 of a row that a work-item keeps in
 * registers on NVIDIA GPUs.  Norm kernels need more registers than softmax
 * kernels. */
#define NVIDIA_MAX_VEC4_LOG2 4

static uint32_t is_rms(const struct define_input *in)
{
    return in->key->op == TANDEM_OP_RMS_NORM;
}

static uint32_t is_grouped(const struct define_input *in)
{
    return in->key->op == TANDEM_OP_GROUP_NORM;
}

static const struct kernel_define defines[] = {
    DEFINE_NUMBER("RMS", is_rms, 0), DEFINE_NUMBER("GROUPED", is_grouped, 0),
    ROW_DEFINES, END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(norm);
static const struct kernel_info single_pass = {
    KERNEL_SOURCE(norm), .function = "norm_single_pass", .defines = defines,
    .param_bytes = sizeof(struct norm_params)};
static const struct kernel_info partial_pass = {
    KERNEL_SOURCE(norm), .function = "norm_partial_pass", .defines = defines,
    .param_bytes = sizeof(struct norm_params)};
static const struct kernel_info final_pass = {
    KERNEL_SOURCE(norm), .function = "norm_final_pass", .defines = defines,
    .param_bytes = sizeof(struct norm_params)};

static bool is_group_norm(const struct op_request *request)
{
    return request->op->id == TANDEM_OP_GROUP_NORM ||
           request->op->id == TANDEM_OP_INSTANCE_NORM;
}

/* Returns true if the rows, scale and bias are aligned to vec4.  In group norm,
 * a vec4 must belong to one channel. */
static bool operands_are_vec4(const struct norm_spaces *by,
                              const struct op_request *request)
{
    if (by->reduced.elements % 4 != 0 ||
        !rows_are_vec4_aligned(&by->kept, 0, request->outputs[0]) ||
        !rows_are_vec4_aligned(&by->kept, 1, request->inputs[0]))
        return false;
    if (is_group_norm(request))
        return by->affine.shape[1] % 4 == 0;
    for (uint32_t i = 1; i < request->input_count; i++)
        if (!tensor_is_vec4_aligned(request->inputs[i]))
            return false;
    return true;
}

static bool has_one_axis(const struct norm_spaces *by,
                         const struct op_request *request)
{
    return by->reduced.rank == 1 &&
           (is_group_norm(request) || by->affine.rank == 1);
}

static enum row_access access_of(const struct norm_params *params,
                                 const struct norm_spaces *by,
                                 const struct op_request *request)
{
    if (!has_one_axis(by, request) || by->reduced.strides[0][0] != 1 ||
        by->reduced.strides[1][0] != 1)
        return ROW_ACCESS_STRIDED;
    for (uint32_t i = 1; i < request->input_count && !is_group_norm(request);
         i++)
        if (by->affine.strides[i - 1][0] != 1)
            return ROW_ACCESS_STRIDED;
    return operands_are_vec4(by, request)
               ? ROW_ACCESS_VEC4
               : row_access_unaligned(&params->by, &by->kept);
}

static void params_fill(struct norm_params *out, const struct norm_spaces *by,
                        const struct op_request *request)
{
    out->by.rows = (uint64_t)by->kept.elements;
    out->by.count = (uint64_t)by->reduced.elements;
    out->epsilon = epsilon_f32(request->op->floats[0]);
    out->out_offset = element_offset(request->outputs[0]);
    out->in_offset = element_offset(request->inputs[0]);
    out->scale_offset = element_offset(request->inputs[1]);
    if (request->input_count > 2)
        out->bias_offset = element_offset(request->inputs[2]);
    out->outer_rank = fast_divmod_fill(&out->outer, &by->kept);
    out->reduced_rank = fast_divmod_fill(&out->reduced, &by->reduced);
    out->affine_rank = fast_divmod_fill(&out->affine, &by->affine);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
    strides_fill(out->in_steps, &by->reduced, 0);
    strides_fill(out->out_steps, &by->reduced, 1);
    strides_fill(out->scale_steps, &by->affine, 0);
    strides_fill(out->bias_steps, &by->affine, 1);
}

/* Plans rows, whose spaces have been built.  The caller has set the members of
 * `params` that only group norm has. */
static void plan_rows(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct norm_spaces *by, struct norm_params *params)
{
    static const struct row_kernels kernels = {
        &single_pass,
        &partial_pass,
        &final_pass,
        4,
        {AT(norm_params, out_offset), AT(norm_params, in_offset),
         AT(norm_params, scale_offset), AT(norm_params, bias_offset)}};
    bool one_axis = has_one_axis(by, request);
    params_fill(params, by, request);
    struct op_request grouped = *request;
    if (one_axis)
        grouped.group_log2 = row_mapping_group_log2(&params->by, request);
    request = &grouped;
    struct kernel_key key = {.op = is_group_norm(request) ? TANDEM_OP_GROUP_NORM
                                                          : request->op->id,
                             .group_log2 = request->group_log2,
                             .index_64bit = needs_64bit_index(&by->kept) ||
                                            needs_64bit_index(&by->reduced)};
    int32_t max_vec4 = !one_axis                   ? -1
                       : request->hardware->nvidia ? NVIDIA_MAX_VEC4_LOG2
                                                   : MAX_ROW_VEC4_LOG2;
    bool register_resident =
        row_mapping_divide(&params->by, access_of(params, by, request),
                           request->group_log2, max_vec4, request, &key);
    plan_row_kernels(plan, request, &kernels, &key, register_resident, params);
}

static void plan_norm(struct launch_plan *plan,
                      const struct op_request *request)
{
    struct norm_spaces by;
    struct norm_params params = {0};
    space_norm(&by, request->inputs, request->input_count, request->outputs[0],
               request->op->ints[0]);
    plan_rows(plan, request, &by, &params);
}

static void plan_channel_norm(struct launch_plan *plan,
                              const struct op_request *request)
{
    struct norm_spaces by;
    struct norm_params params = {0};
    if (request->op->id == TANDEM_OP_BATCH_NORM) {
        plan_batch_norm(plan, request);
        return;
    }
    int64_t channels = request->inputs[0]->shape[1];
    int64_t groups = request->op->id == TANDEM_OP_GROUP_NORM
                         ? request->op->ints[0]
                         : channels;
    space_group_norm(&by, request->inputs, request->outputs[0], groups);
    params.groups = (uint64_t)groups;
    params.scale_group_stride = by.affine.strides[0][0] * (channels / groups);
    params.bias_group_stride = by.affine.strides[1][0] * (channels / groups);
    plan_rows(plan, request, &by, &params);
}

const struct plan_class plan_class_norm = {.plan = plan_norm};
const struct plan_class plan_class_channel_norm = {.plan = plan_channel_norm};
