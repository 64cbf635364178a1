/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions of each REDUCTION for reduce.cl:
 *
 *   struct accumulator  the elements that a lane has reduced so far
 *   partial_t           the same in a form that a tree reduction can combine
 *   split_result_t      the result of a split, a part of an output's elements
 *   result_t            the value of an output
 *
 * There are four versions: for sums, for the index of the maximum or minimum,
 * for log-sum-exp, and for the product, maximum and minimum. */
#ifndef TANDEM_ACCUMULATORS_CL
#define TANDEM_ACCUMULATORS_CL

#include "common/lane_reduce.cl"
#include "common/math.cl"
#include "common/rescaled_sum.cl"

#define SUM 1
#define MEAN 2
#define PROD 3
#define MAX 4
#define MIN 5
#define SUM_SQUARE 6
#define L2 7
#define LOG_SUM_EXP 8
#define ARG_MAX 9
#define ARG_MIN 10
#define DOT 11
#ifndef REDUCTION
#define REDUCTION SUM
#endif

#define IS_SUM                                                                 \
    (REDUCTION == SUM || REDUCTION == MEAN || REDUCTION == SUM_SQUARE ||       \
     REDUCTION == L2 || REDUCTION == DOT)
#define IS_ARG (REDUCTION == ARG_MAX || REDUCTION == ARG_MIN)

#if IS_ARG
typedef long result_t;
#else
typedef float result_t;
#endif

/* ---- accumulator of a lane, and partial that the tree combines ---- */

/* Elements past the end of a row count as IDENTITY, which changes no result. */
#if IS_SUM
/* The sum so far, and the sum of its rounding errors, which is added at the end
 * (Kahan-Babuska summation). If the sum is not finite, the error is NaN. */
#define IDENTITY 0.0f
#define SUMS_PRODUCTS (REDUCTION != SUM && REDUCTION != MEAN)
struct accumulator {
    float sum, error;
};
typedef float partial_t;
/* The sum of elements that were multiplied by 2^(88 * scale). */
struct scaled_sum {
    float sum;
    int scale; /* -1, 0 or 1 */
};
typedef struct scaled_sum split_result_t;

static inline void accumulator_clear(struct accumulator *l)
{
    l->sum = l->error = 0.0f;
}
static inline void accumulator_add(struct accumulator *l, float x)
{
    float sum = l->sum + x;
    float added = sum - l->sum;
    l->error += (l->sum - (sum - added)) + (x - added);
    l->sum = sum;
}
#if REDUCTION == SUM_SQUARE || REDUCTION == L2
#define SUMMAND(x) ((x) * (x))
#else
#define SUMMAND(x) (x)
#endif
static inline void accumulate(struct accumulator *l, float x, index_t index)
{
    accumulator_add(l, SUMMAND(x));
}
INLINE void accumulate16(struct accumulator *l, const float16 *all,
                         index_t index, index_t vec4_step, index_t lane_step)
{
    float16 x = *all, summands = SUMMAND(x);
    accumulator_add(l, sum16(&summands));
}
static inline partial_t accumulator_partial(const struct accumulator *l)
{
    return isfinite(l->sum) ? l->sum + l->error : l->sum;
}
static inline partial_t partial_combine(partial_t a, partial_t b)
{
    return a + b;
}

/* Returns the scale with which the elements of a sum must be added again, or 0
 * if the sum is precise. */
static inline int scale_wanted(float sum)
{
    if (!isfinite(sum))
        return -1;
    return SUMS_PRODUCTS && fabs(sum) < MIN_EXACT_SUM ? 1 : 0;
}
static inline float scale_factor(int scale)
{
    return scale > 0 ? SCALE_UP : scale < 0 ? SCALE_DOWN : 1.0f;
}
/* Returns the sum `a` as if its elements had been scaled by `scale`, which must
 * not exceed a.scale. */
