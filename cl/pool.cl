/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum and average pooling. A work-item computes one element of the output.
 * The tensors have the axes [batch, channels, z, y, x]; arrays of three
 * elements describe the axes x, y and z. */
#include "common/params.cl"

struct pool_params {
    uint64_t items;
    uint64_t out_offset, index_offset, in_offset;
    uint64_t volume; /* elements of the input's spatial axes */
    struct fast_divmod space;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
    int64_t index_strides[MAX_AXES];
    int64_t lengths[3], kernel_size[3], stride[3], dilation[3], begin[3];
    /* An average divides by the number of positions below these limits. */
    int64_t counted[3];
    uint64_t include_pad;
};
PARAMS_SIZE(pool_params, 512);

#ifdef __OPENCL_C_VERSION__
#include "common/indexing.cl"

/* 1 for the maximum, 2 for the maximum and its index, 3 for the average. */
#ifndef REDUCTION
#define REDUCTION 1
#endif
#define HAS_INDICES (REDUCTION == 2)
#define IS_AVERAGE (REDUCTION == 3)

#if HAS_INDICES
#define INDICES __global long *indices,
#else
#define INDICES
#endif

/* Loops over the positions of a window along an axis. */
#define LOOP_OVER_WINDOW(k, position, axis, start)                             \
    offset_t position = start;                                                 \
    for (offset_t k = 0; k < (offset_t)p.kernel_size[axis];                    \
         ++k, position += (offset_t)p.dilation[axis])

/* Number of the positions of a window that an average counts, along an axis. */
static inline float positions_counted(offset_t start, offset_t size,
                                      offset_t dilation, offset_t limit,
                                      bool include_pad)
{
    offset_t count = 0;
    for (offset_t k = 0; k < size; ++k, start += dilation)
        count += start < limit && (include_pad || start >= 0);
    return (float)count;
}
#define POSITIONS_COUNTED(axis, start)                                         \
    positions_counted(start, (offset_t)p.kernel_size[axis],                    \
                      (offset_t)p.dilation[axis], (offset_t)p.counted[axis],   \
                      p.include_pad != 0)

#ifdef BUILD_pool
KERNEL void pool(__global float *out, INDICES __global const float *in,
                 const struct pool_params p)
{
    index_t left = (index_t)get_global_id(0);
    if (left >= p.items)
        return;
    long to = (long)p.out_offset, from = (long)p.in_offset;
    offset_t start[3];
#if HAS_INDICES
    long index_to = (long)p.index_offset, plane = 0;
#endif
    REPEAT(axis, 5)
    {
        long at = (long)left;
#if HAS_INDICES
        if (axis == 3)
            plane = at;
#endif
        if (axis < 4)
            DIVMOD(left, p.space, axis, at);
        to += at * p.out_strides[axis];
#if HAS_INDICES
        index_to += at * p.index_strides[axis];
#endif
        if (axis < 3)
            start[axis] = (offset_t)(at * p.stride[axis] - p.begin[axis]);
        else
            from += at * p.in_strides[axis];
    }
#if IS_AVERAGE
    float sum = 0.0f, error = 0.0f;
#else
    float best = -INFINITY;
#endif
#if HAS_INDICES
    long where = -1;
#endif
    LOOP_OVER_WINDOW(i, z, 2, start[2])
    {
        if (z < 0 || z >= (offset_t)p.lengths[2])
            continue;
        LOOP_OVER_WINDOW(j, y, 1, start[1])
        {
            if (y < 0 || y >= (offset_t)p.lengths[1])
                continue;
            long row = from + (long)z * p.in_strides[2] +
                       (long)y * p.in_strides[1];
            LOOP_OVER_WINDOW(k, x, 0, start[0])
            {
                if (x < 0 || x >= (offset_t)p.lengths[0])
                    continue;
                float value = in[row + (long)x * p.in_strides[0]];
#if IS_AVERAGE
                /* Kahan summation */
                float term = value - error, next = sum + term;
                error = (next - sum) - term;
                sum = next;
#else
                bool wins = !(value <= best) && best == best;
#if HAS_INDICES
                wins = wins || where < 0;
                long position =
                    ((long)z * p.lengths[1] + (long)y) * p.lengths[0] + (long)x;
                where = wins ? position : where;
#endif
                best = wins ? value : best;
#endif
            }
        }
    }
#if IS_AVERAGE
    float count = POSITIONS_COUNTED(0, start[0]) *
                  POSITIONS_COUNTED(1, start[1]) *
                  POSITIONS_COUNTED(2, start[2]);
    out[to] = sum / count;
#else
    out[to] = best;
#endif
#if HAS_INDICES
    indices[index_to] = where < 0 ? -1 : plane * (long)p.volume + where;
#endif
}
#endif

#endif
