/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose outputs depend on positions. A work-item computes one element.
 * Its position is the sum of its coordinates, each multiplied by a stride. */
#include "common/params.cl"

struct one_hot_params {
    uint64_t items, target_offset, index_offset, off_offset, on_offset, depth;
    uint64_t rank;
    struct fast_divmod space;
    int64_t target_strides[MAX_AXES], index_strides[MAX_AXES];
    int64_t position_strides[MAX_AXES]; /* 1 along the new axis, else 0 */
};
PARAMS_SIZE(one_hot_params, 376);

struct range_params {
    uint64_t items, target_offset;
    int64_t target_stride, start, delta;
    float float_start, float_delta;
};
PARAMS_SIZE(range_params, 48);

struct trilu_params {
    uint64_t items, target_offset, source_offset;
    int64_t diagonal;
    uint32_t rank, upper;
    struct fast_divmod space;
    int64_t target_strides[MAX_AXES], source_strides[MAX_AXES];
    int64_t position_strides[MAX_AXES]; /* 1 for columns, -1 for rows */
};
PARAMS_SIZE(trilu_params, 360);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

#ifndef BITS
#define BITS uint
#endif
#ifndef INDEX
#define INDEX int
#endif
#ifndef OUT
#define OUT float
#define IS_FLOAT 1
#endif

/* Stores `on` where the index, counted from either end, is the position along
 * the new axis, else `off`. */
#ifdef BUILD_one_hot
KERNEL void one_hot(__global BITS *target, __global const INDEX *indices,
                    __global const BITS *values, const struct one_hot_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long to = (long)p.target_offset, from = (long)p.index_offset, position = 0;
    uint rank = (uint)p.rank;
    ADD_OFFSET(to, item, p.space, rank, p.target_strides);
    ADD_OFFSET(from, item, p.space, rank, p.index_strides);
    ADD_OFFSET(position, item, p.space, rank, p.position_strides);
    long index = (long)indices[from];
    index += (index >> 63) & (long)p.depth;
    target[to] = values[index == position ? p.on_offset : p.off_offset];
}
#endif

/* Stores start + i delta. Integers wrap around. */
#ifdef BUILD_range
KERNEL void range(__global OUT *target, const struct range_params p)
{
    index_t i = (index_t)get_global_id(0);
    if (i >= p.items)
        return;
    long to = (long)p.target_offset + (long)i * p.target_stride;
#if IS_FLOAT
    target[to] = fma((float)i, p.float_delta, p.float_start);
#else
    target[to] = (OUT)((ulong)p.start + (ulong)i * (ulong)p.delta);
#endif
}
#endif

/* Copies a triangle of matrices and stores zeros elsewhere. */
#ifdef BUILD_trilu
KERNEL void trilu(__global BITS *target, __global const BITS *source,
                  const struct trilu_params p)
{
    index_t item = (index_t)get_global_id(0);
    if (item >= p.items)
        return;
    long to = (long)p.target_offset, from = (long)p.source_offset, position = 0;
    ADD_OFFSET(to, item, p.space, p.rank, p.target_strides);
    ADD_OFFSET(from, item, p.space, p.rank, p.source_strides);
    ADD_OFFSET(position, item, p.space, p.rank, p.position_strides);
    bool keeps =
        p.upper ? position >= p.diagonal : position <= p.diagonal;
    BITS x = 0;
    if (keeps)
        x = source[from];
    target[to] = x;
}
#endif

#endif
