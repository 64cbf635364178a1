/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm and rms_norm: rows of elements less their mean (layer_norm alone)
 * over their root mean square, times scale, plus bias.
 *
 * held   the row is read once, and kept (rows.cl)
 * part   a longer row, or one of several axes, is cut into splits of chunk
 *        elements, a group each, which leave their moments ...
 * write  ... of which each split finds those of the row, and writes
 */
#define IN_STEP p.in_steps[0]
#define OUT_STEP p.out_steps[0]
#define NOTHING 0.0f
#include "rows.cl"

/* 1: rms_norm. */
#ifndef RMS
#define RMS 0
#endif
struct norm {
    ROWS_HEAD;
    uint kept_rank, reduced_rank, affine_rank;
    float epsilon;
    ulong out_offset, in_offset, scale_offset, bias_offset;
    struct extents kept, reduced, affine;
    long out_strides[AXES], in_strides[AXES]; /* of rows */
    long out_steps[AXES], in_steps[AXES];     /* of their elements */
    long scale_steps[AXES], bias_steps[AXES];
};

#if RMS
#define AFFINE __global const float *restrict scale,
#define BIAS(x) (float4)(0.0f)
#else
#define AFFINE                                                                 \
    __global const float *restrict scale, __global const float *restrict bias,
#define BIAS(x) (x)
#endif

/* ---- rows of one axis that are kept ---- */

#define ADD(k) sums += CAT(x, k);
/* What is no element must not differ from the mean. */
#define LESS(k, c) (THERE(k, c) ? mean : 0.0f)
#define CENTER_EACH(k)                                                         \
    CAT(x, k) -= (float4)(LESS(k, 0), LESS(k, 1), LESS(k, 2), LESS(k, 3));
#if ACCESS == VECTORS
#define CENTER(k) CAT(x, k) -= THERE(k, 0) ? mean : 0.0f;
#else
#define CENTER CENTER_EACH
#endif
#define SQUARE(k) sums += CAT(x, k) * CAT(x, k);
/* Of rows that are not strided, scale and bias are not, either. */
#if ACCESS == STRIDED
#define SCALE(j) scale[p.scale_offset + (long)(j)*p.scale_steps[0]]
#define SHIFT(j) bias[p.bias_offset + (long)(j)*p.bias_steps[0]]
#elif ACCESS == LINED
#define OWN(x, offset, j)                                                      \
    (x + ((long)p.offset + FIRST_PLACE))[(j)-FIRST_PLACE]
#define SCALE(j) OWN(scale, scale_offset, j)
#define SHIFT(j) OWN(bias, bias_offset, j)
#else
#define SCALE(j) scale[p.scale_offset + (j)]
#define SHIFT(j) bias[p.bias_offset + (j)]
#endif
#if RMS
#define AFFINE_ONE(y, j) ((y)*SCALE(j))
#else
#define AFFINE_ONE(y, j) ((y)*SCALE(j) + SHIFT(j))
#endif
#define RESULT_ONE(x, j) AFFINE_ONE((x)*factor, j)
#if ACCESS == VECTORS
#define RESULT_FOUR(x, j)                                                      \
    (x) * factor *FOUR(scale, p.scale_offset + (j)) +                          \
        BIAS(FOUR(bias, p.bias_offset + (j)))
#else
#define RESULT_FOUR(x, j)                                                      \
    (float4)(RESULT_ONE(x.s0, (j)), RESULT_ONE(x.s1, (j) + 1),                 \
             RESULT_ONE(x.s2, (j) + 2), RESULT_ONE(x.s3, (j) + 3))
#endif

KERNEL void held(__global float *out, __global const float *in, AFFINE
                 const struct norm p)
{
    __local float squares[GROUP];
#if !RMS
    __local float means[GROUP];
#endif
    STAGE_DECLARE
    struct place at = PLACE_FIND(0);
    ROW_FIND
    uint count = ROW_COUNT;
    STAGE_FILL
    float4 sums = (float4)(0.0f);
    HOLD_ALL
#if !RMS
    EACH(ADD)
    float mean = ROW_SUM(sums, means) / (float)p.count;
    sums = (float4)(0.0f);
    EACH(CENTER)
#endif
    EACH(SQUARE)
    float square = ROW_SUM(sums, squares);
    float factor = 1.0f / sqrt(square / (float)p.count + p.epsilon);
    EACH(WRITE)
    STAGE_EMPTY
}

