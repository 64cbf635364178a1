/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, log_softmax, and cross-entropy with its gradient, over one axis.
 *
 * held   the row is read once, and kept (row_access.cl)
 * part   a longer row is cut into splits of chunk elements, a group each,
 *        which leave their largest element and sum of e^(x - largest) ...
 * write  ... of which each split finds those of the row, and writes
 */
#define IN_STEP p.in_stride
#define OUT_STEP p.out_stride
#define NOTHING -INFINITY
#include "common/row_access.cl"

#define SOFTMAX 1
#define LOG_SOFTMAX 2
#define LOSS 3
#define GRADIENT 4
#ifndef FORM
#define FORM SOFTMAX
#endif
/* 1: of a gradient whose scale is large (plan.h). */
#ifndef LIFTS
#define LIFTS 0
#endif
/* The type of labels. */
#ifndef LABEL
#define LABEL int
#endif
struct softmax {
    ROWS_HEAD;
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
#define SHARE(sum) cell log_sum = log(sum);
#elif LIFTS
#define SHARE(sum) cell share = p.scale / (sum);
#else
#define SHARE(sum) cell share = 1.0f / (sum);
#endif
/* What results have of an element, and the term of the sum that it makes:
 * e^(x - largest), or its fourth root if a gradient's scale lifts numbers far
 * below f32's range: the square root may be subnormal where the result is
 * not. */
#if LIFTS
#define EXP(x) exp(0.25f * ((x) - largest))
#define TERM(e) ((e) * (e) * ((e) * (e)))
#else
#define EXP(x) exp((x) - largest)
#define TERM(e) (e)
#endif
/* The result of element j: x the element, e its EXP. */
#if FORM == LOG_SOFTMAX
#define RESULT(x, e, j) ((x - largest) - log_sum)
#elif FORM == GRADIENT && !LIFTS
#define RESULT(x, e, j)                                                        \
    (valid ? p.scale * (e * share - ((long)(j) == label ? 1.0f : 0.0f)) : NAN)
#elif FORM == GRADIENT
#define RESULT(x, e, j)                                                        \
    (valid ? gradient(e, share, (long)(j) == label ? p.scale : 0.0f) : NAN)
static inline float gradient(float e, float share, float less)
{
    return e * share * e * e * e - less;
}
#else
#define RESULT(x, e, j) ((e)*share)
#endif
/* EXP takes the place of x, unless that is needed, or registers are
 * few. */
#define KEEPS_TERMS (FORM != LOG_SOFTMAX && FORM != LOSS && HELD <= 16)
#if KEEPS_TERMS
#define RESULT_ONE(x, j) RESULT(x, x, j)
#else
#define RESULT_ONE(x, j) RESULT(x, EXP(x), j)
#endif
#if ACCESS == COLUMNS
#define RESULT_FOUR(x, j) RESULT_ONE(x, j)
#else
#define RESULT_FOUR(x, j)                                                      \
    (float4)(RESULT_ONE(x.s0, (j)), RESULT_ONE(x.s1, (j) + 1),                 \
             RESULT_ONE(x.s2, (j) + 2), RESULT_ONE(x.s3, (j) + 3))
#endif

/* ---- rows that are kept ---- */

#define RAISE(k) highest = fmax(highest, CAT(x, k));
#if ACCESS == STAGED
#define ADD_ONE(x, k, c)                                                       \
    if (SOME(k, c)) {                                                          \
        float e = EXP(x.s##c);                                                 \
        terms.s##c += TERM(e);                                                 \
        x.s##c = KEEPS_TERMS ? e : x.s##c;                                     \
    }
#define ADD(k)                                                                 \
    ADD_ONE(CAT(x, k), k, 0) ADD_ONE(CAT(x, k), k, 1)                          \
    ADD_ONE(CAT(x, k), k, 2) ADD_ONE(CAT(x, k), k, 3)
#elif KEEPS_TERMS
#define ADD(k)                                                                 \
    CAT(x, k) = EXP(CAT(x, k));                                                \
    terms += TERM(CAT(x, k));
#else
#define ADD(k) terms += exp(CAT(x, k) - largest);
#endif

KERNEL void held(__global float *out, __global const float *in, LABELS
                 const struct softmax p)
{
    __local cell highs[GROUP], sums[GROUP];
    STAGE_DECLARE
    struct place at = PLACE_FIND(p.across);
    ROW_FIND
    uint count = ROW_COUNT;
    STAGE_FILL
    HOLD_ALL
    float4 highest = x0, terms = (float4)(0.0f);
    EACH(RAISE)
    cell largest = ROW_MAX(highest, highs);
    EACH(ADD)
    cell sum = ROW_SUM(terms, sums);
    LABEL_FIND
#if FORM == LOSS
    if (at.lane == 0 && inside)
        out[to] = valid ? log(sum) - (IN(label) - largest) : NAN;
#else
    SHARE(sum)
    EACH(WRITE)
    STAGE_EMPTY
#endif
}

/* ---- longer rows ---- */

#if ACCESS != STAGED && ACCESS != COLUMNS

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

/* Four elements, neighbours of vector rows, lanes apart of others: where some
 * may not be of the split (_IF), and where all are. */
#if ACCESS == VECTORS
#define APART 1
#define TAKE4(j) FOUR(in, from + (j))
#define PUT4(x, j) FOUR_AT(out, to + (j)) = RESULT4_AT(x, j);
#define IN_AT(j) in[from + (j)]
#define OUT_AT(j) out[to + (j)]
#else
#define APART SPLIT_LANES
#if ACCESS == STRIDED
#define IN_AT(j) IN(j)
#define OUT_AT(j) OUT(j)
#else
#define IN_AT(j) in[from + (j)]
#define OUT_AT(j) out[to + (j)]
#endif
#define TAKE4(j)                                                               \
    (float4)(IN_AT(j), IN_AT((j) + APART), IN_AT((j) + 2 * APART),             \
             IN_AT((j) + 3 * APART))
#define PUT4(x, j)                                                             \
    OUT_AT(j) = RESULT_AT(x.s0, j);                                            \
    OUT_AT((j) + APART) = RESULT_AT(x.s1, (j) + APART);                        \
    OUT_AT((j) + 2 * APART) = RESULT_AT(x.s2, (j) + 2 * APART);                \
    OUT_AT((j) + 3 * APART) = RESULT_AT(x.s3, (j) + 3 * APART);
#endif
#define THERE_AT(j) ((j) >= 0 && (j) < end)
#define TAKE_IF(j) (THERE_AT(j) ? IN_AT(j) : -INFINITY)
#define TAKE4_IF(j)                                                            \
    (float4)(TAKE_IF(j), TAKE_IF((j) + APART), TAKE_IF((j) + 2 * APART),       \
             TAKE_IF((j) + 3 * APART))
#define PUT_IF_AT(x, j)                                                        \
    if (THERE_AT(j))                                                           \
        OUT_AT(j) = RESULT_AT(x, j);
#define PUT4_IF(x, j)                                                          \
    PUT_IF_AT(x.s0, j) PUT_IF_AT(x.s1, (j) + APART)                            \
    PUT_IF_AT(x.s2, (j) + 2 * APART) PUT_IF_AT(x.s3, (j) + 3 * APART)
#define RESULT_AT(x, j) RESULT(x, EXP(x), j)
#define RESULT4_AT(x, j)                                                       \
    (float4)(RESULT_AT(x.s0, (j)), RESULT_AT(x.s1, (j) + 1),                   \
             RESULT_AT(x.s2, (j) + 2), RESULT_AT(x.s3, (j) + 3))

/* Sixteen elements of a lane from j on. */
#define TURN_TAKE                                                              \
    float4 a, b, c, d;                                                         \
    bool whole = j >= 0 && j + 3 * next + 3 * APART < end;                     \
    if (whole) {                                                               \
        a = TAKE4(j), b = TAKE4(j + next);                                     \
        c = TAKE4(j + 2 * next), d = TAKE4(j + 3 * next);                      \
    } else {                                                                   \
        a = TAKE4_IF(j), b = TAKE4_IF(j + next);                               \
        c = TAKE4_IF(j + 2 * next), d = TAKE4_IF(j + 3 * next);                \
    }

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
    PART_SHIFT_FIND
    SPLIT_FIND
    const long next = 4 * SPLIT_LANES;
    float2 own = (float2)(-INFINITY, 0.0f);
    for (; j < end; j += 4 * next) {
        TURN_TAKE
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
    const long next = 4 * SPLIT_LANES;
    for (; j < end; j += 4 * next) {
        TURN_TAKE
        if (whole) {
            PUT4(a, j) PUT4(b, j + next)
            PUT4(c, j + 2 * next) PUT4(d, j + 3 * next)
        } else {
            PUT4_IF(a, j) PUT4_IF(b, j + next)
            PUT4_IF(c, j + 2 * next) PUT4_IF(d, j + 3 * next)
        }
    }
#endif
}
#endif
