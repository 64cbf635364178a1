/* SPDX-License-Identifier: Apache-2.0 */
/* Divides rows among work-items. */
#include "opencl/plan/row_mapping.h"

#include "opencl/device/device_enumeration.h"

/* Log2 of the number of vec4 of a row that a work-item keeps in registers and
 * in local memory, respectively.  More work-items share a longer row. */
#define LANE_VEC4_LOG2 3u
#define LOCAL_MEMORY_LANE_VEC4_LOG2 2u
/* Log2 of the work-group size for rows of at most LONG_ROW_ELEMENTS elements.
 * Rows of at most half as many elements use half the size.  In both cases, more
 * work-items with fewer registers each are faster. */
#define LONG_ROW_GROUP_LOG2 10u
#define LONG_ROW_ELEMENTS 32768u
/* Maximum number of vec4 per work-item that cl/common/row_access.cl supports
 * with ROW_ACCESS_SECTOR_ALIGNED. */
#define MAX_SECTOR_ALIGNED_VEC4 16u
/* A split has at most this number of iterations. */
#define MAX_ITERATIONS 8u
/* Rows with fewer elements are not split merely to use idle compute units. */
#define MIN_SPLIT_ELEMENTS 8192u

/* Returns true if the rows are adjacent in memory, without gaps. */
static bool rows_are_adjacent(const struct iteration_space *outer,
                              uint32_t operand, uint64_t count)
{
    return outer->rank == 1 && (outer->elements == 1 ||
                                outer->strides[operand][0] == (int64_t)count);
}

enum row_access row_access_unaligned(const struct row_mapping *rows,
                                     const struct iteration_space *outer)
{
    if (rows->count >= LOCAL_MEMORY_ROW_LIMIT)
        return ROW_ACCESS_SECTOR_ALIGNED;
    return rows_are_adjacent(outer, 0, rows->count) &&
                   rows_are_adjacent(outer, 1, rows->count)
               ? ROW_ACCESS_LOCAL_MEMORY
               : ROW_ACCESS_STRIDED;
}

/* Returns the number of work-groups that is enough to keep the device busy. */
static uint64_t busy_groups(const struct op_request *request)
{
    const struct tandem_device_info *info = &request->hardware->info;
    return (uint64_t)info->compute_units *
           (info->kind == TANDEM_DEVICE_CPU ? 1u : 8u);
}

uint32_t row_mapping_group_log2(const struct row_mapping *rows,
                                const struct op_request *request)
{
    const struct platform_device *hardware = request->hardware;
    bool large =
        hardware->nvidia && hardware->group_limit >> LONG_ROW_GROUP_LOG2 != 0 &&
        !rows->lanes_interleaved && rows->count > LONG_ROW_ELEMENTS / 4 &&
        rows->count <= LONG_ROW_ELEMENTS &&
        rows->rows >= hardware->info.compute_units;
    if (!large)
        return request->group_log2;
    return rows->count > LONG_ROW_ELEMENTS / 2 ? LONG_ROW_GROUP_LOG2
                                               : LONG_ROW_GROUP_LOG2 - 1;
}

static void row_groups_fill(struct row_mapping *out, uint32_t group_log2)
{
    out->row_groups =
        div_ceil(out->rows, (uint64_t)1 << (group_log2 - out->lanes_log2));
}

/* Returns log2 of the number of lanes for a row of 2^vec4_log2 vec4: one lane
 * per 2^lane_vec4_log2 vec4, but at least 2^min_lanes_log2 lanes, and at most
 * one lane per vec4. */
static uint32_t lanes_for_vec4(uint32_t vec4_log2, uint32_t min_lanes_log2,
                               uint32_t lane_vec4_log2)
{
    uint32_t lanes = vec4_log2 > min_lanes_log2 + lane_vec4_log2
                         ? vec4_log2 - lane_vec4_log2
                         : min_lanes_log2;
    return min_u32(lanes, vec4_log2);
}

uint32_t row_local_memory_lanes_log2(uint64_t count)
{
    /* If the row length is a multiple of four, fewer than eight lanes per row
     * would cause bank conflicts in local memory. */
    return lanes_for_vec4(log2_ceil(div_ceil(count, 4)),
                          count % 4 == 0 ? SECTOR_ELEMENTS_LOG2 : 0,
                          LOCAL_MEMORY_LANE_VEC4_LOG2);
}