static inline float sum_at_scale(struct scaled_sum a, int scale)
{
    /* After SCALE_UP, a sum is too small to matter after SCALE_DOWN. */
    float factor = a.scale == scale       ? 1.0f
                   : a.scale - scale == 1 ? SCALE_DOWN
                                          : 0.0f;
    return SUMS_PRODUCTS ? a.sum * factor * factor : a.sum * factor;
}
static inline split_result_t split_empty(void)
{
    split_result_t result = {0.0f, 1};
    return result;
}
static inline split_result_t split_combine(split_result_t a, split_result_t b)
{
    split_result_t all;
    all.scale = min(a.scale, b.scale);
    all.sum = sum_at_scale(a, all.scale) + sum_at_scale(b, all.scale);
    if (!isfinite(all.sum) && all.scale >= 0) {
        all.scale = -1;
        all.sum = sum_at_scale(a, -1) + sum_at_scale(b, -1);
    }
    return all;
}
#ifdef SHUFFLE_WIDTH
static inline split_result_t split_shuffle_xor(split_result_t x, uint mask)
{
    split_result_t y;
    y.sum = shuffle_xor(x.sum, mask);
    y.scale = as_int(shuffle_xor(as_float(x.scale), mask));
    return y;
}
#endif
/* Returns the value of an output that has `count` elements. */
static inline result_t split_value(split_result_t a, ulong count)
{
    float unit = scale_factor(-a.scale);
#if REDUCTION == L2
    return sqrt(a.sum) * unit;
#elif REDUCTION == MEAN
    return a.sum / (float)count * unit;
#else
    return SUMS_PRODUCTS ? a.sum * unit * unit : a.sum * unit;
#endif
}

#elif IS_ARG
/* Largest (ARG_MAX) or smallest (ARG_MIN) value so far, and its index. The
 * index is NONE if no value is better than IDENTITY. */
#define IDENTITY (REDUCTION == ARG_MAX ? -INFINITY : INFINITY)
#define NONE (~(index_t)0)
struct accumulator {
    float value;
    index_t index;
};
struct arg_best {
    float value;
    uint reserved;
    ulong index;
};
typedef struct arg_best partial_t;

static inline void accumulator_clear(struct accumulator *l)
{
    l->value = IDENTITY;
    l->index = NONE;
}
/* Called before a lane's elements from `index` on: if all of them are equal to
 * IDENTITY, the first one is the best. */
static inline void accumulator_start(struct accumulator *l, index_t index)
{
    l->index = l->index == NONE ? index : l->index;
}
/* Must be called in ascending order of `index`. The first NaN is kept. */
static inline void accumulate(struct accumulator *l, float x, index_t index)
{
    bool beaten = REDUCTION == ARG_MAX ? !(x <= l->value) : !(x >= l->value);
    bool wins = beaten && l->value == l->value;
    l->value = wins ? x : l->value;
    l->index = wins ? index : l->index;
}
#define IS_BETTER(b, a) (REDUCTION == ARG_MAX ? (b) > (a) : (b) < (a))
static inline void accumulate4(struct accumulator *l, float4 x, index_t index,
                               index_t lane_step)
{
    accumulate(l, x.s0, index);
    accumulate(l, x.s1, index + lane_step);
    accumulate(l, x.s2, index + 2 * lane_step);
    accumulate(l, x.s3, index + 3 * lane_step);
}
INLINE void accumulate16(struct accumulator *l, const float16 *all,
                         index_t index, index_t vec4_step, index_t lane_step)
{
    float16 x = *all;
    /* If two elements are equal, the one with the lower index is kept. */
    int8 second8 = IS_BETTER(x.odd, x.even);
    float8 x8 = select(x.even, x.odd, second8);
    int8 at8 = select((int8)(0, 2, 4, 6, 8, 10, 12, 14),
                      (int8)(1, 3, 5, 7, 9, 11, 13, 15), second8);
    int4 second4 = IS_BETTER(x8.odd, x8.even);
    float4 x4 = select(x8.even, x8.odd, second4);
    int4 at4 = select(at8.even, at8.odd, second4);
    int2 second2 = IS_BETTER(x4.odd, x4.even);
    float2 x2 = select(x4.even, x4.odd, second2);
    int2 at2 = select(at4.even, at4.odd, second2);
    bool take_second = IS_BETTER(x2.odd, x2.even);
    float arg_best = take_second ? x2.odd : x2.even;
    uint at = (uint)(take_second ? at2.odd : at2.even);
    if (!isnan(sum16(&x))) {
        bool wins = IS_BETTER(arg_best, l->value);
        l->value = wins ? arg_best : l->value;
        l->index = wins ? index + (at >> 2) * vec4_step + (at & 3) * lane_step
                        : l->index;
        return;
    }
    /* x contains a NaN, or infinities of both signs, whose sum is NaN. */
    accumulate4(l, x.lo.lo, index, lane_step);
    accumulate4(l, x.lo.hi, index + vec4_step, lane_step);
    accumulate4(l, x.hi.lo, index + 2 * vec4_step, lane_step);
    accumulate4(l, x.hi.hi, index + 3 * vec4_step, lane_step);
}
static inline partial_t accumulator_partial(const struct accumulator *l)
{
    partial_t all;
    all.value = l->value;
    all.reserved = 0;
    all.index = l->index == NONE ? ULONG_MAX : (ulong)l->index;
    return all;
}
/* A NaN wins over numbers. If two values are equal, the lower index wins. */
static inline partial_t partial_combine(partial_t a, partial_t b)
{
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool wins = IS_BETTER(b.value, a.value);
    bool ties = (a_nan && b_nan) || a.value == b.value;
    bool take_second = a_nan != b_nan ? b_nan
                                 : wins || (ties && b.index < a.index);
    partial_t arg_best;
    arg_best.value = take_second ? b.value : a.value;
    arg_best.reserved = 0;
    arg_best.index = take_second ? b.index : a.index;
    return arg_best;
}
static inline result_t split_value(partial_t a, ulong count)
{
    return (long)a.index;
}
#ifdef SHUFFLE_WIDTH
static inline partial_t partial_shuffle_xor(partial_t x, uint mask)
{
    uint low = (uint)x.index, high = (uint)(x.index >> 32);
    partial_t y;
    y.value = shuffle_xor(x.value, mask);
    y.reserved = 0;
    low = as_uint(shuffle_xor(as_float(low), mask));
    high = as_uint(shuffle_xor(as_float(high), mask));
    y.index = (ulong)high << 32 | low;
    return y;
}
#endif
#elif REDUCTION == LOG_SUM_EXP
/* Largest element so far, and Kahan sum of e^(element - largest). */
#define IDENTITY -INFINITY
struct accumulator {
    float largest, sum, error;
};
typedef float2 partial_t; /* largest element x, sum y of e^(element - x) */

