/* SPDX-License-Identifier: Apache-2.0 */
/* Rows divided among work-items. */
#include "opencl/plan/row_mapping.h"

#include "opencl/memory/buffer.h"
#include "opencl/device/device_enumeration.h"

/* A work-item keeps so many vectors of four elements before more of them share
 * a row; and of rows in local memory, which has no room for more. */
#define HELD_LOG2 3u
#define STAGED_LOG2 2u
/* Rows of up to LONG_ELEMENTS are kept by groups of so many work-items, of up
 * to half of these by half as many: more, with fewer registers each, than keep
 * shorter ones. */
#define LONG_GROUP_LOG2 10u
#define LONG_ELEMENTS 32768u
/* ROW_ACCESS_SECTOR_ALIGNED: how many fours a work-item keeps at most, for
 * which cl/common/row_access.cl has macros. */
#define LINED_MOST 16u
/* A lane of a split takes sixteen elements so many times. */
#define MOST_TURNS 8u
/* Rows shorter than this are not split. */
#define SPLIT_ELEMENTS 8192u

bool rows_are_vec4_aligned(const struct layout *kept, uint32_t operand,
                           const struct tandem_tensor_desc *tensor)
{
    if (!tensor_is_vec4_aligned(tensor))
        return false;
    for (uint32_t i = 0; i < kept->rank; i++)
        if (kept->strides[operand][i] % 4 != 0)
            return false;
    return true;
}

/* Elements from the last aligned vector of so many to a buffer's first. */
static uint32_t skew_of(const struct tandem_tensor_desc *tensor,
                        uint32_t elements)
{
    uint64_t skew = buffer_misalignment(tensor->buffer);
    return (uint32_t)(skew / TANDEM_DTYPE_BYTES(tensor->dtype) % elements);
}

uint32_t rows_misalignments(const struct tandem_tensor_desc *input,
                            const struct tandem_tensor_desc *output)
{
    return skew_of(input, 4) | skew_of(output, 4) << 2;
}

/* Whether operand's rows lie one after the other. */
static bool dense(const struct layout *kept, uint32_t operand, uint64_t count)
{
    return kept->rank == 1 && (kept->elements == 1 ||
                               kept->strides[operand][0] == (int64_t)count);
}

enum row_access row_access_unaligned(const struct row_mapping *rows,
                                     const struct layout *kept)
{
    if (rows->count < LOCAL_MEMORY_ROW_LIMIT)
        return dense(kept, 0, rows->count) && dense(kept, 1, rows->count)
                   ? ROW_ACCESS_LOCAL_MEMORY
                   : ROW_ACCESS_STRIDED;
    return ROW_ACCESS_SECTOR_ALIGNED;
}

/* The work of a GPU that keeps it busy, in groups. */
static uint64_t wanted_groups(const struct op_request *request)
{
    const struct tandem_device_info *info = &request->hardware->info;
    return (uint64_t)info->compute_units *
           (info->kind == TANDEM_DEVICE_CPU ? 1u : 8u);
}

uint32_t row_mapping_group_log2(const struct row_mapping *rows,
                                const struct op_request *request)
{
    const struct platform_device *hardware = request->hardware;
    bool large = hardware->nvidia &&
                 hardware->group_limit >> LONG_GROUP_LOG2 != 0 &&
                 !rows->lanes_interleaved && rows->count > LONG_ELEMENTS / 4 &&
                 rows->count <= LONG_ELEMENTS &&
                 rows->rows >= hardware->info.compute_units;
    if (!large)
        return request->group_log2;
    return rows->count > LONG_ELEMENTS / 2 ? LONG_GROUP_LOG2
                                           : LONG_GROUP_LOG2 - 1;
}

static void groups_fill(struct row_mapping *out, uint32_t group_log2)
{
    uint64_t rows_of_group = (uint64_t)1 << (group_log2 - out->lanes_log2);
    out->row_groups = (out->rows + rows_of_group - 1) / rows_of_group;
}

/* How many lanes a row has where nothing limits them: least, or such that each
 * has 1 << each_log2 vectors. */
static uint32_t lanes_of(uint32_t vectors_log2, uint32_t least,
                         uint32_t each_log2)
{
    uint32_t lanes =
        vectors_log2 > least + each_log2 ? vectors_log2 - each_log2 : least;
    return lanes < vectors_log2 ? lanes : vectors_log2;
}

uint32_t row_local_memory_lanes_log2(uint64_t count)
{
    /* Rows of whole lines would meet in the same banks of local memory. */
    return lanes_of(log2_ceil((count + 3) / 4),
                    count % 4 == 0 ? SECTOR_ELEMENTS_LOG2 : 0, STAGED_LOG2);
}

