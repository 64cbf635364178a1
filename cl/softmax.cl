/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, log_softmax, and cross-entropy with its gradient, over one axis.
 * A row has lanes work-items of one group, neighbours or across (common.cl).
 *
 * held   the row is read once, and kept: HELD vectors of four a work-item
 * part   a longer row is cut into splits of chunk elements, a group each,
 *        which leave their largest element and sum of e^(x - largest) ...
 * write  ... of which each split finds those of the row, and writes
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

#define SOFTMAX 1
#define LOG_SOFTMAX 2
#define LOSS 3
#define GRADIENT 4
#ifndef FORM
#define FORM SOFTMAX
#endif
/* The type of labels. */
#ifndef LABEL
#define LABEL int
#endif
/* Vectors of four elements that a work-item keeps; a power of two <= 32. */
#ifndef HELD
#define HELD 1
#endif
/* 1: rows are aligned vectors of four. */
#ifndef VECTOR
#define VECTOR 1
#endif

struct softmax {
    ulong rows, count, chunk; /* elements of a row; of a split */
    ulong row_groups;
    uint lanes_log2, across, splits, reserved;
    uint kept_rank;
    float scale;
    ulong out_offset, in_offset, label_offset;
    long in_stride, out_stride, label_stride;
    struct extents kept;
    long out_strides[AXES], in_strides[AXES];
};

#if FORM == LOSS || FORM == GRADIENT
#define LABELS __global const LABEL *labels,
#else
#define LABELS
#endif

/* Where the row of at lies; one past the last reads the last. */
#define ROW_FIND                                                               \
    long from = (long)p.in_offset, to = (long)p.out_offset;                    \
    bool inside = at.row < p.rows;                                             \
    index_t row = (index_t)(inside ? at.row : max(p.rows, (ulong)1) - 1);      \
    WALK(from, row, p.kept, p.kept_rank, p.in_strides);                        \
    WALK(to, row, p.kept, p.kept_rank, p.out_strides);

#define IN(j) in[from + (long)(j)*p.in_stride]
#define OUT(j) out[to + (long)(j)*p.out_stride]

#if FORM == LOSS || FORM == GRADIENT
#define LABEL_FIND                                                             \
    long label =                                                               \
        inside ? (long)labels[p.label_offset + (long)at.row * p.label_stride]  \
               : -1;                                                           \
    bool valid = (ulong)label < p.count;
#else
#define LABEL_FIND
#endif

/* What all results of a row need of the sum. */
#if FORM == LOG_SOFTMAX
#define SHARE(sum) float log_sum = log(sum);
#else
#define SHARE(sum) float share = 1.0f / (sum);
#endif
/* The result of element j: x the element, e its e^(x - largest). */
#if FORM == LOG_SOFTMAX
#define RESULT(x, e, j) ((x - largest) - log_sum)
#elif FORM == GRADIENT
#define RESULT(x, e, j)                                                        \
    (valid ? p.scale * (e * share - ((long)(j) == label ? 1.0f : 0.0f)) : NAN)
#else
#define RESULT(x, e, j) (e * share)
#endif

/* ---- rows that are kept ---- */

/* The place of element c of vector k. */
#if VECTOR
#define PLACE(k, c) (((k)*at.lanes + at.lane) * 4u + c)
#else
#define PLACE(k, c) ((4u * (k) + c) * at.lanes + at.lane)
#endif
/* Every load is made, so that none waits for a comparison. */
#define TAKE(k, c)                                                             \
    take(IN(min(PLACE(k, c), count - 1)), PLACE(k, c) < count)
static inline float take(float x, bool there)
{
    return there ? x : -INFINITY;
}
#if VECTOR
#define HOLD(k)                                                                \
    float4 CAT(x, k) = (float4)(-INFINITY);                                    \
    if (PLACE(k, 0) < count)                                                   \
        CAT(x, k) = *(__global const float4 *)(in + from + PLACE(k, 0));
#else
#define HOLD(k)                                                                \
    float4 CAT(x, k) =                                                         \
        (float4)(TAKE(k, 0), TAKE(k, 1), TAKE(k, 2), TAKE(k, 3));
#endif
#define RAISE(k) highest = fmax(highest, CAT(x, k));
/* What is needed of x afterwards takes its place. */
#if FORM == LOG_SOFTMAX || FORM == LOSS
#define ADD(k) terms += exp(CAT(x, k) - largest);
#else
#define ADD(k)                                                                 \
    CAT(x, k) = exp(CAT(x, k) - largest);                                      \
    terms += CAT(x, k);
#endif
#define PUT(k, c, s)                                                           \
    if (inside && PLACE(k, c) < count)                                         \
        OUT(PLACE(k, c)) = RESULT(CAT(x, k).s, CAT(x, k).s, PLACE(k, c));
#if VECTOR
#define WRITE(k)                                                               \
    if (inside && PLACE(k, 0) < count) {                                       \
        *(__global float4 *)(out + to + PLACE(k, 0)) =                         \
            (float4)(RESULT(CAT(x, k).s0, CAT(x, k).s0, PLACE(k, 0)),          \
                     RESULT(CAT(x, k).s1, CAT(x, k).s1, PLACE(k, 1)),          \
                     RESULT(CAT(x, k).s2, CAT(x, k).s2, PLACE(k, 2)),          \
                     RESULT(CAT(x, k).s3, CAT(x, k).s3, PLACE(k, 3)));         \
    }
#else
#define WRITE(k) PUT(k, 0, s0) PUT(k, 1, s1) PUT(k, 2, s2) PUT(k, 3, s3)
#endif

