/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm subtracts the mean of a row from its elements and divides them by
 * the standard deviation. rms_norm divides the elements by their root mean
 * square. Both multiply the result by `scale`, and layer_norm adds `bias`.
 * group_norm is layer_norm of rows that consist of several channels, which have
 * one element of `scale` and `bias` each. Every group has the next channels.
 *
 * norm_single_pass reads each row once and keeps it in registers
 * (row_access.cl). Longer rows and rows of several axes are divided into
 * splits. norm_partial_pass stores the moments of each split (moments_combine
 * says what they are). norm_final_pass combines those of all splits of a row.
 *
 * If the squares of a row's elements overflow, the row is computed again with
 * scaled elements (rescaled_sum.cl). The same happens if the squares underflow
 * and epsilon is too small to hide the error.
 */
#include "common/row_params.cl"

struct norm_params {
    struct row_mapping by;
    uint32_t outer_rank, reduced_rank, affine_rank;
    float epsilon;
    uint64_t out_offset, in_offset, scale_offset, bias_offset;
    /* For group_norm: row r belongs to group r % groups, and these are the
     * strides of scale and bias between groups. */
    uint64_t groups;
    int64_t scale_group_stride, bias_group_stride;
    struct fast_divmod outer, reduced, affine;
    int64_t out_strides[MAX_AXES],
        in_strides[MAX_AXES];                        /* strides between rows */
    int64_t out_steps[MAX_AXES], in_steps[MAX_AXES]; /* strides within a row */
    int64_t scale_steps[MAX_AXES], bias_steps[MAX_AXES];
};
PARAMS_SIZE(norm_params, 888);

#ifdef __OPENCL_C_VERSION__
#define IN_STEP p.in_steps[0]
#define OUT_STEP p.out_steps[0]
#define IDENTITY 0.0f
#include "common/row_access.cl"
#include "common/rescaled_sum.cl"

/* 1 for rms_norm, otherwise 0. */
#ifndef RMS
#define RMS 0
#endif
/* 1 for group_norm and instance_norm, otherwise 0. */
#ifndef GROUPED
#define GROUPED 0
#endif

#if RMS
#define AFFINE __global const float *restrict scale,
#else
#define AFFINE                                                                 \
    __global const float *restrict scale, __global const float *restrict bias,
#endif

/* If epsilon is at least this large, squares that underflow are negligible. */
#define MIN_SAFE_EPSILON 0x1p-48f

/* Returns epsilon, scaled down if rescales > 0 or up if rescales < 0. A
 * positive epsilon stays positive, so equal elements do not lead to 0 / 0. */
static inline float epsilon_rescaled(float epsilon, int rescales)
{
    if (rescales == 0)
        return epsilon;
    if (rescales < 0)
        return epsilon * SCALE_UP * SCALE_UP;
    return epsilon > 0.0f ? fmax(epsilon * SCALE_DOWN * SCALE_DOWN, 0x1p-126f)
                          : 0.0f;
}

/* The result for a normalized value h, or a vector of results. */
#if RMS
#define AFFINE_RESULT(h, scale, bias) ((h) * (scale))
#else
#define AFFINE_RESULT(h, scale, bias) fma(h, scale, bias)
#endif

/* Values that normalize each element x of a rescaled row: layer_norm computes
 * (x * unit - mean) * factor * 2^n, and rms_norm computes x * factor * 2^n. */
struct rescaled_row {
    float unit, mean, factor;
    int n;
};

static inline float rescaled_result(const struct rescaled_row *row, float x,
                                    float scale, float bias)
{
    float deviation = RMS ? x : x * row->unit - row->mean;
    float h = multiply3_scaled(deviation, row->factor, 1.0f, row->n);
    return AFFINE_RESULT(h, scale, bias);
}

/* ---- rows that are kept in registers ---- */

#define MAX_OR_SUM(a, b) (is_max ? fmax(a, b) : (a) + (b))
INLINE float lanes_max_or_sum(float own, __local float *partials, uint lanes,
                              uint step, bool is_max)
    LANES_COMBINE_BODY(MAX_OR_SUM, shuffle_xor)