static uint32_t lanes_wanted(const struct row_mapping *rows,
                             enum row_access access, uint32_t vectors_log2)
{
    if (access == ROW_ACCESS_LOCAL_MEMORY)
        return row_local_memory_lanes_log2(rows->count);
    bool line = access != ROW_ACCESS_VEC4_COLUMNS && !rows->lanes_interleaved;
    return lanes_of(vectors_log2, line ? SECTOR_ELEMENTS_LOG2 : 0, HELD_LOG2);
}

/* Elements of a row and, where these begin before it, of others. */
static uint64_t elements_of(const struct row_mapping *rows,
                            enum row_access access)
{
    return rows->count +
           (access == ROW_ACCESS_SECTOR_ALIGNED ? SECTOR_ELEMENTS - 1u : 0u);
}

/* As few lanes as need not keep more than SECTOR_ALIGNED_LANE_ELEMENTS
 * elements. */
static uint32_t lined_lanes_log2(uint64_t elements, uint32_t most)
{
    uint32_t lanes = most < SECTOR_ELEMENTS_LOG2 ? most : SECTOR_ELEMENTS_LOG2;
    while (lanes < most && elements > (uint64_t)SECTOR_ALIGNED_LANE_ELEMENTS
                                          << lanes)
        lanes++;
    return lanes;
}

/* Whether work-items can keep all of a row, and its key. */
static bool divide_register_resident(struct row_mapping *out,
                                     enum row_access access, uint32_t most,
                                     int32_t keep_log2,
                                     const struct op_request *request,
                                     uint64_t *out_key)
{
    uint64_t elements = elements_of(out, access);
    uint64_t vectors =
        access == ROW_ACCESS_VEC4_COLUMNS ? out->count : (elements + 3) / 4;
    uint32_t lanes = access == ROW_ACCESS_SECTOR_ALIGNED
                         ? lined_lanes_log2(elements, most)
                         : lanes_wanted(out, access, log2_ceil(vectors));
    out->lanes_log2 = lanes < most ? lanes : most;
    uint64_t held = (vectors + ((uint64_t)1 << out->lanes_log2) - 1) >>
                    out->lanes_log2;
    *out_key =
        access == ROW_ACCESS_SECTOR_ALIGNED
            ? variant_key_count(held) | variant_key_lanes(out->lanes_log2)
            : variant_key_register_vec4(log2_ceil(held));
    groups_fill(out, request->group_log2);
    bool idle = out->count >= SPLIT_ELEMENTS &&
                out->row_groups * 16 < wanted_groups(request);
    return (int32_t)log2_ceil(held) <= keep_log2 && !idle &&
           (access != ROW_ACCESS_LOCAL_MEMORY || lanes <= most) &&
           (access != ROW_ACCESS_SECTOR_ALIGNED ||
            (lanes >= SECTOR_ELEMENTS_LOG2 && held <= LINED_MOST));
}

/* As many splits as keep the device busy, and as keep the error small. */
static void divide_split(struct row_mapping *out, enum row_access access,
                         uint32_t most, const struct op_request *request)
{
    uint64_t elements = elements_of(out, access);
    out->lanes_log2 = most;
    groups_fill(out, request->group_log2);
    uint64_t turn = (uint64_t)16 << most;
    uint64_t turns = (elements + turn - 1) / turn;
    /* A row of nothing has a result, too: of a split. */
    if (turns == 0)
        turns = 1;
    uint64_t each = turns * out->row_groups / wanted_groups(request);
    each = each < 1 ? 1 : each < MOST_TURNS ? each : MOST_TURNS;
    /* The last one must not have much less to do. */
    uint64_t splits = (turns + each - 1) / each;
    out->elements_per_split = (turns + splits - 1) / splits * turn;
    splits = (elements + out->elements_per_split - 1) / out->elements_per_split;
    out->splits = splits != 0 ? (uint32_t)splits : 1;
}

bool row_mapping_divide(struct row_mapping *out, enum row_access access,
                        uint32_t most_log2, int32_t keep_log2,
                        const struct op_request *request, uint64_t *out_key)
{
    out->splits = 1;
    if (access == ROW_ACCESS_SECTOR_ALIGNED)
        out->misalignments = skew_of(request->outputs[0], SECTOR_ELEMENTS);
    if (out->count > 0 && divide_register_resident(out, access, most_log2,
                                                   keep_log2, request, out_key))
        return true;
    divide_split(out, access, most_log2, request);
    return false;
}
