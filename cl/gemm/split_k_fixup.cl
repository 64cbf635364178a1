/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a product of its parts: the sums over chunks of k, in one fixed
 * order.
 */
#include "common/lane_reduce.cl"
#include "gemm/gemm_common.cl"

/* Where element i of all batches is. */
#define WHERE(i)                                                               \
    index_t columns = max(p.n, 1u), rows = max(p.m, 1u);                       \
    index_t line = (index_t)(i) / columns;                                     \
    uint column = (uint)((index_t)(i)-line * columns);                         \
    uint batch = (uint)(line / rows), row = (uint)(line - batch * rows)

/* An item an element, or four of them. */
KERNEL void join_parts(__global C_T *c, __global const float *partial,
                       __global const C_T *bias, const struct product p)
{
    uint wide = p.flags & C_VECTOR ? 4 : 1;
    ulong i = (ulong)get_global_id(0) * wide;
    if (i >= p.plane)
        return;
    WHERE(i);
    partial += p.partial_offset + i;
    if (p.flags & C_VECTOR) {
        float4 sum = *(__global const float4 *)partial;
        for (uint split = 1; split < p.splits; ++split)
            sum += *(__global const float4 *)(partial + split * p.plane);
        finish4(c, bias, batch, row, column, sum, &p);
    } else {
        float sum = *partial;
        for (uint split = 1; split < p.splits; ++split)
            sum += partial[split * p.plane];
        finish1(c, bias, batch, row, column, sum, &p);
    }
}

/* Of partials that are tiles: an item four columns of one. */
KERNEL void join_tiles(__global C_T *c, __global const float *partial,
                       __global const C_T *bias, const struct product p)
{
    uint columns = max(p.tile_n / 4, 1u), each = max(p.tile_m * columns, 1u);
    uint index = get_global_id(0) / each;
    uint within = get_global_id(0) - index * each;
    uint y = within / columns, x = (within - y * columns) * 4;
    if (index >= p.parted)
        return;
    uint4 tile = tile_at(p.whole + index, &p);
    const ulong step = (ulong)p.parted * each;
    __global const float4 *at = (__global const float4 *)(partial +
                                                          p.partial_offset) +
                                (ulong)index * each + within;
    float4 sum = *at;
    for (uint split = 1; split < p.splits; ++split)
        sum += at[split * step];
    finish_sums(c, bias, tile.s2, tile.s0 * p.tile_m + y,
                tile.s1 * p.tile_n + x, sum, &p);
}

/* Where there are few elements: 1 << lanes_log2 items an element, each with
 * every so manieth part.  Neighbours have neighbouring elements. */
KERNEL void join_lanes(__global C_T *c, __global const float *partial,
                       __global const C_T *bias, const struct product p)
{
    __local float parts[GROUP];
    uint lanes = 1u << p.lanes_log2, step = GROUP / lanes;
    uint lane = get_local_id(0) / step;
    ulong i = (ulong)get_group_id(0) * step + get_local_id(0) % step;
    bool inside = i < p.plane;
    float sum = 0.0f;
    partial += p.partial_offset + (inside ? i : 0);
    for (uint split = lane; split < p.splits; split += lanes)
        sum += partial[split * p.plane];
    sum = lanes_sum(sum, parts, lanes, step);
    if (!inside || lane > 0)
        return;
    WHERE(i);
    finish1(c, bias, batch, row, column, sum, &p);
}
