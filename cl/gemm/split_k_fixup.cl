/* SPDX-License-Identifier: Apache-2.0 */
/* Split-K fixup: adds up the sums of all splits in a fixed order and applies
 * the epilogue (scaling, bias and activation). */
#include "common/lane_reduce.cl"
#include "gemm/gemm_common.cl"

#define DECLARE_POSITION(i)                                                    \
    index_t columns = max(p.n, 1u), rows = max(p.m, 1u);                       \
    index_t line = (index_t)(i) / columns;                                     \
    uint column = (uint)((index_t)(i)-line * columns);                         \
    uint batch = (uint)(line / rows), row = (uint)(line - batch * rows)

/* Adds up partials stored as matrices. A work-item computes 1 or 4 elements. */
#ifdef BUILD_split_k_fixup
KERNEL void split_k_fixup(__global C_T *c, __global const float *partial,
                          __global const C_T *bias,
                          __global const C_T *old_base,
                          const struct gemm_params p)
{
    uint elements_per_item = p.flags & C_IS_VEC4 ? 4 : 1;
    ulong i = (ulong)get_global_id(0) * elements_per_item;
    if (i >= p.c_elements)
        return;
    DECLARE_POSITION(i);
    partial += p.partial_offset + i;
    if (p.flags & C_IS_VEC4) {
        float4 sum = *(__global const float4 *)partial;
        for (uint split = 1; split < p.splits; ++split)
            sum += *(__global const float4 *)(partial + split * p.c_elements);
        epilogue_vec4(c, OLD(p), bias, batch, row, column, sum, &p);
    } else {
        float sum = *partial;
        for (uint split = 1; split < p.splits; ++split)
            sum += partial[split * p.c_elements];
        epilogue_scalar(c, OLD(p), bias, batch, row, column, sum, &p);
    }
}
#endif

/* Adds up partials stored tile by tile. A work-item computes four elements. */
#ifdef BUILD_split_k_fixup_tiles
KERNEL void split_k_fixup_tiles(__global C_T *c, __global const float *partial,
                                __global const C_T *bias,
                          __global const C_T *old_base,
                          const struct gemm_params p)
{
    uint columns = max(p.tile_n / 4, 1u),
         items_per_tile = max(p.tile_m * columns, 1u);
    uint index = get_global_id(0) / items_per_tile;
    uint within = get_global_id(0) - index * items_per_tile;
    uint y = within / columns, x = (within - y * columns) * 4;
    if (index >= p.split_tiles)
        return;
    uint4 tile = tile_from_index(p.unsplit_tiles + index, &p);
    const ulong step = (ulong)p.split_tiles * items_per_tile;
    __global const float4 *at = (__global const float4 *)(partial +
                                                          p.partial_offset) +
        (ulong)index * items_per_tile + within;
    float4 sum = *at;
    for (uint split = 1; split < p.splits; ++split)
        sum += at[split * step];
    epilogue_clipped(c, OLD(p), bias, tile.s2, tile.s0 * p.tile_m + y,
                     tile.s1 * p.tile_n + x, sum, &p);
}
#endif

/* Adds up partials stored as matrices, for a small c. 2^lanes_log2 work-items
 * compute an element. Neighbouring work-items compute neighbouring elements. */
#ifdef BUILD_split_k_fixup_lanes
KERNEL void split_k_fixup_lanes(__global C_T *c, __global const float *partial,
                                __global const C_T *bias,
                          __global const C_T *old_base,
                          const struct gemm_params p)
{
    __local float partials[GROUP_SIZE];
    uint lanes = 1u << p.lanes_log2, step = GROUP_SIZE / lanes;
    uint lane = get_local_id(0) / step;
    ulong i = (ulong)get_group_id(0) * step + get_local_id(0) % step;
    bool inside = i < p.c_elements;
    float sum = 0.0f;
    partial += p.partial_offset + (inside ? i : 0);
    for (uint split = lane; split < p.splits; split += lanes)
        sum += partial[split * p.c_elements];
    sum = lanes_sum(sum, partials, lanes, step);
    if (!inside || lane > 0)
        return;
    DECLARE_POSITION(i);
    epilogue_scalar(c, OLD(p), bias, batch, row, column, sum, &p);
}
#endif
