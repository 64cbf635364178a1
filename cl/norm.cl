/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm and rms_norm: rows of elements less their mean (layer_norm alone)
 * over their root mean square, times scale, plus bias.
 *
 * held   the row is read once, and kept (row_access.cl)
 * part   a longer row, or one of several axes, is cut into splits of chunk
 *        elements, a group each, which leave their moments ...
 * write  ... of which each split finds those of the row, and writes
 *
 * Squares of what is large, or small beside epsilon's root, leave f32's range:
 * such rows are summed in steps (rescaled_sum.cl), and written once more.
 */
#define IN_STEP p.in_steps[0]
#define OUT_STEP p.out_steps[0]
#define NOTHING 0.0f
#include "common/row_access.cl"
#include "common/rescaled_sum.cl"

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
#else
#define AFFINE                                                                 \
    __global const float *restrict scale, __global const float *restrict bias,
#endif

/* Beside an epsilon from here on squares may vanish. */
#define LEAST_EPSILON 0x1p-48f
/* Of what is subnormal a digit less than the last is lost, which times so much
 * is within the allowance; what is not LITTLE has all its digits. */
#define MOST_SCALE 16.0f
#define LITTLE 0x1p-100f

/* epsilon beside the mean square of elements that were divided by STEP_UP steps
 * times.  One that is not 0 stays so: the elements may be all alike, and then
 * 0 is divided by its root. */
static inline float epsilon_at(float epsilon, int steps)
{
    if (steps == 0)
        return epsilon;
    if (steps < 0)
        return epsilon * STEP_UP * STEP_UP;
    return epsilon > 0.0f ? fmax(epsilon * STEP_DOWN * STEP_DOWN, 0x1p-126f)
                          : 0.0f;
}

/* What is known of a row when it is written once more: of an element x, h is
 * (x unit - mean) factor 2^n, or in rms_norm x factor 2^n. */
struct finish {
    float unit, mean, factor;
    int n;
};

/* most: the largest scale so far. */
static inline float finish_one(float h, float scale, float bias, float *most)
{
    *most = fmax(*most, fabs(scale));
#if RMS
    return h * scale;
#else
    return fma(h, scale, bias);
#endif
}
static inline float4 finish_four(float4 h, float4 scale, float4 bias,
                                 float *most)
{
    float4 size = fabs(scale);
    *most = fmax(fmax(fmax(size.s0, size.s1), fmax(size.s2, size.s3)), *most);
#if RMS
    return h * scale;
#else
    return fma(h, scale, bias);
#endif
}
/* Whether x has lost digits that its scale, of rows in no steps, brings up. */
static inline bool finish_lost(const struct finish *f, float x, float scale)
{
    return fabs(scale) > MOST_SCALE &&
           fabs((x - f->mean) * f->factor) < LITTLE;
}
static inline float finish_right(const struct finish *f, float x, float scale,
                                 float bias)
{
    float y = RMS ? x : x * f->unit - f->mean;
    float h = product_of(y, f->factor, 1.0f, f->n);
    if (fabs(h) < LITTLE)
        return product_of(y, f->factor, scale, f->n) + bias;
    return RMS ? h * scale : fma(h, scale, bias);
}

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
#define SHIFT_AT(j) 0.0f
#define SHIFT_FOUR(j) (float4)(0.0f)
#else
#define SHIFT_AT(j) SHIFT(j)
#define SHIFT_FOUR(j) FOUR(bias, p.bias_offset + (j))
#endif
#define RESULT_ONE(x, j)                                                       \
    finish_one((x)*factor, SCALE(j), SHIFT_AT(j), &most)
#if ACCESS == VECTORS
#define RESULT_FOUR(x, j)                                                      \
    finish_four((x)*factor, FOUR(scale, p.scale_offset + (j)), SHIFT_FOUR(j),  \
                &most)
#else
#define RESULT_FOUR(x, j)                                                      \
    (float4)(RESULT_ONE(x.s0, (j)), RESULT_ONE(x.s1, (j) + 1),                 \
             RESULT_ONE(x.s2, (j) + 2), RESULT_ONE(x.s3, (j) + 3))
#endif
/* Element j of a row as it was, and where its result is. */
#if ACCESS == STAGED
#define ELEMENT(j) in[begin + in_skew + nth * count + (j)]
#define TARGET(j) own[j]
#elif ACCESS == STRIDED
#define ELEMENT(j) in[from + (long)(j)*IN_STEP]
#define TARGET(j) out[to + (long)(j)*OUT_STEP]
#else
#define ELEMENT(j) in[from + (j)]
#define TARGET(j) out[to + (j)]
#endif
/* For a lane's places in the row, one after the other. */
#if ACCESS == LINED
#define OWN_EACH(j)                                                            \
    _Pragma("unroll 1") for (int j = FIRST_PLACE; j < (int)count;              \
                             j += 1 << LANES_LOG2) if (j >= 0)