#define ADD(k) sums += CAT(x, k);
/* Elements past a row's end must stay 0, so no mean is subtracted from them. */
#define MEAN_IF_IN_RANGE(k, c) (IN_RANGE(k, c) ? mean : 0.0f)
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define CENTER(k) CAT(x, k) -= MEAN_IF_IN_RANGE(k, 0);
#else
#define CENTER(k)                                                              \
    CAT(x, k) -= (float4)(MEAN_IF_IN_RANGE(k, 0), MEAN_IF_IN_RANGE(k, 1),      \
                          MEAN_IF_IN_RANGE(k, 2), MEAN_IF_IN_RANGE(k, 3));
#endif
#define SQUARE(k) sums += CAT(x, k) * CAT(x, k);
/* Scale and bias are contiguous except with ROW_ACCESS_STRIDED. In group_norm,
 * the axes of p.affine are the elements of a channel and the channels. */
#if GROUPED
#define DECLARE_GROUP                                                          \
    long group = (long)((index_t)at.row % (index_t)p.groups);                  \
    long scale_begin = (long)p.scale_offset + group * p.scale_group_stride;    \
    long bias_begin = (long)p.bias_offset + group * p.bias_group_stride;
#define SCALE_BEGIN scale_begin
#define BIAS_BEGIN bias_begin
#define CHANNEL(j)                                                             \
    channel_of((index_t)(j), p.affine.extent[0], p.affine.multiplier[0],       \
               p.affine.shift[0])
#define SCALE(j) scale[scale_begin + CHANNEL(j) * p.scale_steps[1]]
#define BIAS(j) bias[bias_begin + CHANNEL(j) * p.bias_steps[1]]
static inline long channel_of(index_t j, ulong extent, uint multiplier,
                              uint shift)
{
#if INDEX_64BIT
    return (long)(j / extent);
#else
    return (long)fast_divide(j, multiplier, shift);
#endif
}
#else
#define DECLARE_GROUP
#define SCALE_BEGIN (long)p.scale_offset
#define BIAS_BEGIN (long)p.bias_offset
#if ROW_ACCESS == ROW_ACCESS_STRIDED
#define SCALE(j) scale[p.scale_offset + (long)(j)*p.scale_steps[0]]
#define BIAS(j) bias[p.bias_offset + (long)(j)*p.bias_steps[0]]
#elif ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define LANE_ELEMENT(x, offset, j)                                             \
    (x + ((long)p.offset + FIRST_ELEMENT))[(j)-FIRST_ELEMENT]
#define SCALE(j) LANE_ELEMENT(scale, scale_offset, j)
#define BIAS(j) LANE_ELEMENT(bias, bias_offset, j)
#else
#define SCALE(j) scale[p.scale_offset + (j)]
#define BIAS(j) bias[p.bias_offset + (j)]
#endif
#endif
/* Four elements of scale or bias, from element j on. A vector of group_norm
 * belongs to one channel. */
#if GROUPED
#define AFFINE_VEC4(x, offset, ONE, j) (float4)(ONE(j))
#else
#define AFFINE_VEC4(x, offset, ONE, j) LOAD_VEC4(x, p.offset + (j))
#endif
#if RMS
#define BIAS_SCALAR(j) 0.0f
#define BIAS_VEC4(j) (float4)(0.0f)
#define DECLARE_BIAS_OFFSET(walk, b, j)
#define BIAS_AT(b) 0.0f
#else
#define BIAS_SCALAR(j) BIAS(j)
#define BIAS_VEC4(j) AFFINE_VEC4(bias, bias_offset, BIAS, j)
#define DECLARE_BIAS_OFFSET(walk, b, j)                                        \
    long b = BIAS_BEGIN;                                                       \
    walk(b, (index_t)(j), p.affine, p.affine_rank, p.bias_steps);
#define BIAS_AT(b) bias[b]
#endif
#define RESULT_SCALAR(x, j)                                                    \
    AFFINE_RESULT((x)*factor, SCALE(j), BIAS_SCALAR(j))
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define RESULT_VEC4(x, j)                                                      \
    AFFINE_RESULT((x)*factor, AFFINE_VEC4(scale, scale_offset, SCALE, j),      \
                  BIAS_VEC4(j))