/* ---- longer rows, and rows of several axes ---- */

#if ACCESS == VECTORS || ACCESS == STRIDED || ACCESS == LINED

/* Of some elements: x how many, y their mean (0 in rms_norm), z the sum of the
 * squares of what they differ from it by. */
static inline float4 moments_join(float4 a, float4 b)
{
    float n = a.x + b.x;
    float whole = max(n, 1.0f);
    float apart = b.y - a.y;
    return (float4)(n, (a.x * a.y + b.x * b.y) / whole,
                    a.z + b.z + apart * apart * (a.x * b.x / whole), 0.0f);
}
static inline float4 lanes_join(float4 own, __local float4 *parts, uint lanes,
                                uint step)
    LANES_BODY(moments_join, from_lane4)

static inline float4 moments_of(float16 x)
{
#if RMS
    return (float4)(16.0f, 0.0f, sum16(x * x), 0.0f);
#else
    float mean = sum16(x) * 0.0625f;
    float16 d = x - mean;
    return (float4)(16.0f, mean, sum16(d * d), 0.0f);
#endif
}
static inline float4 moments_of_one(float x)
{
#if RMS
    return (float4)(1.0f, 0.0f, x * x, 0.0f);
#else
    return (float4)(1.0f, x, 0.0f, 0.0f);
#endif
}
static inline float4 moments_of_four(float4 x)
{
#if RMS
    return (float4)(4.0f, 0.0f, sum4(x * x), 0.0f);
#else
    float mean = sum4(x) * 0.25f;
    float4 d = x - mean;
    return (float4)(4.0f, mean, sum4(d * d), 0.0f);
#endif
}