#else
#define OWN_EACH(j)                                                            \
    _Pragma("unroll 1") for (uint i_ = 0, j; i_ < 4 * HELD; ++i_)              \
        if (j = PLACE(i_ / 4, i_ % 4), THERE(i_ / 4, i_ % 4))
#endif

KERNEL void held(__global float *out, __global const float *in, AFFINE
                 const struct norm p)
{
    __local float squares[GROUP];
#if !RMS
    __local float means[GROUP];
#endif
    __local uint seen[1];
    STAGE_DECLARE
    struct place at = PLACE_FIND(0);
    ROW_FIND
    uint count = ROW_COUNT;
    STAGE_FILL
    float4 sums = (float4)(0.0f);
    float most = 0.0f;
    HOLD_ALL
#if !RMS
    EACH(ADD)
    float mean = lanes_sum(sum4(sums), means, at.lanes, 1) / (float)p.count;
    sums = (float4)(0.0f);
    EACH(CENTER)
#endif
    EACH(SQUARE)
    float square = lanes_sum(sum4(sums), squares, at.lanes, 1);
    float below = square / (float)p.count + p.epsilon;
    float factor = 1.0f / sqrt(below);
    EACH(WRITE)
    bool again = !isfinite(below) ||
                 (p.epsilon < LEAST_EPSILON && square < SMALL_SUM);
    bool again_any = rows_any(inside && again, seen, at.lanes, 1);
#if ACCESS != STAGED
    if (!again_any && most <= MOST_SCALE)
        return;
#endif
    if (most > MOST_SCALE && inside && !again) {
#if RMS
        float mean = 0.0f;
#endif
        struct finish f = {1.0f, mean, factor, 0};
        OWN_EACH(j)
            if (finish_lost(&f, ELEMENT(j), SCALE(j)))
                TARGET(j) = finish_right(&f, ELEMENT(j), SCALE(j), SHIFT_AT(j));
    }
    if (again_any) {
        /* All in units of the largest element; what is infinite, or NaN,
         * stays. */
        float largest = 0.0f, sum = 0.0f;
        int exponent = 0;
        struct finish f = {1.0f, 0.0f, 0.0f, 0};
        if (inside)
            OWN_EACH(j)
                largest = fmax(largest, fabs(ELEMENT(j)));
        largest = normalized(lanes_max(largest, squares, at.lanes, 1),
                             &exponent);
        int up = clamp(-exponent, -126, 120);
        f.unit = power_of_two(up);
#if !RMS
        if (inside)
            OWN_EACH(j)
                sum += ELEMENT(j) * f.unit;
        f.mean = lanes_sum(sum, means, at.lanes, 1) / (float)p.count;
        sum = 0.0f;
#endif
        if (inside)
            OWN_EACH(j) {
                float apart = ELEMENT(j) * f.unit - f.mean;
                sum += apart * apart;
            }
        rows_meet(at.lanes, 1);
        sum = lanes_sum(sum, squares, at.lanes, 1) / (float)p.count;
        float epsilon = p.epsilon > 0.0f
                            ? fmax(p.epsilon * f.unit * f.unit, 0x1p-126f)
                            : 0.0f;
        bool beside = isfinite(epsilon);
        f.factor = 1.0f / sqrt(beside ? sum + epsilon : p.epsilon);
        f.n = (beside ? 0 : -up) + (RMS ? up : 0);
        if (inside && again)
            OWN_EACH(j)
                TARGET(j) = finish_right(&f, ELEMENT(j), SCALE(j), SHIFT_AT(j));
    }
    STAGE_EMPTY
}

/* ---- longer rows, and rows of several axes ---- */

#if ACCESS == VECTORS || ACCESS == STRIDED || ACCESS == LINED

/* Of some elements: x how many, y their mean (0 in rms_norm), z the sum of the
 * squares of what they differ from it by; w the steps by which they were
 * divided before (rescaled_sum.cl), -1 where there are none. */
static inline float4 moments_join(float4 a, float4 b)
{
    float n = a.x + b.x;
    float whole = max(n, 1.0f);
    float apart = b.y - a.y;
    return (float4)(n, (a.x * a.y + b.x * b.y) / whole,
                    a.z + b.z + apart * apart * (a.x * b.x / whole), a.w + b.w);
}
/* Moments in steps from w on, and joined whatever their steps. */
static inline float4 moments_at(float4 a, float w)
{
    float unit = a.w == w ? 1.0f : a.w + 1.0f == w ? STEP_DOWN : 0.0f;
    return (float4)(a.x, a.y * unit, a.z * unit * unit, w);
}
static inline float4 moments_meet(float4 a, float4 b)
{
    float w = fmax(a.w, b.w);
    float4 both = moments_join(moments_at(a, w), moments_at(b, w));
    both.w = w;
    return both;
}
static inline float4 lanes_join(float4 own, __local float4 *parts, uint lanes,
                                uint step)
    LANES_BODY(moments_join, from_lane4)
static inline float4 lanes_meet(float4 own, __local float4 *parts, uint lanes,
                                uint step)
    LANES_BODY(moments_meet, from_lane4)