/* Returns the maximum number of elements read per row.
 * ROW_ACCESS_SECTOR_ALIGNED can also read elements in front of the row. */
static uint64_t accessed_elements(const struct row_mapping *rows,
                                  enum row_access access)
{
    return rows->count +
           (access == ROW_ACCESS_SECTOR_ALIGNED ? SECTOR_ELEMENTS - 1u : 0u);
}

/* Returns log2 of the number of lanes per row.  A lane keeps at most
 * SECTOR_ALIGNED_LANE_ELEMENTS elements if 2^max_lanes_log2 lanes suffice. */
static uint32_t sector_aligned_lanes_log2(uint64_t elements,
                                          uint32_t max_lanes_log2)
{
    uint32_t lanes = min_u32(max_lanes_log2, SECTOR_ELEMENTS_LOG2);
    while (lanes < max_lanes_log2 &&
           elements > (uint64_t)SECTOR_ALIGNED_LANE_ELEMENTS << lanes)
        lanes++;
    return lanes;
}

static uint32_t preferred_lanes_log2(const struct row_mapping *rows,
                                     enum row_access access, uint64_t vec4,
                                     uint32_t max_lanes_log2)
{
    if (access == ROW_ACCESS_SECTOR_ALIGNED)
        return sector_aligned_lanes_log2(accessed_elements(rows, access),
                                         max_lanes_log2);
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        return row_local_memory_lanes_log2(rows->count);
    bool reads_lines =
        access != ROW_ACCESS_VEC4_COLUMNS && !rows->lanes_interleaved;
    return lanes_for_vec4(log2_ceil(vec4),
                          reads_lines ? SECTOR_ELEMENTS_LOG2 : 0,
                          LANE_VEC4_LOG2);
}

/* Divides rows among work-items that keep the rows in registers.  Returns false
 * if the rows do not fit or would occupy too few work-groups. */
static bool divide_register_resident(struct row_mapping *out,
                                     enum row_access access,
                                     uint32_t max_lanes_log2,
                                     int32_t max_vec4_log2,
                                     const struct op_request *request,
                                     struct kernel_key *key)
{
    uint64_t vec4 = access == ROW_ACCESS_VEC4_COLUMNS
                        ? out->count
                        : div_ceil(accessed_elements(out, access), 4);
    uint32_t lanes = preferred_lanes_log2(out, access, vec4, max_lanes_log2);
    out->lanes_log2 = min_u32(lanes, max_lanes_log2);
    uint64_t lane_vec4 = div_ceil(vec4, (uint64_t)1 << out->lanes_log2);
    row_groups_fill(out, request->group_log2);
    bool idle = out->count >= MIN_SPLIT_ELEMENTS &&
                out->row_groups * 16 < busy_groups(request);
    if ((int32_t)log2_ceil(lane_vec4) > max_vec4_log2 || idle ||
        (access == ROW_ACCESS_LOCAL_MEMORY && lanes > max_lanes_log2) ||
        (access == ROW_ACCESS_SECTOR_ALIGNED &&
         (lanes < SECTOR_ELEMENTS_LOG2 || lane_vec4 > MAX_SECTOR_ALIGNED_VEC4)))
        return false;
    bool is_exact = access == ROW_ACCESS_SECTOR_ALIGNED ||
                    access == ROW_ACCESS_LOCAL_MEMORY;
    key->item_vec4 =
        (uint8_t)(is_exact ? lane_vec4 : 1u << log2_ceil(lane_vec4));
    if (access == ROW_ACCESS_SECTOR_ALIGNED)
        key->lanes_log2 = (uint8_t)out->lanes_log2;
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        key->row_elements = (uint8_t)out->count;
    return true;
}

/* Splits each row into enough parts to keep the device busy and the rounding
 * error small. */
static void divide_split(struct row_mapping *out, enum row_access access,
                         uint32_t max_lanes_log2,
                         const struct op_request *request)
{
    uint64_t elements = accessed_elements(out, access);
    out->lanes_log2 = max_lanes_log2;
    row_groups_fill(out, request->group_log2);
    uint64_t step = (uint64_t)ITERATION_ELEMENTS << max_lanes_log2;
    /* An empty row needs one split, which writes its result. */
    uint64_t iterations = elements != 0 ? div_ceil(elements, step) : 1;
    uint64_t per_split = iterations * out->row_groups / busy_groups(request);
    if (per_split > MAX_ITERATIONS)
        per_split = MAX_ITERATIONS;
    /* Distributes the iterations evenly over the splits. */
    uint64_t splits = div_ceil(iterations, per_split < 1 ? 1 : per_split);
    out->elements_per_split = div_ceil(iterations, splits) * step;
    splits = div_ceil(elements, out->elements_per_split);
    out->splits = splits != 0 ? (uint32_t)splits : 1;
}