#endif
/* ELEMENT(j) and TARGET(j) are element j of the input and the output row. */
#if ROW_ACCESS == ROW_ACCESS_LOCAL_MEMORY
#define ELEMENT(j) in[begin + in_shift + group_row * count + (j)]
#define TARGET(j) own[j]
#else
#define ELEMENT IN_AT
#define TARGET OUT_AT
#endif
/* Loops over the indices j of the row's elements that a work-item handles. */
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define FOR_EACH_OWN(j)                                                        \
    _Pragma("unroll 1") for (int j = FIRST_ELEMENT; j < (int)count;            \
                             j += 1 << LANES_LOG2) if (j >= 0)
#else
#define FOR_EACH_OWN(j)                                                        \
    _Pragma("unroll 1") for (uint i_ = 0, j; i_ < 4 * VECTORS_PER_ITEM; ++i_)  \
        if (j = ELEMENT_INDEX(i_ / 4, i_ % 4), IN_RANGE(i_ / 4, i_ % 4))
#endif

#ifdef BUILD_norm_single_pass
KERNEL void norm_single_pass(__global float *out, __global const float *in,
                             AFFINE const struct norm_params p)
{
    __local float squares[GROUP_SIZE];
#if !RMS
    __local float means[GROUP_SIZE];
#endif
    __local uint vote_word[1];
    STAGE_DECLARE
    struct lane_assignment at = LANE_ASSIGNMENT(0);
    DECLARE_ROW
    DECLARE_GROUP
    uint count = ROW_COUNT;
    STAGE_ROWS_IN
    float4 sums = (float4)(0.0f);
    LOAD_ROW
#if !RMS
    EACH(ADD)
    float mean = lanes_sum(sum4(sums), means, at.lanes, 1) / (float)p.by.count;
    sums = (float4)(0.0f);
    EACH(CENTER)
#endif
    EACH(SQUARE)
    float square = lanes_sum(sum4(sums), squares, at.lanes, 1);
    float radicand = square / (float)p.by.count + p.epsilon;
    float factor = 1.0f / sqrt(radicand);
    EACH(STORE)
    bool rescale = !isfinite(radicand) ||
                   (p.epsilon < MIN_SAFE_EPSILON && square < MIN_EXACT_SUM);
    bool any_rescale = rows_vote_any(inside && rescale, vote_word, at.lanes, 1);
#if RMS
    float mean = 0.0f;
#endif
    struct rescaled_row result = {1.0f, mean, factor, 0};
    if (any_rescale) {
        /* Second pass, with elements scaled by a power of two that keeps the
         * largest square in range. Infinity and NaN still reach the results.
         * Its stages reduce the magnitudes, the elements and the squares of
         * their deviations; rms_norm has no second stage. The code of the
         * stages exists once, because it rarely runs. */
        struct rescaled_row rescaled = {1.0f, 0.0f, 0.0f, 0};
        int unit_log2 = 0;
        float total = 0.0f;
#pragma unroll 1
        for (uint stage = 0; stage < 3; stage += 1 + RMS) {
            total = 0.0f;
            if (inside)
                FOR_EACH_OWN(j) {
                    float y = ELEMENT(j) * rescaled.unit - rescaled.mean;
                    total = stage == 0   ? fmax(total, fabs(y))
                          : stage == 1 ? total + y
                                       : total + y * y;
                }
            rows_barrier(at.lanes, 1);
            total = lanes_max_or_sum(total, squares, at.lanes, 1, stage == 0);
            if (stage == 0) {
                int exponent = 0;
                normalize_exponent(total, &exponent);
                unit_log2 = clamp(-exponent, -126, 120);
                rescaled.unit = power_of_two(unit_log2);
            } else if (stage == 1) {
                rescaled.mean = total / (float)p.by.count;
            }
        }
        total /= (float)p.by.count;
        float epsilon =
            p.epsilon > 0.0f
                ? fmax(p.epsilon * rescaled.unit * rescaled.unit, 0x1p-126f)
                : 0.0f;
        /* An epsilon that overflows makes a finite sum negligible. */
        bool only_epsilon = epsilon == INFINITY && isfinite(total);
        rescaled.factor =
            1.0f / sqrt(only_epsilon ? p.epsilon : total + epsilon);
        rescaled.n = (only_epsilon ? -unit_log2 : 0) + (RMS ? unit_log2 : 0);
        if (rescale)
            result = rescaled;
        /* Without a barrier here, PoCL 3.1 loses `result`. */
        rows_barrier(at.lanes, 1);
    }
    if (inside && rescale)
        FOR_EACH_OWN(j)
            TARGET(j) =
                rescaled_result(&result, ELEMENT(j), SCALE(j), BIAS_SCALAR(j));
    STAGE_ROWS_OUT
}
#endif