/* What a split's elements are to be multiplied by, in other moments: within
 * these bounds those of 2^35 splits are joined without loss. */
static inline float moments_step(float4 a, float epsilon)
{
    if (!(fabs(a.y) <= 0x1p40f && a.z <= 0x1p90f))
        return STEP_DOWN;
    return epsilon < LEAST_EPSILON && fabs(a.y) < 0x1p-45f && a.z < 0x1p-90f
               ? STEP_UP
               : 1.0f;
}

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
    __local uint seen[1];
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
    float step = own.x > 0.0f ? moments_step(own, p.epsilon) : 1.0f;
    if (RARELY(group_any(step != 1.0f, seen))) {
        float4 again = (float4)(0.0f);
        if (step != 1.0f)
            for (j = begin + (long)at.lane; j < end; j += SPLIT_LANES)
                if (j >= 0) {
                    long i = from;
                    WALK_ROLLED(i, (index_t)j, p.reduced, p.reduced_rank,
                                p.in_steps);
                    again = moments_join(again, moments_of_one(in[i] * step));
                }
        again = lanes_join(again, joined, at.lanes, 1);
        again.w = step == STEP_DOWN ? 1.0f : -1.0f;
        own = step != 1.0f ? again : own;
    }
    if (own.x == 0.0f)
        own.w = -1.0f;
    if (at.lane == 0 && inside)
        parts[at.split * p.rows + at.row] = own;
}

#if RMS
#define AFFINE_FIND(walk, b, j)
#define BIAS_AT(b) 0.0f
#else
#define AFFINE_FIND(walk, b, j)                                                \
    long b = (long)p.bias_offset;                                              \
    walk(b, (index_t)(j), p.affine, p.affine_rank, p.bias_steps);
#define BIAS_AT(b) bias[b]
#endif

/* From an element of a lane in its split to the next one. */
#if ACCESS == VECTORS
#define LANE_NEXT(j) ((((j)-first) & 3) == 3 ? 4 * SPLIT_LANES - 3 : 1)
#else
#define LANE_NEXT(j) SPLIT_LANES
#endif

KERNEL void write(__global float *out, __global const float *in, AFFINE
                  __global const float4 *parts, const struct norm p)
{
    __local float4 joined[GROUP];
    __local uint seen[1];
    struct place at = place_of(p.lanes_log2, 0, p.splits, p.row_groups);
    ROW_FIND
    float4 own = (float4)(0.0f);
    float most = 0.0f;
    if (inside)
        for (uint i = at.lane; i < p.splits; i += at.lanes) {
            float4 moments = parts[i * p.rows + at.row];
            /* How many are in steps. */
            moments.w = moments.x > 0.0f && moments.w != 0.0f ? 1.0f : 0.0f;
            own = moments_join(own, moments);
        }
    own = lanes_join(own, joined, at.lanes, 1);
    if (RARELY(rows_any(own.w > 0.0f, seen, at.lanes, 1))) {
        own = (float4)(0.0f, 0.0f, 0.0f, -1.0f);
        if (inside)
            for (uint i = at.lane; i < p.splits; i += at.lanes)
                own = moments_meet(own, parts[i * p.rows + at.row]);
        own = lanes_meet(own, joined, at.lanes, 1);
    }
    int steps = p.count > 0 ? (int)own.w : 0;
    float factor = 1.0f / sqrt(own.z / (float)p.count +
                               epsilon_at(p.epsilon, steps));
    SPLIT_FIND
    long first = j;
#if ACCESS == VECTORS
    for (; j < end; j += 4 * SPLIT_LANES)
        FOUR_AT(out, to + j) = RESULT_FOUR(FOUR(in, from + j) - own.y, j);
#elif ACCESS == LINED
#define RESULT_AHEAD(k)                                                        \
    RESULT_ONE(AHEAD(k) - own.y, j + (k)*lanes)
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
        RESULT_ONE(x, j + (k)*at.lanes);
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
        AFFINE_FIND(WALK, b, j)
        out[o] = finish_one((in[i] - own.y) * factor, scale[s], BIAS_AT(b),
                            &most);
    }
#endif
    if (steps == 0 && most <= MOST_SCALE)
        return;
    struct finish f = {steps == 0 ? 1.0f : steps > 0 ? STEP_DOWN : STEP_UP,
                       own.y, factor, RMS ? -88 * steps : 0};
    for (j = first; j < end; j += LANE_NEXT(j)) {
        if (j < 0)
            continue;
        long i = from, o = to, s = (long)p.scale_offset;
        WALK_ROLLED(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        float x = in[i];
        WALK_ROLLED(s, (index_t)j, p.affine, p.affine_rank, p.scale_steps);
        float scaled = scale[s];
        if (steps == 0 && !finish_lost(&f, x, scaled))
            continue;
        AFFINE_FIND(WALK_ROLLED, b, j)
        float shift = BIAS_AT(b);
        WALK_ROLLED(o, (index_t)j, p.reduced, p.reduced_rank, p.out_steps);
        out[o] = finish_right(&f, x, scaled, shift);
    }
}
#endif