KERNEL void held(__global float *out, __global const float *in, LABELS
                 const struct softmax p)
{
    __local float highs[GROUP], sums[GROUP];
    struct place at =
        place_of(p.lanes_log2, p.across, p.splits, p.row_groups);
    ROW_FIND
    uint count = (uint)p.count;
    EACH(HOLD)
    float4 highest = x0, terms = (float4)(0.0f);
    EACH(RAISE)
    float largest = lanes_max(max4(highest), highs, at.lanes, at.step);
    EACH(ADD)
    float sum = lanes_sum(sum4(terms), sums, at.lanes, at.step);
    LABEL_FIND
#if FORM == LOSS
    if (at.lane == 0 && inside)
        out[to] = valid ? log(sum) - (IN(label) - largest) : NAN;
#else
    SHARE(sum)
    EACH(WRITE)
#endif
}

/* ---- longer rows ---- */

/* Both of a row, or of a part of one; x is -infinity where nothing is in it,
 * and y where something infinite is becomes NaN, as the row's results do. */
static inline float2 join(float2 a, float2 b)
{
    float largest = fmax(a.x, b.x);
    return (float2)(largest,
                    (a.x == largest ? a.y : a.y * exp(a.x - largest)) +
                        (b.x == largest ? b.y : b.y * exp(b.x - largest)));
}
static inline float2 lanes_join(float2 own, __local float2 *parts, uint lanes,
                                uint step)
    LANES_BODY(join, from_lane2)

/* A float4 of vector rows; four elements lanes apart of others. */
#define TAKE_AT(j) ((j) < end ? IN(j) : -INFINITY)
#if VECTOR
#define TAKE4(j)                                                               \
    ((j) < end ? *(__global const float4 *)(in + from + (j))                   \
               : (float4)(-INFINITY))
#else
#define TAKE4(j)                                                               \
    (float4)(TAKE_AT(j), TAKE_AT((j) + at.lanes), TAKE_AT((j) + 2 * at.lanes), \
             TAKE_AT((j) + 3 * at.lanes))
#endif

/* The first element of a lane in its split, and its end. */
#define SPLIT_FIND                                                             \
    ulong begin = at.split * p.chunk;                                          \
    ulong end = inside ? min(begin + p.chunk, p.count) : 0;                    \
    ulong j = begin + at.lane * (VECTOR ? 4 : 1);                              \
    ulong next = 4 * at.lanes;

KERNEL void part(__global float2 *parts, __global const float *in,
                 const struct softmax p)
{
    __local float2 joined[GROUP];
    struct place at =
        place_of(p.lanes_log2, p.across, p.splits, p.row_groups);
    long from = (long)p.in_offset;
    bool inside = at.row < p.rows;
    if (inside)
        WALK(from, (index_t)at.row, p.kept, p.kept_rank, p.in_strides);
    SPLIT_FIND
    float2 own = (float2)(-INFINITY, 0.0f);
    for (; j < end; j += 4 * next) {
        float4 a = TAKE4(j), b = TAKE4(j + next);
        float4 c = TAKE4(j + 2 * next), d = TAKE4(j + 3 * next);
        float16 x = (float16)(a, b, c, d);
        float highest = max16(x);
        if (highest > own.x) {
            own.y *= exp(own.x - highest);
            own.x = highest;
        }
        /* Infinity less infinity belongs in the sum, unless nothing is
         * larger. */
        float shift = own.x == -INFINITY ? 0.0f : own.x;
        own.y += sum16(exp(x - shift));
    }
    own = lanes_join(own, joined, at.lanes, at.step);
    if (at.lane == 0 && inside)
        parts[at.split * p.rows + at.row] = own;
}

#define RESULT_AT(x, j) RESULT(x, exp(x - largest), j)
#if VECTOR
#define PUT4(x, j)                                                             \
    if ((j) < end)                                                             \
        *(__global float4 *)(out + to + (j)) =                                 \
            (float4)(RESULT_AT(x.s0, (j)), RESULT_AT(x.s1, (j) + 1),           \
                     RESULT_AT(x.s2, (j) + 2), RESULT_AT(x.s3, (j) + 3));
#else
#define PUT_AT(x, j)                                                           \
    if ((j) < end)                                                             \
        OUT(j) = RESULT_AT(x, j);
#define PUT4(x, j)                                                             \
    PUT_AT(x.s0, j) PUT_AT(x.s1, (j) + at.lanes)                               \
    PUT_AT(x.s2, (j) + 2 * at.lanes) PUT_AT(x.s3, (j) + 3 * at.lanes)
#endif

KERNEL void write(__global float *out, __global const float *in, LABELS
                  __global const float2 *parts, const struct softmax p)
{
    __local float2 joined[GROUP];
    struct place at =
        place_of(p.lanes_log2, p.across, p.splits, p.row_groups);
    ROW_FIND
    float2 own = (float2)(-INFINITY, 0.0f);
    if (inside)
        for (uint i = at.lane; i < p.splits; i += at.lanes)
            own = join(own, parts[i * p.rows + at.row]);
    own = lanes_join(own, joined, at.lanes, at.step);
    float largest = own.x;
    LABEL_FIND
#if FORM == LOSS
    if (at.lane == 0 && inside)
        out[to] = valid ? log(own.y) - (IN(label) - largest) : NAN;
#else
    SHARE(own.y)
    SPLIT_FIND
    for (; j < end; j += 4 * next) {
        float4 a = TAKE4(j), b = TAKE4(j + next);
        float4 c = TAKE4(j + 2 * next), d = TAKE4(j + 3 * next);
        PUT4(a, j) PUT4(b, j + next)
        PUT4(c, j + 2 * next) PUT4(d, j + 3 * next)
    }
#endif
}