static inline void accumulator_clear(struct accumulator *l)
{
    l->largest = -INFINITY;
    l->sum = l->error = 0.0f;
}
/* Returns e^(x - largest): 0 if both are -infinity, 1 if both are +infinity. */
static inline float term_of(float x, float largest)
{
    return x != largest ? exp(x - largest) : x == -INFINITY ? 0.0f : 1.0f;
}
static inline float4 terms_of(float4 x, float largest)
{
    return (float4)(term_of(x.s0, largest), term_of(x.s1, largest),
                    term_of(x.s2, largest), term_of(x.s3, largest));
}

/* If x > l->largest, sets l->largest to x and adapts the sum. Ignores NaN. */
static inline void accumulator_raise_max(struct accumulator *l, float x)
{
    if (x > l->largest) {
        float shrink = exp(l->largest - x);
        l->sum *= shrink;
        l->error *= shrink;
        l->largest = x;
    }
}

static inline void accumulator_add(struct accumulator *l, float term)
{
    float y = term - l->error;
    float next = l->sum + y;
    l->error = (next - l->sum) - y;
    l->sum = next;
}

static inline void accumulate(struct accumulator *l, float x, index_t index)
{
    accumulator_raise_max(l, x);
    accumulator_add(l, term_of(x, l->largest));
}

INLINE void accumulate16(struct accumulator *l, const float16 *all,
                         index_t index, index_t vec4_step, index_t lane_step)
{
    float16 x = *all;
    accumulator_raise_max(l, max16(&x));
    float m = l->largest;
    if (isfinite(m)) {
        accumulator_add(l, sum16_exp(&x, m));
        return;
    }
    accumulator_add(l, sum4((terms_of(x.lo.lo, m) + terms_of(x.lo.hi, m)) +
                            (terms_of(x.hi.lo, m) + terms_of(x.hi.hi, m))));
}

