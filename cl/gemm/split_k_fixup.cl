/* SPDX-License-Identifier: Apache-2.0 */
/* Split-K fixup: adds up the sums of all splits in a fixed order and applies
 * the epilogue (scaling, bias and activation). The partials are matrices, or
 * tiles if unsplit_tiles > 0. A work-item adds up vectors of four partials of
 * tiles, and of matrices with C_IS_VEC4. Otherwise 2^lanes_log2 work-items (the
 * lanes) add up those of one element, and neighbouring work-items those of
 * neighbouring elements. One kernel serves all cases, because one kernel
 * compiles faster than three. */
#include "common/lane_reduce.cl"
#include "gemm/gemm_common.cl"

/* The element, or the first of four elements, of a work-item. */
struct position {
    uint batch, row, column;
    bool exists;
};

/* Sets `at` to the position of vector number i of the tiles. (oclgrind cannot
 * run what clang makes of a struct that is returned in a branch.) */
INLINE void tiles_position(struct position *at, uint i,
                           const struct gemm_params *p)
{
    const uint columns = max(p->tile_n / 4, 1u);
    const uint vectors = max(p->tile_m * columns, 1u);
    const uint index = i / vectors, within = i - index * vectors;
    const uint y = within / columns, x = (within - y * columns) * 4;
    const uint4 tile = tile_from_index(p->unsplit_tiles + index, p);
    at->batch = tile.s2;
    at->row = tile.s0 * p->tile_m + y;
    at->column = tile.s1 * p->tile_n + x;
    at->exists = index < p->split_tiles;
}

/* Sets `at` to the position of element number i of c. */
INLINE void matrix_position(struct position *at, ulong i,
                            const struct gemm_params *p)
{
    const index_t columns = max(p->n, 1u), rows = max(p->m, 1u);
    const index_t line = (index_t)i / columns, matrix = line / rows;
    at->batch = (uint)matrix;
    at->row = (uint)(line - matrix * rows);
    at->column = (uint)((index_t)i - line * columns);
    at->exists = i < p->c_elements;
}

KERNEL void split_k_fixup(__global C_T *c, __global const float *partial,
                          __global const C_T *bias,
                          __global const C_T *old_base,
                          const struct gemm_params p)
{
    __local float lane_sums[GROUP_SIZE];
    const bool has_tiles = p.unsplit_tiles > 0;
    const bool c_is_vec4 = (p.flags & C_IS_VEC4) != 0;
    const bool vec4 = has_tiles || (c_is_vec4 && p.lanes_log2 == 0);
    const uint lanes = 1u << p.lanes_log2, step = GROUP_SIZE / lanes;
    const uint lane = get_local_id(0) / step;
    ulong i = (ulong)get_group_id(0) * step + get_local_id(0) % step;
    ulong partials = p.c_elements; /* of a split */
    struct position at;
    if (has_tiles) {
        tiles_position(&at, (uint)i, &p);
        partials = (ulong)p.split_tiles * p.tile_m * p.tile_n;
        i *= 4;
    } else {
        i *= vec4 ? 4 : 1;
        matrix_position(&at, i, &p);
    }
    partial += p.partial_offset + (at.exists ? i : 0) + lane * partials;
    partials *= lanes;
    float4 sum = (float4)(-0.0f); /* -0 + x is x, also if x is -0 */
    if (vec4) {
        for (uint split = lane; split < p.splits; split += lanes) {
            sum += *(__global const float4 *)partial;
            partial += partials;
        }
    } else {
        for (uint split = lane; split < p.splits; split += lanes) {
            sum.s0 += *partial;
            partial += partials;
        }
    }
    sum.s0 = lanes_sum(sum.s0, lane_sums, lanes, step);
    if (!at.exists || lane > 0)
        return;
    const uint left = vec4 ? columns_left(at.row, at.column, &p) : 1;
    if (vec4 && c_is_vec4) {
        if (left > 0)
            epilogue_vec4(c, OLD(p), bias, at.batch, at.row, at.column, sum,
                          &p);
        return;
    }
#pragma unroll 1
    for (uint e = 0; e < 4; ++e)
        if (e < left)
            epilogue_scalar(c, OLD(p), bias, at.batch, at.row, at.column + e,
                            ELEMENT(sum, e), &p);
}