/* ---- longer rows, and rows of several axes ---- */

#if ROW_ACCESS == ROW_ACCESS_VEC4 || ROW_ACCESS == ROW_ACCESS_STRIDED ||       \
    ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED

/* Combines the moments of two sets of elements: x is the number of elements, y
 * the mean (0 in rms_norm), z the sum of squared differences from y, and w the
 * number of rescalings (rescaled_sum.cl). w is -1 if the set is empty. */
static inline float4 moments_combine(float4 a, float4 b)
{
    float n = a.x + b.x;
    float total = max(n, 1.0f);
    float deviation = b.y - a.y;
    return (float4)(n, (a.x * a.y + b.x * b.y) / total,
                    a.z + b.z + deviation * deviation * (a.x * b.x / total),
                    a.w + b.w);
}
/* Returns the moments `a` rescaled from a.w to w rescalings. */
static inline float4 moments_rescale(float4 a, float w)
{
    float unit = a.w == w ? 1.0f : a.w + 1.0f == w ? SCALE_DOWN : 0.0f;
    return (float4)(a.x, a.y * unit, a.z * unit * unit, w);
}
static inline float4 moments_combine_rescaled(float4 a, float4 b)
{
    float w = fmax(a.w, b.w);
    float4 result =
        moments_combine(moments_rescale(a, w), moments_rescale(b, w));
    result.w = w;
    return result;
}
INLINE float4 lanes_combine(float4 own, __local float4 *partials, uint lanes,
                            uint step)
    LANES_COMBINE_BODY(moments_combine, shuffle_xor4)
INLINE float4 lanes_combine_rescaled(float4 own, __local float4 *partials,
                                     uint lanes, uint step)
    LANES_COMBINE_BODY(moments_combine_rescaled, shuffle_xor4)

/* Returns the factor by which a second pass must scale a split's elements, or 1
 * if 2^35 splits with these moments can be combined precisely without it. */
static inline float moments_wanted_scale(float4 a, float epsilon)
{
    if (!(fabs(a.y) <= 0x1p40f && a.z <= 0x1p90f))
        return SCALE_DOWN;
    return epsilon < MIN_SAFE_EPSILON && fabs(a.y) < 0x1p-45f && a.z < 0x1p-90f
               ? SCALE_UP
               : 1.0f;
}

INLINE float4 moments_of(const float16 *x)
{
    float mean = RMS ? 0.0f : sum16(x) * 0.0625f;
    float16 d = *x - mean;
    d *= d;
    return (float4)(16.0f, mean, sum16(&d), 0.0f);
}
static inline float4 moments_of_one(float x)
{
    return RMS ? (float4)(1.0f, 0.0f, x * x, 0.0f)
               : (float4)(1.0f, x, 0.0f, 0.0f);
}
static inline float4 moments_of_four(float4 x)
{
    float mean = RMS ? 0.0f : sum4(x) * 0.25f;
    float4 d = x - mean;
    return (float4)(4.0f, mean, sum4(d * d), 0.0f);
}

#define SIXTEEN(F)                                                             \
    F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11),  \
        F(12), F(13), F(14), F(15)

/* The lane's element k iterations after element j, and true if this and the
 * following count - 1 elements of the lane are in the split. */
#if ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define AHEAD(k) (in + (from + j))[(k)*lanes]
#define ALL_IN_SPLIT(count) (j >= 0 && j + ((count)-1) * lanes < end)
#else
#define AHEAD(k) in[from + (long)(j + (k)*at.lanes) * p.in_steps[0]]
#endif

