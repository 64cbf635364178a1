/* SPDX-License-Identifier: Apache-2.0 */
/* Plans cumulative sums, which cl/cumsum.cl computes. */
#include "opencl/plan/row_mapping.h"
#include "cumsum.cl"

/* So that splits are whole iterations. */
_Static_assert(LANE_ELEMENTS == ITERATION_ELEMENTS, "cumsum.cl");

/* Log2 of the number of rows that a work-group processes if lanes are
 * interleaved, that is, if neighbouring work-items belong to different rows. */
#define INTERLEAVED_ROWS_LOG2 5u

static const struct kernel_define defines[] = {
    DEFINE_FIELD("ROW_ACCESS", row_access), END_OF_DEFINES};
static const struct kernel_define final_defines[] = {
    DEFINE_FIELD("ROW_ACCESS", row_access), DEFINE_CONSTANT("IS_SPLIT", 1),
    END_OF_DEFINES};

DECLARE_KERNEL_SOURCE(cumsum);
static const struct kernel_info single_pass = {
    KERNEL_SOURCE(cumsum), .function = "cumsum", .defines = defines,
    .param_bytes = sizeof(struct cumsum_params)};
static const struct kernel_info partial_pass = {
    KERNEL_SOURCE(cumsum), .function = "cumsum_partial_pass",
    .defines = defines, .param_bytes = sizeof(struct cumsum_params)};
static const struct kernel_info final_pass = {
    KERNEL_SOURCE(cumsum), .function = "cumsum", .defines = final_defines,
    .param_bytes = sizeof(struct cumsum_params)};

static void params_fill(struct cumsum_params *out,
                        const struct reduction_spaces *by,
                        const struct op_request *request)
{
    const struct iteration_space *kept = &by->kept;
    out->by.rows = (uint64_t)kept->elements;
    out->by.count = (uint64_t)by->reduced.elements;
    out->in_stride = by->reduced.strides[0][0];
    out->out_stride = by->reduced.strides[1][0];
    out->by.lanes_interleaved =
        out->by.rows > 1 && stride_magnitude(kept->strides[1][kept->rank - 1]) <
                                stride_magnitude(out->in_stride);
    out->in_offset = element_offset(request->inputs[0]);
    out->out_offset = element_offset(request->outputs[0]);
    out->exclusive = request->op->ints[1] != 0;
    if (request->op->ints[2] != 0) {
        out->in_offset +=
            (uint64_t)(out->in_stride * (int64_t)(out->by.count - 1));
        out->out_offset +=
            (uint64_t)(out->out_stride * (int64_t)(out->by.count - 1));
        out->in_stride = -out->in_stride;
        out->out_stride = -out->out_stride;
    }
    out->outer_rank = fast_divmod_fill(&out->outer, kept);
    strides_fill(out->out_strides, kept, 0);
    strides_fill(out->in_strides, kept, 1);
}

static bool rows_are_vec4(const struct cumsum_params *params,
                          const struct iteration_space *kept,
                          const struct op_request *request)
{
    return stride_magnitude(params->in_stride) == 1 &&
           params->out_stride == params->in_stride &&
           params->by.count % 4 == 0 &&
           rows_are_vec4_aligned(kept, 0, request->outputs[0]) &&
           rows_are_vec4_aligned(kept, 1, request->inputs[0]);
}

/* Returns log2 of the maximum number of work-items that share a row. */
static uint32_t max_lanes_log2(const struct cumsum_params *params,
                               uint32_t group_log2)
{
    uint32_t needed = log2_ceil(div_ceil(params->by.count, LANE_ELEMENTS));
    uint32_t rows =
        params->by.lanes_interleaved
            ? min_u32(log2_ceil(params->by.rows), INTERLEAVED_ROWS_LOG2)
            : 0;
    return min_u32(needed, group_log2 > rows ? group_log2 - rows : 0);
}

static void plan_cumsum(struct launch_plan *plan,
                        const struct op_request *request)
{
    static const struct row_kernels kernels = {
        &single_pass,
        &partial_pass,
        &final_pass,
        1,
        {AT(cumsum_params, out_offset), AT(cumsum_params, in_offset)}};
    struct reduction_spaces by;
    struct cumsum_params params = {0};
    space_along_axis(&by, request->inputs[0], request->outputs[0],
                     request->op->ints[0]);
    params_fill(&params, &by, request);
    struct kernel_key key = {.group_log2 = request->group_log2,
                             .index_64bit = needs_64bit_index(&by.kept)};
    row_mapping_divide(
        &params.by,
        rows_are_vec4(&params, &by.kept, request) ? ROW_ACCESS_VEC4
                                                  : ROW_ACCESS_STRIDED,
        max_lanes_log2(&params, request->group_log2), -1, request, &key);
    plan_row_kernels(plan, request, &kernels, &key, params.by.splits == 1,
                     &params);
}

const struct plan_class plan_class_cumsum = {.plan = plan_cumsum};
