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

/* The part of this work-group. Its parameters are copied, so that the code of
 * the copy exists once. */
struct part {
    __global const BITS *source;
    ulong first_group, units;
    struct {
        ulong extent[1];
        uint multiplier[1], shift[1];
    } row_units;
    ulong target_offset, source_offset;
    long target_pitch, source_pitch;
    bool is_vec4;
};

#define PART(i)                                                                \
    (struct part)                                                              \
    {                                                                          \
        source##i, p.first_group[i], p.units[i],                               \
            {{p.row_units.extent[i]},                                          \
             {p.row_units.multiplier[i]},                                      \
             {p.row_units.shift[i]}},                                          \
            p.target_offset[i], p.source_offset[i], p.target_pitch[i],         \
            p.source_pitch[i], (p.vec4_parts >> i & 1) != 0                    \
    }
#define CASE_PART(i)                                                           \
    case i:                                                                    \
        part = PART(i);                                                        \
        break

/* Copies ITEM_UNITS units of the part. */
#define COPY_UNITS(type, elements)                                             \
    REPEAT (k, ITEM_UNITS) {                                                   \
        index_t row = unit + k * GROUP_SIZE;                                   \
        if (row < part.units) {                                                \
            long column;                                                       \
            DIVMOD(row, part.row_units, 0, column);                            \
            column *= (elements);                                              \
            *(__global type *)(target + column +                               \
                               (long)row * part.target_pitch) =                \
                *(__global const type *)(source + column +                     \
                                         (long)row * part.source_pitch);       \
        }                                                                      \
    }

KERNEL void concat(__global BITS *target, __global const BITS *source0,
                   __global const BITS *source1, __global const BITS *source2,
                   __global const BITS *source3, __global const BITS *source4,
                   __global const BITS *source5, __global const BITS *source6,
                   __global const BITS *source7, const struct concat_params p)
{
    ulong group = get_group_id(0);
    uint index = 0;
    REPEAT (i, CONCAT_PARTS - 1)
        index += group >= p.first_group[i + 1];
    /* The branch is the same in all work-items.  Selecting each member instead
     * took 6% more time on an H200. */
    struct part part = PART(0);
    switch (index) {
        CASE_PART(1);
        CASE_PART(2);
        CASE_PART(3);
        CASE_PART(4);
        CASE_PART(5);
        CASE_PART(6);
        CASE_PART(7);
    default:
        break;
    }
    const index_t unit = (index_t)(group - part.first_group) *
                             (ITEM_UNITS * GROUP_SIZE) +
                         (index_t)get_local_id(0);
    __global const BITS *source = part.source + part.source_offset;
    target += part.target_offset;
    if (part.is_vec4) {
        COPY_UNITS(CAT(BITS, 4), 4)
    } else {
        COPY_UNITS(BITS, 1)
    }
}

#endif