#ifdef BUILD_norm_partial_pass
KERNEL void norm_partial_pass(__global float4 *partials,
                              __global const float *in,
                              const struct norm_params p)
{
    __local float4 combined[GROUP_SIZE];
    __local uint vote_word[1];
    struct lane_assignment at =
        lane_assign(p.by.lanes_log2, 0, p.by.splits, p.by.row_groups);
    long from = (long)p.in_offset;
    bool inside = at.row < p.by.rows;
    if (inside)
        ADD_OFFSET(from, (index_t)at.row, p.outer, p.outer_rank, p.in_strides);
    DECLARE_INPUT_SHIFT
    DECLARE_SPLIT
    float4 own = (float4)(0.0f);
#if ROW_ACCESS == ROW_ACCESS_VEC4
    const long next = 4 * SPLIT_LANES;
    for (; j + 3 * next < end; j += 4 * next) {
        float4 a = LOAD_VEC4(in, from + j), b = LOAD_VEC4(in, from + j + next);
        float4 c = LOAD_VEC4(in, from + j + 2 * next);
        float4 d = LOAD_VEC4(in, from + j + 3 * next);
        float16 x = (float16)(a, b, c, d);
        own = moments_combine(own, moments_of(&x));
    }
    for (; j < end; j += next)
        own = moments_combine(own, moments_of_four(LOAD_VEC4(in, from + j)));
#elif ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
    const long lanes = SPLIT_LANES;
    for (; j < end; j += 16 * lanes) {
        if (ALL_IN_SPLIT(16)) {
            float16 x = (float16)(SIXTEEN(AHEAD));
            own = moments_combine(own, moments_of(&x));
        } else {
            for (long k = 0; k < 16 && j + k * lanes < end; ++k)
                if (j + k * lanes >= 0)
                    own = moments_combine(own, moments_of_one(AHEAD(k)));
        }
    }
#else
    for (; p.reduced_rank == 1 && j + 15 * (long)at.lanes < end;
         j += 16 * at.lanes) {
        float16 x = (float16)(SIXTEEN(AHEAD));
        own = moments_combine(own, moments_of(&x));
    }
    for (; j < end; j += at.lanes) {
        long i = from;
        ADD_OFFSET(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        own = moments_combine(own, moments_of_one(in[i]));
    }
#endif
    own = lanes_combine(own, combined, at.lanes, 1);
    float step = own.x > 0.0f ? moments_wanted_scale(own, p.epsilon) : 1.0f;
    if (UNLIKELY(group_vote_any(step != 1.0f, vote_word))) {
        float4 rescaled = (float4)(0.0f);
        if (step != 1.0f)
            for (j = begin + (long)at.lane; j < end; j += SPLIT_LANES)
                if (j >= 0) {
                    long i = from;
                    ADD_OFFSET_ROLLED(i, (index_t)j, p.reduced, p.reduced_rank,
                                      p.in_steps);
                    rescaled =
                        moments_combine(rescaled, moments_of_one(in[i] * step));
                }
        rescaled = lanes_combine(rescaled, combined, at.lanes, 1);
        rescaled.w = step == SCALE_DOWN ? 1.0f : -1.0f;
        own = step != 1.0f ? rescaled : own;
    }
    if (own.x == 0.0f)
        own.w = -1.0f;
    if (at.lane == 0 && inside)
        partials[at.split * p.by.rows + at.row] = own;
}
#endif

/* Number of elements from element j of a work-item to its next element. */
#if ROW_ACCESS == ROW_ACCESS_VEC4
#define NEXT_ELEMENT(j) ((((j)-first) & 3) == 3 ? 4 * SPLIT_LANES - 3 : 1)
#else
#define NEXT_ELEMENT(j) SPLIT_LANES
#endif

#ifdef BUILD_norm_final_pass
KERNEL void norm_final_pass(__global float *out, __global const float *in,
                            AFFINE __global const float4 *partials,
                            const struct norm_params p)
{
    __local float4 combined[GROUP_SIZE];
    __local uint vote_word[1];
    struct lane_assignment at =
        lane_assign(p.by.lanes_log2, 0, p.by.splits, p.by.row_groups);
    DECLARE_ROW
    DECLARE_GROUP
    float4 own = (float4)(0.0f);
    if (inside)
        for (uint i = at.lane; i < p.by.splits; i += at.lanes) {
            float4 moments = partials[i * p.by.rows + at.row];
            /* own.w becomes the number of splits with rescaled elements. */
            moments.w = moments.x > 0.0f && moments.w != 0.0f ? 1.0f : 0.0f;
            own = moments_combine(own, moments);
        }
    own = lanes_combine(own, combined, at.lanes, 1);
    if (UNLIKELY(rows_vote_any(own.w > 0.0f, vote_word, at.lanes, 1))) {
        own = (float4)(0.0f, 0.0f, 0.0f, -1.0f);
        if (inside)
            for (uint i = at.lane; i < p.by.splits; i += at.lanes)
                own = moments_combine_rescaled(
                    own, partials[i * p.by.rows + at.row]);
        own = lanes_combine_rescaled(own, combined, at.lanes, 1);
    }
    int rescales = p.by.count > 0 ? (int)own.w : 0;
    float factor = 1.0f / sqrt(own.z / (float)p.by.count +
                               epsilon_rescaled(p.epsilon, rescales));
    DECLARE_SPLIT
    long first = j;
#if ROW_ACCESS == ROW_ACCESS_VEC4
    for (; j < end; j += 4 * SPLIT_LANES)
        VEC4_AT(out, to + j) = RESULT_VEC4(LOAD_VEC4(in, from + j) - own.y, j);
#elif ROW_ACCESS == ROW_ACCESS_SECTOR_ALIGNED
#define RESULT_AHEAD(k) RESULT_SCALAR(AHEAD(k) - own.y, j + (k)*lanes)
#define RESULT_LOAD(k) float y##k = RESULT_AHEAD(k);
#define RESULT_STORE(k) (out + (to + j))[(k)*lanes] = y##k;
    const long lanes = SPLIT_LANES;
    for (; j < end; j += 8 * lanes) {
        if (ALL_IN_SPLIT(8)) {
            EACH_8(RESULT_LOAD)
            EACH_8(RESULT_STORE)
        } else {
            for (long k = 0; k < 8 && j + k * lanes < end; ++k)
                if (j + k * lanes >= 0)
                    (out + (to + j))[k * lanes] = RESULT_AHEAD(k);
        }
    }
#else
#define VEC4_AHEAD(k)                                                          \
    (float4)(AHEAD(k), AHEAD((k) + 1), AHEAD((k) + 2), AHEAD((k) + 3))
#define STORE_AHEAD(x, k)                                                      \
    out[to + (long)(j + (k)*at.lanes) * p.out_steps[0]] =                      \
        RESULT_SCALAR(x, j + (k)*at.lanes);
    bool is_single_axis =
        (GROUPED || p.affine_rank == 1) && p.reduced_rank == 1;
    for (; is_single_axis && j + 7 * (long)at.lanes < end; j += 8 * at.lanes) {
        float4 a = VEC4_AHEAD(0) - own.y, b = VEC4_AHEAD(4) - own.y;
        STORE_AHEAD(a.s0, 0) STORE_AHEAD(a.s1, 1)
        STORE_AHEAD(a.s2, 2) STORE_AHEAD(a.s3, 3)
        STORE_AHEAD(b.s0, 4) STORE_AHEAD(b.s1, 5)
        STORE_AHEAD(b.s2, 6) STORE_AHEAD(b.s3, 7)
    }
    for (; j < end; j += at.lanes) {
        long i = from, o = to, s = SCALE_BEGIN;
        ADD_OFFSET(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        ADD_OFFSET(o, (index_t)j, p.reduced, p.reduced_rank, p.out_steps);
        ADD_OFFSET(s, (index_t)j, p.affine, p.affine_rank, p.scale_steps);
        DECLARE_BIAS_OFFSET(ADD_OFFSET, b, j)
        out[o] = AFFINE_RESULT((in[i] - own.y) * factor, scale[s], BIAS_AT(b));
    }
#endif
    if (rescales == 0)
        return;
    /* The elements were scaled. Computes all results again. */
    struct rescaled_row row_values = {rescales > 0 ? SCALE_DOWN : SCALE_UP,
                                      own.y, factor,
                                      RMS ? -SCALE_LOG2 * rescales : 0};
    for (j = first; j < end; j += NEXT_ELEMENT(j)) {
        if (j < 0)
            continue;
        long i = from, o = to, s = SCALE_BEGIN;
        ADD_OFFSET_ROLLED(i, (index_t)j, p.reduced, p.reduced_rank, p.in_steps);
        ADD_OFFSET_ROLLED(o, (index_t)j, p.reduced, p.reduced_rank,
                          p.out_steps);
        ADD_OFFSET_ROLLED(s, (index_t)j, p.affine, p.affine_rank,
                          p.scale_steps);
        DECLARE_BIAS_OFFSET(ADD_OFFSET_ROLLED, b, j)
        out[o] = rescaled_result(&row_values, in[i], scale[s], BIAS_AT(b));
    }
}
#endif
#endif

#endif
