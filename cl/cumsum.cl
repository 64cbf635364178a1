/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cumulative sums of rows. In each iteration, a work-item (a lane of its row)
 * adds up LANE_ELEMENTS consecutive elements. The lanes of the row then add the
 * totals of the preceding lanes and iterations.
 *
 * Long rows are split: cumsum_partial_pass stores the sum of each split. The
 * kernel cumsum, compiled with IS_SPLIT, adds the sums of the preceding splits.
 * A result is never computed from elements that are not part of its sum,
 * because one of them may be NaN or infinite.
 */
#include "common/row_params.cl"

/* Elements of a row that a work-item adds up in one iteration. */
#define LANE_ELEMENTS 16

struct cumsum_params {
    struct row_mapping by;
    uint32_t outer_rank;
    uint32_t exclusive; /* 1 if a result does not include its own element */
    uint64_t out_offset, in_offset; /* of the element where the sum starts */
    int64_t in_stride, out_stride;  /* negative if the sum runs backwards */
    struct fast_divmod outer;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
};
PARAMS_SIZE(cumsum_params, 344);

#ifdef __OPENCL_C_VERSION__
#include "common/lane_reduce.cl"

/* With ROW_ACCESS_VEC4, rows are contiguous and consist of aligned vectors of
 * four elements, whose order is reversed if the stride is -1. Otherwise, rows
 * have any strides. */
#define ROW_ACCESS_VEC4 1
#ifndef ROW_ACCESS
#define ROW_ACCESS 0
#endif

/* 1 if rows consist of several splits. */
#ifndef IS_SPLIT
#define IS_SPLIT 0
#endif
#if IS_SPLIT
#define PARTIALS __global const float *partials,
#define ADD_PRECEDING_SPLITS                                                   \
    __local float split_sums[GROUP_SIZE];                                      \
    for (ulong i = at.lane; inside && i < at.split; i += at.lanes)             \
        total += partials[i * p.by.rows + at.row];                             \
    total = lanes_sum(total, split_sums, at.lanes, at.step);
#else
#define PARTIALS
#define ADD_PRECEDING_SPLITS
#endif

#define DECLARE_LANES                                                          \
    struct lane_assignment at =                                                \
        lane_assign(p.by.lanes_log2, p.by.lanes_interleaved, p.by.splits,      \
                    p.by.row_groups);                                          \
    bool inside = at.row < p.by.rows;                                          \
    index_t row = (index_t)(inside ? at.row : 0);

/* A loop over the iterations of a split. All work-items of a work-group have
 * the same number of iterations. In each, a work-item has the `count` elements
 * from j on. */
#define FOR_EACH_ITERATION                                                     \
    ulong begin = at.split * p.by.elements_per_split;                          \
    ulong end = min(begin + p.by.elements_per_split, p.by.count);              \
    for (ulong first = begin; first < end;                                     \
         first += (ulong)LANE_ELEMENTS * at.lanes)
#define DECLARE_ELEMENTS                                                       \
    ulong j = first + at.lane * LANE_ELEMENTS;                                 \
    uint count =                                                               \
        inside && j < end ? (uint)min(end - j, (ulong)LANE_ELEMENTS) : 0;

/* Loads `count` elements. Missing elements are 0. */
static inline void elements_load(float *x, __global const float *in,
                                 long stride, uint count)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    REPEAT(i, LANE_ELEMENTS / 4)
    {
        float4 vector = (float4)(0.0f);
        if (4 * i < count && stride > 0)
            vector = *(__global const float4 *)(in + 4 * i);
        else if (4 * i < count)
            vector = (*(__global const float4 *)(in - 4 * i - 3)).s3210;
        x[4 * i] = vector.s0, x[4 * i + 1] = vector.s1;
        x[4 * i + 2] = vector.s2, x[4 * i + 3] = vector.s3;
    }
#else
    REPEAT(i, LANE_ELEMENTS)
    x[i] = i < count ? in[i * stride] : 0.0f;
#endif
}

static inline void elements_store(__global float *out, const float *x,
                                  long stride, uint count)
{
#if ROW_ACCESS == ROW_ACCESS_VEC4
    REPEAT(i, LANE_ELEMENTS / 4)
    {
        float4 vector =
            (float4)(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
        if (4 * i < count && stride > 0)
            *(__global float4 *)(out + 4 * i) = vector;
        else if (4 * i < count)
            *(__global float4 *)(out - 4 * i - 3) = vector.s3210;
    }
#else
    REPEAT(i, LANE_ELEMENTS)
    if (i < count)
        out[i * stride] = x[i];
#endif
}

/* Returns the sum of `own` over the preceding lanes of the row, and adds the
 * sum over all lanes to *total. All work-items of the work-group must call this
 * function. `sums` is local memory for GROUP_SIZE values. */
INLINE float lanes_scan(float own, float *total, __local float *sums,
                        const struct lane_assignment *at)
{
    uint id = get_local_id(0);
    float sum = own;
    for (uint distance = 1; distance < at->lanes; distance *= 2) {
        sums[id] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (at->lane >= distance)
            sum += sums[id - distance * at->step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sums[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float before = at->lane > 0 ? sums[id - at->step] : 0.0f;
    *total += sums[id + (at->lanes - 1 - at->lane) * at->step];
    barrier(CLK_LOCAL_MEM_FENCE);
    return before;
}

#ifdef BUILD_cumsum_partial_pass
KERNEL void cumsum_partial_pass(__global float *partials,
                                __global const float *in,
                                const struct cumsum_params p)
{
    __local float sums[GROUP_SIZE];
    DECLARE_LANES
    long from = (long)p.in_offset;
    ADD_OFFSET(from, row, p.outer, p.outer_rank, p.in_strides);
    float sum = 0.0f;
    FOR_EACH_ITERATION
    {
        float x[LANE_ELEMENTS], pairs = 0.0f;
        DECLARE_ELEMENTS
        elements_load(x, in + from + (long)j * p.in_stride, p.in_stride, count);
        REPEAT(i, LANE_ELEMENTS / 2)
        pairs += x[2 * i] + x[2 * i + 1];
        sum += pairs;
    }
    sum = lanes_sum(sum, sums, at.lanes, at.step);
    if (at.lane == 0 && inside)
        partials[at.split * p.by.rows + at.row] = sum;
}
#endif

#ifdef BUILD_cumsum
KERNEL void cumsum(__global float *out, __global const float *in,
                   PARTIALS const struct cumsum_params p)
{
    __local float sums[GROUP_SIZE];
    DECLARE_LANES
    long from = (long)p.in_offset, to = (long)p.out_offset;
    ADD_OFFSET(from, row, p.outer, p.outer_rank, p.in_strides);
    ADD_OFFSET(to, row, p.outer, p.outer_rank, p.out_strides);
    float total = 0.0f;
    ADD_PRECEDING_SPLITS
    FOR_EACH_ITERATION
    {
        float x[LANE_ELEMENTS], sum = 0.0f, before = total;
        DECLARE_ELEMENTS
        elements_load(x, in + from + (long)j * p.in_stride, p.in_stride, count);
        REPEAT(i, LANE_ELEMENTS)
        {
            float previous = sum;
            sum += x[i];
            x[i] = p.exclusive ? previous : sum;
        }
        before += lanes_scan(sum, &total, sums, &at);
        REPEAT(i, LANE_ELEMENTS)
        x[i] += before;
        elements_store(out + to + (long)j * p.out_stride, x, p.out_stride,
                       count);
    }
}
#endif

#endif
