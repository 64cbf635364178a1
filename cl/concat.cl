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

INLINE struct part part_select(bool second, struct part a, struct part b)
{
    a.source = second ? b.source : a.source;
    a.first_group = second ? b.first_group : a.first_group;
    a.units = second ? b.units : a.units;
    a.row_units.extent[0] =
        second ? b.row_units.extent[0] : a.row_units.extent[0];
    a.row_units.multiplier[0] =
        second ? b.row_units.multiplier[0] : a.row_units.multiplier[0];
    a.row_units.shift[0] = second ? b.row_units.shift[0] : a.row_units.shift[0];
    a.target_offset = second ? b.target_offset : a.target_offset;
    a.source_offset = second ? b.source_offset : a.source_offset;
    a.target_pitch = second ? b.target_pitch : a.target_pitch;
    a.source_pitch = second ? b.source_pitch : a.source_pitch;
    a.is_vec4 = second ? b.is_vec4 : a.is_vec4;
    return a;
}

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
#define SELECT_PART(i)                                                         \
    part = part_select(group >= p.first_group[i], part, PART(i))

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
    struct part part = PART(0);
    SELECT_PART(1);
    SELECT_PART(2);
    SELECT_PART(3);
    SELECT_PART(4);
    SELECT_PART(5);
    SELECT_PART(6);
    SELECT_PART(7);
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
