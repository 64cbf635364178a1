/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/norm.cl. */
#include <string.h>

#include "common/operator_table.h"
#include "opencl/plan/kernel_step.h"
#include "opencl/device/device_enumeration.h"
#include "opencl/plan/row_mapping.h"

/* A work-item may have 255 registers, and needs more than in softmax. */
#define NVIDIA_KEEP_LOG2 4

/* As in cl/norm.cl. */
struct norm {
    struct row_mapping by;
    uint32_t kept_rank, reduced_rank, affine_rank;
    float epsilon;
    uint64_t out_offset, in_offset, scale_offset, bias_offset;
    struct fast_divmod kept, reduced, affine;
    int64_t out_strides[TANDEM_MAX_RANK], in_strides[TANDEM_MAX_RANK];
    int64_t out_steps[TANDEM_MAX_RANK], in_steps[TANDEM_MAX_RANK];
    int64_t scale_steps[TANDEM_MAX_RANK], bias_steps[TANDEM_MAX_RANK];
};

/* Whether rows lie in aligned fours, as do scale and bias. */
static bool vectors(const struct layout_norm *by,
                    const struct op_request *request)
{
    if (by->reduced.elements % 4 != 0 ||
        !rows_are_vec4_aligned(&by->kept, 0, request->outputs[0]) ||
        !rows_are_vec4_aligned(&by->kept, 1, request->inputs[0]))
        return false;
    for (uint32_t i = 1; i < request->input_count; i++)
        if (!tensor_is_vec4_aligned(request->inputs[i]))
            return false;
    return true;
}

static enum row_access access_of(const struct norm *norm,
                                 const struct layout_norm *by,
                                 const struct op_request *request)
{
    if (by->reduced.rank != 1 || by->affine.rank != 1 ||
        by->reduced.strides[0][0] != 1 || by->reduced.strides[1][0] != 1)
        return ROW_ACCESS_STRIDED;
    for (uint32_t i = 1; i < request->input_count; i++)
        if (by->affine.strides[i - 1][0] != 1)
            return ROW_ACCESS_STRIDED;
    return vectors(by, request) ? ROW_ACCESS_VEC4
                                : row_access_unaligned(&norm->by, &by->kept);
}

static void fill(struct norm *out, const struct layout_norm *by,
                 const struct op_request *request)
{
    out->by.rows = (uint64_t)by->kept.elements;
    out->by.count = (uint64_t)by->reduced.elements;
    out->by.misalignments =
        rows_misalignments(request->inputs[0], request->outputs[0]);
    out->kept_rank = by->kept.rank;
    out->reduced_rank = by->reduced.rank;
    out->affine_rank = by->affine.rank;
    out->epsilon = epsilon_f32(request->op->floats[0]);
    out->out_offset = element_offset(request->outputs[0]);
    out->in_offset = element_offset(request->inputs[0]);
    out->scale_offset = element_offset(request->inputs[1]);
    if (request->input_count > 2)
        out->bias_offset = element_offset(request->inputs[2]);
    fast_divmod_fill(&out->kept, &by->kept);
    fast_divmod_fill(&out->reduced, &by->reduced);
    fast_divmod_fill(&out->affine, &by->affine);
    strides_fill(out->out_strides, &by->kept, 0);
    strides_fill(out->in_strides, &by->kept, 1);
    strides_fill(out->in_steps, &by->reduced, 0);
    strides_fill(out->out_steps, &by->reduced, 1);
    strides_fill(out->scale_steps, &by->affine, 0);
    strides_fill(out->bias_steps, &by->affine, 1);
}

static void step_start(struct launch_plan *plan, uint64_t key,
                       const struct norm *norm, struct kernel_step **out_step)
{
    *out_step = plan_add_step(plan, key, sizeof(*norm));
    memcpy((*out_step)->params, norm, sizeof(*norm));
}

static void buffers_fill(struct kernel_step *step,
                         const struct op_request *request)
{
    step_add_buffer(step, request->outputs[0]->buffer, true);
    for (uint32_t i = 0; i < request->input_count; i++)
        step_add_buffer(step, request->inputs[i]->buffer, false);
}

enum tandem_status plan_norm(struct launch_plan *plan,
                             const struct op_request *request)
{
    struct layout_norm by;
    struct norm norm = {0};
    struct kernel_step *step;
    uint64_t kept;
    layout_norm(&by, request->inputs, request->input_count,
                request->outputs[0], request->op->ints[0]);
    fill(&norm, &by, request);
    struct op_request grouped = *request;
    if (by.reduced.rank == 1 && by.affine.rank == 1)
        grouped.group_log2 = row_mapping_group_log2(&norm.by, request);
    request = &grouped;
    int32_t keep = by.reduced.rank > 1 || by.affine.rank > 1 ? -1
                   : request->hardware->nvidia               ? NVIDIA_KEEP_LOG2
                                               : MAX_ROW_VEC4_LOG2;
    enum row_access access = access_of(&norm, &by, request);
    bool held = row_mapping_divide(&norm.by, access, request->group_log2, keep,
                                   request, &kept);
    if (!held && access == ROW_ACCESS_LOCAL_MEMORY) {
        access = ROW_ACCESS_STRIDED;
        held = row_mapping_divide(&norm.by, access, request->group_log2, keep,
                                  request, &kept);
    }
    uint64_t options = variant_key_kernel(0, request->op->id,
                                          needs_64bit_index(&by.kept) ||
                                              needs_64bit_index(&by.reduced),
                                          request->group_log2) |
                       variant_key_row_access(access);
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        options |= variant_key_count(norm.by.count);
    if (held) {
        step_start(plan,
                   options |
                       variant_key_kernel(KERNEL_NORM_SINGLE_PASS, 0, 0, 0) |
                       kept,
                   &norm, &step);
        buffers_fill(step, request);
        step->groups = norm.by.row_groups;
        return TANDEM_OK;
    }
    step_start(plan,
               options | variant_key_kernel(KERNEL_NORM_PARTIAL_PASS, 0, 0, 0),
               &norm, &step);
    step->groups = norm.by.row_groups * norm.by.splits;
    step_add_buffer(step, NULL, true);
    step_add_buffer(step, request->inputs[0]->buffer, false);
    step_start(plan,
               options | variant_key_kernel(KERNEL_NORM_FINAL_PASS, 0, 0, 0),
               &norm, &step);
    step->groups = norm.by.row_groups * norm.by.splits;
    buffers_fill(step, request);
    step_add_buffer(step, NULL, false);
    plan->temp_bytes = norm.by.rows * norm.by.splits * 4 * sizeof(float);
    return TANDEM_OK;
}