static inline partial_t accumulator_partial(const struct accumulator *l)
{
    return (partial_t)(l->largest, l->sum);
}
static inline partial_t partial_combine(partial_t a, partial_t b)
{
    float largest = fmax(a.x, b.x);
    float y = a.x != largest ? a.y * exp(a.x - largest) : a.y;
    float z = b.x != largest ? b.y * exp(b.x - largest) : b.y;
    return (partial_t)(largest, y + z);
}
static inline result_t split_value(partial_t a, ulong count)
{
    return a.x + log(a.y);
}
#else
/* The accumulator holds the product, maximum or minimum of its elements. */
#define IDENTITY                                                               \
    (REDUCTION == PROD ? 1.0f : REDUCTION == MAX ? -INFINITY : INFINITY)
struct accumulator {
    float value;
};
typedef float partial_t;

static inline void accumulator_clear(struct accumulator *l)
{
    l->value = IDENTITY;
}
static inline partial_t partial_combine(partial_t a, partial_t b)
{
    return REDUCTION == PROD  ? a * b
           : REDUCTION == MAX ? nan_max(a, b)
                              : nan_min(a, b);
}
static inline void accumulate(struct accumulator *l, float x, index_t index)
{
    l->value = partial_combine(l->value, x);
}
#if REDUCTION == PROD
INLINE void accumulate16(struct accumulator *l, const float16 *all,
                         index_t index, index_t vec4_step, index_t lane_step)
{
    float16 x = *all;
    float8 y = x.lo * x.hi;
    float4 z = y.lo * y.hi;
    float2 w = z.lo * z.hi;
    l->value *= w.x * w.y;
}
#else
static inline float combine4(float4 x)
{
    return partial_combine(partial_combine(x.s0, x.s1),
                           partial_combine(x.s2, x.s3));
}
INLINE void accumulate16(struct accumulator *l, const float16 *all,
                         index_t index, index_t vec4_step, index_t lane_step)
{
    float16 x = *all;
    /* fmax and fmin ignore NaN, so they are used only if there is no NaN. */
    if (!isnan(sum16(&x)) && l->value == l->value) {
        float8 y = REDUCTION == MAX ? fmax(x.lo, x.hi) : fmin(x.lo, x.hi);
        float4 z = REDUCTION == MAX ? fmax(y.lo, y.hi) : fmin(y.lo, y.hi);
        float2 w = REDUCTION == MAX ? fmax(z.lo, z.hi) : fmin(z.lo, z.hi);
        l->value = REDUCTION == MAX ? fmax(l->value, fmax(w.x, w.y))
                                    : fmin(l->value, fmin(w.x, w.y));
        return;
    }
    float low = partial_combine(combine4(x.lo.lo), combine4(x.lo.hi));
    float high = partial_combine(combine4(x.hi.lo), combine4(x.hi.hi));
    l->value = partial_combine(l->value, partial_combine(low, high));
}
#endif
static inline partial_t accumulator_partial(const struct accumulator *l)
{
    return l->value;
}
static inline result_t split_value(partial_t a, ulong count)
{
    return a;
}
#endif

#if !IS_ARG
static inline void accumulator_start(struct accumulator *l, index_t index)
{
}
#endif
#if IS_ARG
#define PARTIAL_SHUFFLE partial_shuffle_xor
#elif REDUCTION == LOG_SUM_EXP
#define PARTIAL_SHUFFLE shuffle_xor2
#else
#define PARTIAL_SHUFFLE shuffle_xor
#endif
INLINE partial_t lanes_combine(partial_t own, __local partial_t *partials,
                               uint lanes, uint step)
    LANES_COMBINE_BODY(partial_combine, PARTIAL_SHUFFLE)

/* Except for sums, the result of a split is a partial like those of lanes. */
#if IS_SUM
INLINE split_result_t lanes_combine_splits(split_result_t own,
                                           __local split_result_t *partials,
                                           uint lanes, uint step)
    LANES_COMBINE_BODY(split_combine, split_shuffle_xor)
#else
typedef partial_t split_result_t;
static inline split_result_t split_combine(split_result_t a, split_result_t b)
{
    return partial_combine(a, b);
}
INLINE split_result_t lanes_combine_splits(split_result_t own,
                                           __local split_result_t *partials,
                                           uint lanes, uint step)
{
    return lanes_combine(own, partials, lanes, step);
}
static inline split_result_t split_empty(void)
{
    struct accumulator empty;
    accumulator_clear(&empty);
    return accumulator_partial(&empty);
}
#endif

#endif
