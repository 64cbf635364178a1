/* SPDX-License-Identifier: Apache-2.0 */
/* Copies several tensors to parts of another tensor. A part consists of rows of
 * contiguous elements. Each work-group copies elements of one part, and each of
 * its work-items copies ITEM_UNITS units. A unit is one element, or four
 * aligned elements if the bit of the part is set in vec4_parts. */
#include "common/params.cl"

#define CONCAT_PARTS 8
#define ITEM_UNITS 4

struct concat_params {
    /* Number of the first work-group of each part. A part that does not exist
     * begins after the last work-group. */
    uint64_t first_group[CONCAT_PARTS];
    uint64_t units[CONCAT_PARTS];
    struct fast_divmod row_units; /* extent of part i: units per row */
    uint64_t target_offset[CONCAT_PARTS], source_offset[CONCAT_PARTS];
    int64_t target_pitch[CONCAT_PARTS], source_pitch[CONCAT_PARTS];
    uint64_t vec4_parts;
};
PARAMS_SIZE(concat_params, 520);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
#endif

/* Copies ITEM_UNITS units of a part from `from` to `to`. */
#define COPY_UNITS(type, i, elements)                                          \
    REPEAT(k, ITEM_UNITS)                                                      \
    {                                                                          \
        index_t row = unit + k * GROUP_SIZE;                                   \
        if (row < p.units[i]) {                                                \
            long column;                                                       \
            DIVMOD(row, p.row_units, i, column);                               \
            column *= (elements);                                              \
            *(__global type *)(target + p.target_offset[i] + column +          \
                               (long)row * p.target_pitch[i]) =                \
                *(__global const type *)(source##i + p.source_offset[i] +      \
                                         column +                              \
                                         (long)row * p.source_pitch[i]);       \
        }                                                                      \
    }
#define COPY_PART(i, end)                                                      \
    if (group >= p.first_group[i] && group < (end)) {                          \
        index_t unit = (index_t)(group - p.first_group[i]) *                   \
                           (ITEM_UNITS * GROUP_SIZE) +                         \
                       (index_t)get_local_id(0);                               \
        if (p.vec4_parts >> i & 1) {                                           \
            COPY_UNITS(CAT(BITS, 4), i, 4)                                     \
        } else {                                                               \
            COPY_UNITS(BITS, i, 1)                                             \
        }                                                                      \
    }

KERNEL void concat(__global BITS *target, __global const BITS *source0,
                   __global const BITS *source1, __global const BITS *source2,
                   __global const BITS *source3, __global const BITS *source4,
                   __global const BITS *source5, __global const BITS *source6,
                   __global const BITS *source7, const struct concat_params p)
{
    ulong group = get_group_id(0);
    COPY_PART(0, p.first_group[1])
    COPY_PART(1, p.first_group[2])
    COPY_PART(2, p.first_group[3])
    COPY_PART(3, p.first_group[4])
    COPY_PART(4, p.first_group[5])
    COPY_PART(5, p.first_group[6])
    COPY_PART(6, p.first_group[7])
    COPY_PART(7, ULONG_MAX)
}

#endif