bool row_mapping_divide(struct row_mapping *out, enum row_access access,
                        uint32_t max_lanes_log2, int32_t max_vec4_log2,
                        const struct op_request *request,
                        struct kernel_key *key)
{
    out->splits = 1;
    key->item_vec4 = 1;
    bool register_resident =
        out->count > 0 && divide_register_resident(out, access, max_lanes_log2,
                                                   max_vec4_log2, request, key);
    if (!register_resident && access == ROW_ACCESS_LOCAL_MEMORY)
        return row_mapping_divide(out, ROW_ACCESS_STRIDED, max_lanes_log2,
                                  max_vec4_log2, request, key);
    key->row_access = access;
    if (!register_resident)
        divide_split(out, access, max_lanes_log2, request);
    return register_resident;
}

uint32_t define_row_elements(const struct define_input *in)
{
    return in->key->row_elements != 0 ? in->key->row_elements : NOT_DEFINED;
}

uint32_t define_row_lanes_log2(const struct define_input *in)
{
    if (in->key->row_elements != 0)
        return row_local_memory_lanes_log2(in->key->row_elements);
    return in->key->lanes_log2 != 0 ? in->key->lanes_log2 : NOT_DEFINED;
}

/* The number of vec4 that a work-item copies to local memory, so that the
 * work-group has all of its rows. */
uint32_t define_row_stages(const struct define_input *in)
{
    if (in->key->row_elements == 0)
        return NOT_DEFINED;
    uint32_t group = 1u << in->key->group_log2;
    uint32_t rows = group >> row_local_memory_lanes_log2(in->key->row_elements);
    /* The first and last vec4 can each have 3 elements outside the rows. */
    uint32_t vectors = (rows * in->key->row_elements + 3 + 3 + 3) / 4;
    return (vectors + group - 1) / group;
}

/* Patches the member `misalignments` of struct row_mapping, if it is used. */
static void step_patch_misalignments(struct kernel_step *step,
                                     const struct op_request *request)
{
    const uint32_t at = AT(row_mapping, misalignments);
    if (step->key.row_access == ROW_ACCESS_SECTOR_ALIGNED) {
        step_add_patch(step, PATCH_BUFFER_MISALIGNMENT, request->outputs[0], at,
                       SECTOR_ELEMENTS, 0);
        return;
    }
    if (step->key.row_access != ROW_ACCESS_LOCAL_MEMORY)
        return;
    step_add_patch(step, PATCH_BUFFER_MISALIGNMENT, request->inputs[0], at, 4,
                   0);
    step_add_patch(step, PATCH_BUFFER_MISALIGNMENT, request->outputs[0], at, 4,
                   2);
}

void plan_row_kernels(struct launch_plan *plan,
                      const struct op_request *request,
                      const struct row_kernels *kernels,
                      const struct kernel_key *key, bool register_resident,
                      const void *params)
{
    const struct row_mapping *rows = params;
    uint64_t groups = rows->row_groups * rows->splits;
    struct kernel_key pass = *key;
    pass.kernel =
        register_resident ? kernels->single_pass : kernels->partial_pass;
    struct kernel_step *step = plan_add_step(plan, &pass, params);
    step->groups = groups;
    step_patch_misalignments(step, request);
    if (register_resident) {
        step_add_operands(step, request, kernels->offsets_at);
        return;
    }
    step_add_temp(step, true);
    step_add_tensor(step, request->inputs[0], false, kernels->offsets_at[1]);
    pass.kernel = kernels->final_pass;
    step = plan_add_step(plan, &pass, params);
    step->groups = groups;
    step_patch_misalignments(step, request);
    step_add_operands(step, request, kernels->offsets_at);
    step_add_temp(step, false);
    plan->temp_bytes =
        rows->rows * rows->splits * kernels->partial_floats * sizeof(float);
}
