/* SPDX-License-Identifier: Apache-2.0 */
/* Rows divided among work-items. */
#include "opencl/rows.h"

#include "opencl/platform.h"

/* A work-item keeps so many vectors of four elements before more of them share
 * a row. */
#define HELD_LOG2 3u
/* So many lanes read a whole line of the cache at a time. */
#define LINE_LOG2 3u
/* A lane of a split takes sixteen elements so many times. */
#define MOST_TURNS 8u
/* Rows shorter than this are not split. */
#define SPLIT_ELEMENTS 8192u

bool rows_aligned(const struct layout *kept, uint32_t operand,
                  const struct tandem_tensor_desc *tensor)
{
    if (!vector_aligned(tensor))
        return false;
    for (uint32_t i = 0; i < kept->rank; i++)
        if (kept->strides[operand][i] % 4 != 0)
            return false;
    return true;
}

/* The work of a GPU that keeps it busy, in groups. */
static uint64_t wanted_groups(const struct request *request)
{
    const struct tandem_device_info *info = &request->hardware->info;
    return (uint64_t)info->compute_units *
           (info->kind == TANDEM_DEVICE_CPU ? 1u : 8u);
}

static void groups_fill(struct rows *out, uint32_t group_log2)
{
    uint64_t rows_of_group = (uint64_t)1 << (group_log2 - out->lanes_log2);
    out->row_groups = (out->rows + rows_of_group - 1) / rows_of_group;
}

/* Whether work-items can keep all of a row, and how many vectors each. */
static bool divide_held(struct rows *out, uint32_t most, int32_t keep_log2,
                        const struct request *request, uint32_t *out_held_log2)
{
    uint64_t fours = (out->count + 3) / 4;
    uint32_t log2 = log2_ceil(fours), cheap = out->across ? 0 : LINE_LOG2;
    uint32_t lanes = log2 > cheap + HELD_LOG2 ? log2 - HELD_LOG2 : cheap;
    lanes = lanes < log2 ? lanes : log2;
    out->lanes_log2 = lanes < most ? lanes : most;
    *out_held_log2 =
        log2_ceil((fours + ((uint64_t)1 << out->lanes_log2) - 1) >>
                  out->lanes_log2);
    groups_fill(out, request->group_log2);
    bool idle = out->count >= SPLIT_ELEMENTS &&
                out->row_groups * 16 < wanted_groups(request);
    return (int32_t)*out_held_log2 <= keep_log2 && !idle;
}

/* As many splits as keep the device busy, and as keep the error small. */
static void divide_split(struct rows *out, uint32_t most,
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

bool rows_divide(struct rows *out, uint32_t most_log2, int32_t keep_log2,
                 const struct request *request, uint32_t *out_held_log2)
{
    out->splits = 1;
    if (out->count > 0 &&
        divide_held(out, most_log2, keep_log2, request, out_held_log2))
        return true;
    divide_split(out, most_log2, request);
    return false;
}