KERNEL void part(__global float4 *parts, __global const float *in,
                 const struct norm p)
{
    __local float4 joined[GROUP];
    struct place at = place_of(p.lanes_log2, 0, p.splits, p.row_groups);
    long from = (long)p.in_offset;
    bool inside = at.row < p.rows;
    if (inside)
        WALK(from, (index_t)at.row, p.kept, p.kept_rank, p.in_strides);
    PART_SHIFT_FIND
    SPLIT_FIND
    float4 own = (float4)(0.0f);
#if ACCESS == VECTORS
    const long next = 4 * SPLIT_LANES;
    for (; j + 3 * next < end; j += 4 * next) {
        float4 a = FOUR(in, from + j), b = FOUR(in, from + j + next);
        float4 c = FOUR(in, from + j + 2 * next);
        float4 d = FOUR(in, from + j + 3 * next);
        own = moments_join(own, moments_of((float16)(a, b, c, d)));
    }
    for (; j < end; j += next)
        own = moments_join(own, moments_of_four(FOUR(in, from + j)));
#elif ACCESS == LINED
#define AHEAD(k) (in + (from + j))[(k)*lanes]
#define WHOLE_AT(most) (j >= 0 && j + ((most)-1) * lanes < end)
    const long lanes = SPLIT_LANES;
    for (; j < end; j += 16 * lanes) {
        if (WHOLE_AT(16)) {
            float16 x = (float16)(
                AHEAD(0), AHEAD(1), AHEAD(2), AHEAD(3), AHEAD(4), AHEAD(5),
                AHEAD(6), AHEAD(7), AHEAD(8), AHEAD(9), AHEAD(10), AHEAD(11),
                AHEAD(12), AHEAD(13), AHEAD(14), AHEAD(15));
            own = moments_join(own, moments_of(x));
        } else {
            for (long k = 0; k < 16 && j + k * lanes < end; ++k)
                if (j + k * lanes >= 0)
                    own = moments_join(own, moments_of_one(AHEAD(k)));
        }
    }
#else
#define AHEAD(k) in[from + (long)(j + (k)*at.lanes) * p.in_steps[0]]
    for (; p.reduced_rank == 1 && j + 15 * (long)at.lanes < end;
         j += 16 * at.lanes) {
        float16 x = (float16)(AHEAD(0), AHEAD(1), AHEAD(2), AHEAD(3), AHEAD(4),
                              AHEAD(5), AHEAD(6), AHEAD(7), AHEAD(8), AHEAD(9),
                              AHEAD(10), AHEAD(11), AHEAD(12), AHEAD(13),
                              AHEAD(14), AHEAD(15));
        own = moments_join(own, moments_of(x));
    }
    for (; j < end; j += at.lanes) {
        long i = from;
        WALK(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        own = moments_join(own, moments_of_one(in[i]));
    }
#endif
    own = lanes_join(own, joined, at.lanes, 1);
    if (at.lane == 0 && inside)
        parts[at.split * p.rows + at.row] = own;
}

KERNEL void write(__global float *out, __global const float *in, AFFINE
                  __global const float4 *parts, const struct norm p)
{
    __local float4 joined[GROUP];
    struct place at = place_of(p.lanes_log2, 0, p.splits, p.row_groups);
    ROW_FIND
    float4 own = (float4)(0.0f);
    if (inside)
        for (uint i = at.lane; i < p.splits; i += at.lanes)
            own = moments_join(own, parts[i * p.rows + at.row]);
    own = lanes_join(own, joined, at.lanes, 1);
    float factor = 1.0f / sqrt(own.z / (float)p.count + p.epsilon);
    SPLIT_FIND
#if ACCESS == VECTORS
    for (; j < end; j += 4 * SPLIT_LANES)
        FOUR_AT(out, to + j) =
            (FOUR(in, from + j) - own.y) * factor *
                FOUR(scale, p.scale_offset + j) +
            BIAS(FOUR(bias, p.bias_offset + j));
#elif ACCESS == LINED
#define RESULT_AHEAD(k)                                                        \
    AFFINE_ONE((AHEAD(k) - own.y) * factor, j + (k)*lanes)
#define RESULT_HOLD(k) float y##k = RESULT_AHEAD(k);
#define RESULT_PUT(k) (out + (to + j))[(k)*lanes] = y##k;
    const long lanes = SPLIT_LANES;
    for (; j < end; j += 8 * lanes) {
        if (WHOLE_AT(8)) {
            EACH_8(RESULT_HOLD)
            EACH_8(RESULT_PUT)
        } else {
            for (long k = 0; k < 8 && j + k * lanes < end; ++k)
                if (j + k * lanes >= 0)
                    (out + (to + j))[k * lanes] = RESULT_AHEAD(k);
        }
    }
#else
#define LINE_AHEAD(k)                                                          \
    (float4)(AHEAD(k), AHEAD((k) + 1), AHEAD((k) + 2), AHEAD((k) + 3))
#define PUT_AHEAD(x, k)                                                        \
    out[to + (long)(j + (k)*at.lanes) * p.out_steps[0]] =                      \
        AFFINE_ONE((x)*factor, j + (k)*at.lanes);
    bool line = p.reduced_rank == 1 && p.affine_rank == 1;
    for (; line && j + 7 * (long)at.lanes < end; j += 8 * at.lanes) {
        float4 a = LINE_AHEAD(0) - own.y, b = LINE_AHEAD(4) - own.y;
        PUT_AHEAD(a.s0, 0) PUT_AHEAD(a.s1, 1)
        PUT_AHEAD(a.s2, 2) PUT_AHEAD(a.s3, 3)
        PUT_AHEAD(b.s0, 4) PUT_AHEAD(b.s1, 5)
        PUT_AHEAD(b.s2, 6) PUT_AHEAD(b.s3, 7)
    }
    for (; j < end; j += at.lanes) {
        long i = from, o = to, s = (long)p.scale_offset;
        WALK(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        WALK(o, (index_t)j, p.reduced, p.reduced_rank, p.out_steps);
        WALK(s, (index_t)j, p.affine, p.affine_rank, p.scale_steps);
        float y = (in[i] - own.y) * factor * scale[s];
#if !RMS
        long b = (long)p.bias_offset;
        WALK(b, (index_t)j, p.affine, p.affine_rank, p.bias_steps);
        y += bias[b];
#endif
        out[o] = y;
    }
#endif
}
#endif
