/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions. Each output is computed by `lanes` work-items of a work-group.
 * Each work-item accumulates some elements with sixteen loads in flight. A tree
 * reduction combines the accumulators in a fixed order and without atomics, so
 * results are reproducible. Example: work-items 0 to 7 compute two outputs.
 *
 *        lanes_interleaved = 0                lanes_interleaved = 1
 *    (neighbours share an output)         (neighbours have different outputs)
 *   out 0: 0 1 2 3   out 1: 4 5 6 7      out 0: 0 2 4 6   out 1: 1 3 5 7
 *
 * If there are few outputs with many elements, the elements of an output are
 * split over several work-groups, and each stores a partial result. The kernel
 * reduce_combine_splits combines these results in a fixed order. If
 * LAST_GROUP_COMBINES is 1, the last work-group that finishes combines them.
 */
#include "common/params.cl"

struct reduce_params {
    uint64_t outputs, count,
        elements_per_split; /* count is the number of inputs per output */
    uint64_t output_groups;
    uint32_t splits, lanes_log2, lanes_interleaved, is_vec4;
    uint32_t outer_rank, reduced_rank;
    uint64_t out_offset, in_offset, other_offset;
    struct fast_divmod outer, reduced;
    int64_t out_strides[MAX_AXES], in_strides[MAX_AXES];
    int64_t reduced_strides[MAX_AXES], other_strides[MAX_AXES];
};
PARAMS_SIZE(reduce_params, 592);

#ifdef __OPENCL_C_VERSION__
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
#define LAST_GROUP_COMBINES 0
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
/* x is the sum of a split, y its number of rescalings (rescaled_sum.cl). */
typedef float2 split_result_t;

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

/* Returns how to rescale a sum: 1 means down, -1 means up, 0 means neither. */
static inline float rescales_wanted(float unscaled)
{
    if (!isfinite(unscaled))
        return 1.0f;
    return SUMS_PRODUCTS && fabs(unscaled) < MIN_EXACT_SUM ? -1.0f : 0.0f;
}
static inline float rescale_factor(float rescales)
{
    return rescales > 0.0f ? SCALE_DOWN : rescales < 0.0f ? SCALE_UP : 1.0f;
}
/* Returns the sum scaled down if rescales > 0, or up if rescales < 0. */
static inline float rescaled(float sum, float rescales)
{
    float step = rescale_factor(rescales);
    if (fabs(rescales) > 1.0f)
        return rescales > 0.0f ? 0.0f * sum : sum;
    return SUMS_PRODUCTS ? sum * step * step : sum * step;
}
/* Returns true if the rescaled sum must replace the unscaled sum. If a sum
 * overflows when it is scaled up, the unscaled sum is kept. */
static inline bool rescaled_sum_is_valid(float rescaled_total, float rescales)
{
    return rescales > 0.0f || (rescales < 0.0f && isfinite(rescaled_total));
}

/* Returns (x * step) * (y * step), multiplied in an order that avoids needless
 * overflow and underflow of intermediate products. */
static inline float rescaled_product(float x, float y, float step)
{
    float unscaled = x * y, scaled_product = (x * step) * (y * step);
    if (step == SCALE_DOWN)
        return isfinite(unscaled)         ? unscaled * step * step
               : isfinite(scaled_product) ? scaled_product
                                          : unscaled;
    bool less = fabs(x) < fabs(y);
    float low = less ? x : y, high = less ? y : x;
    return fabs(unscaled) < 0x1p-60f ? (low * step) * high * step
                                     : unscaled * step * step;
}
#if REDUCTION == DOT
#define RESCALED_TERM(i, j, step) rescaled_product(in[i], other[j], step)
#else
#define RESCALED_TERM(i, j, step) SUMMAND(in[i] * (step))
#endif

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

#if !IS_SUM
typedef partial_t split_result_t;
#endif
/* Converts `a`, the combination of an output's partial results, to the output's
 * value. If `a` is a sum, `rescales` is its number of rescalings. */
static inline result_t partial_result(partial_t a, float rescales, ulong count)
{
#if IS_ARG
    return (long)a.index;
#elif REDUCTION == LOG_SUM_EXP
    return a.x + log(a.y);
#elif IS_SUM
    float unit = rescale_factor(-rescales);
#if REDUCTION == L2
    return sqrt(a) * unit;
#elif SUMS_PRODUCTS
    return a * unit * unit;
#elif REDUCTION == MEAN
    return a / (float)count * unit;
#else
    return a * unit;
#endif
#else
    return a;
#endif
}

#if REDUCTION == DOT
#define TERM(i, j) (in[i] * other[j])
#else
#define TERM(i, j) in[i]
#endif

/* AXIS_TERM(j) is the term of element j in a reduction over one axis. */
#define AXIS_TERM(j)                                                           \
    TERM(base + (long)(j)*p.reduced_strides[0],                                \
         (long)p.other_offset + (long)(j)*p.other_strides[0])
#define AXIS_TERM_OR_IDENTITY(j, end) ((j) < (end) ? AXIS_TERM(j) : IDENTITY)

/* VEC4_TERMS(j) is the vector of the terms of elements j to j + 3. */
#if REDUCTION == DOT
#define VEC4_TERMS(j)                                                          \
    (*(__global const float4 *)(in + base + (j)) *                             \
     *(__global const float4 *)(other + p.other_offset + (j)))
#define INPUT_BUFFERS __global const float *in, __global const float *other
#define DECLARE_OTHER_OFFSET(walk, o, j)                                       \
    long o = (long)p.other_offset;                                             \
    walk(o, (index_t)(j), p.reduced, p.reduced_rank, p.other_strides);
#else
#define VEC4_TERMS(j) (*(__global const float4 *)(in + base + (j)))
#define INPUT_BUFFERS __global const float *in
#define DECLARE_OTHER_OFFSET(walk, o, j)
#endif
#define VEC4_TERMS_OR_IDENTITY(j, end)                                         \
    ((j) < (end) ? VEC4_TERMS(j) : (float4)(IDENTITY))

#if IS_ARG
/* If all elements of a work-item equal IDENTITY, the first one is the best. */
#define START_INDEX(own, j, end)                                               \
    if ((own).index == NONE && (j) < (end))                                    \
        (own).index = (index_t)(j)
#else
#define START_INDEX(own, j, end)
#endif

#if IS_SUM
/* Scales the elements of the work-item's share by `step` and adds their terms
 * to `own`. These shares can differ from those of the first, unscaled pass. */
#define ADD_RESCALED_SHARE(step)                                               \
    {                                                                          \
        long base = (long)p.in_offset;                                         \
        ADD_OFFSET_ROLLED(base, (index_t)at.row, p.outer, p.outer_rank,        \
                          p.in_strides);                                       \
        index_t end =                                                          \
            (index_t)min((at.split + 1) * p.elements_per_split, p.count);      \
        for (index_t k = (index_t)(at.split * p.elements_per_split) +          \
                         (index_t)at.lane;                                     \
             k < end; k += (index_t)at.lanes) {                                \
            long i = base;                                                     \
            ADD_OFFSET_ROLLED(i, k, p.reduced, p.reduced_rank,                 \
                              p.reduced_strides);                              \
            DECLARE_OTHER_OFFSET(ADD_OFFSET_ROLLED, o, k)                      \
            accumulator_add(&own, RESCALED_TERM(i, o, step));                  \
        }                                                                      \
    }

/* If a row's sum overflows or underflows, sums the row's scaled elements. */
#define SUM_RESCALED(all, rescales)                                            \
    float rescales = at.row < p.outputs ? rescales_wanted(all) : 0.0f;         \
    if (UNLIKELY(                                                              \
            rows_vote_any(rescales != 0.0f, vote_word, at.lanes, at.step))) {  \
        accumulator_clear(&own);                                               \
        if (rescales != 0.0f)                                                  \
            ADD_RESCALED_SHARE(rescale_factor(rescales))                       \
        partial_t rescaled_total = lanes_combine(accumulator_partial(&own),    \
                                                 partials, at.lanes, at.step); \
        rescales =                                                             \
            rescaled_sum_is_valid(rescaled_total, rescales) ? rescales : 0.0f; \
        all = rescales != 0.0f ? rescaled_total : all;                         \
    }
#define SPLIT_RESULT(all, rescales) (split_result_t)(all, rescales)
#define ADD_SPLIT_RESULT(own, result) own + rescaled(result.x, -result.y)
#define RESULT(all, rescales) partial_result(all, rescales, p.count)
/* If the splits' total overflows or underflows, adds their scaled sums. */
#define COMBINE_RESCALED(all, rescales)                                        \
    float rescales = at.row < p.outputs ? rescales_wanted(all) : 0.0f;         \
    if (UNLIKELY(                                                              \
            rows_vote_any(rescales != 0.0f, vote_word, at.lanes, at.step))) {  \
        partial_t rescaled_total = 0.0f;                                       \
        if (rescales != 0.0f)                                                  \
            for (uint s_ = at.lane; s_ < p.splits; s_ += at.lanes) {           \
                split_result_t result = partial[s_ * p.outputs + at.row];      \
                rescaled_total += rescaled(result.x, rescales - result.y);     \
            }                                                                  \
        rescaled_total =                                                       \
            lanes_combine(rescaled_total, partials, at.lanes, at.step);        \
        rescales =                                                             \
            rescaled_sum_is_valid(rescaled_total, rescales) ? rescales : 0.0f; \
        all = rescales != 0.0f ? rescaled_total : all;                         \
    }
#else
#define SUM_RESCALED(all, rescales)
#define COMBINE_RESCALED(all, rescales)
#define SPLIT_RESULT(all, rescales) all
#define ADD_SPLIT_RESULT(own, result) partial_combine(own, result)
#define RESULT(all, rescales) partial_result(all, 0.0f, p.count)
#endif

/* Declares `own`, the combination of the partial results in the work-item's
 * share. This is a macro because a function would need an intrinsic that
 * oclgrind 21.10 lacks. */
#define COMBINE_SPLIT_SHARE(own)                                               \
    struct accumulator empty;                                                  \
    accumulator_clear(&empty);                                                 \
    partial_t own = accumulator_partial(&empty);                               \
    if (at.row < p.outputs)                                                    \
        for (uint s_ = at.lane; s_ < p.splits; s_ += at.lanes)                 \
            own = ADD_SPLIT_RESULT(own, partial[s_ * p.outputs + at.row]);

/* Memory fence for the whole device: every work-group that sees a write after
 * the fence also sees all writes before the fence, even those of other
 * work-items that reached a barrier with this work-item before the fence. */
#if SHUFFLE == 1
#define DEVICE_FENCE __asm__ volatile("membar.gl;" : : : "memory")
#else
#define DEVICE_FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define GROUP_BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* Number of finished splits for each group of outputs, 0 between launches. */
#if LAST_GROUP_COMBINES
#define ARRIVAL_COUNTERS volatile __global uint *arrival_counters,
#else
#define ARRIVAL_COUNTERS
#endif

#ifdef BUILD_reduce
KERNEL void reduce(__global result_t *out, __global split_result_t *partial,
                   INPUT_BUFFERS, ARRIVAL_COUNTERS const struct reduce_params p)
{
    __local partial_t partials[GROUP_SIZE];
#if IS_SUM
    __local uint vote_word[1];
#endif
    struct lane_assignment at = lane_assign(
        p.lanes_log2, p.lanes_interleaved, p.splits, p.output_groups);
    struct accumulator own;
    accumulator_clear(&own);
    if (at.row < p.outputs) {
        long base = (long)p.in_offset;
        ADD_OFFSET(base, (index_t)at.row, p.outer, p.outer_rank, p.in_strides);
        ulong begin = at.split * p.elements_per_split;
        ulong end = min(begin + p.elements_per_split, p.count);
        ulong lanes = at.lanes, j = begin + at.lane;
        if (p.is_vec4) {
            ulong vec4_end = begin + (end - begin) / 4 * 4;
            ulong i = begin + at.lane * 4, next = lanes * 4;
            START_INDEX(own, i, vec4_end);
            for (; i < vec4_end; i += 4 * next) {
                float4 a = VEC4_TERMS(i),
                       b = VEC4_TERMS_OR_IDENTITY(i + next, vec4_end);
                float4 c = VEC4_TERMS_OR_IDENTITY(i + 2 * next, vec4_end);
                float4 d = VEC4_TERMS_OR_IDENTITY(i + 3 * next, vec4_end);
                float16 x = (float16)(a, b, c, d);
                accumulate16(&own, &x, (index_t)i, (index_t)next, 1);
            }
            j = vec4_end + at.lane;
            START_INDEX(own, j, end);
            for (; j < end; j += lanes)
                accumulate(&own, AXIS_TERM(j), (index_t)j);
        }
        START_INDEX(own, j, end);
        for (; p.reduced_rank == 1 && j < end; j += 16 * lanes) {
#define AHEAD(k) AXIS_TERM_OR_IDENTITY(j + k * lanes, end)
            float16 x = (float16)(AXIS_TERM(j), AHEAD(1), AHEAD(2), AHEAD(3),
                                  AHEAD(4), AHEAD(5), AHEAD(6), AHEAD(7),
                                  AHEAD(8), AHEAD(9), AHEAD(10), AHEAD(11),
                                  AHEAD(12), AHEAD(13), AHEAD(14), AHEAD(15));
            accumulate16(&own, &x, (index_t)j, (index_t)(4 * lanes),
                         (index_t)lanes);
        }
        for (; j < end; j += lanes) {
            long i = base;
            ADD_OFFSET(i, (index_t)j, p.reduced, p.reduced_rank,
                       p.reduced_strides);
            DECLARE_OTHER_OFFSET(ADD_OFFSET, o, j)
            accumulate(&own, TERM(i, o), (index_t)j);
        }
    }
    partial_t all =
        lanes_combine(accumulator_partial(&own), partials, at.lanes, at.step);
    SUM_RESCALED(all, rescales)
    bool first = at.lane == 0 && at.row < p.outputs;
    if (first && p.splits > 1)
        partial[at.split * p.outputs + at.row] = SPLIT_RESULT(all, rescales);
#if LAST_GROUP_COMBINES
    __local uint last[1];
    GROUP_BARRIER;
    if (get_local_id(0) == 0) {
        ulong of = get_group_id(0) - at.split * p.output_groups;
        DEVICE_FENCE;
        last[0] = atomic_inc(arrival_counters + of) == p.splits - 1;
        DEVICE_FENCE;
        if (last[0])
            arrival_counters[of] = 0;
    }
    GROUP_BARRIER;
    if (!last[0])
        return;
    COMBINE_SPLIT_SHARE(combined)
    all = lanes_combine(combined, partials, at.lanes, at.step);
    COMBINE_RESCALED(all, combined_rescales)
#define RESCALES combined_rescales
#else
#define RESCALES rescales
    if (p.splits > 1)
        return;
#endif
    if (!first)
        return;
    long to = (long)p.out_offset;
    ADD_OFFSET(to, (index_t)at.row, p.outer, p.outer_rank, p.out_strides);
    out[to] = RESULT(all, RESCALES);
}
#endif

#ifdef BUILD_reduce_combine_splits
KERNEL void reduce_combine_splits(__global result_t *out,
                                  __global const split_result_t *partial,
                                  const struct reduce_params p)
{
    __local partial_t partials[GROUP_SIZE];
#if IS_SUM
    __local uint vote_word[1];
#endif
    struct lane_assignment at = lane_assign(
        p.lanes_log2, p.lanes_interleaved, 1, p.output_groups);
    COMBINE_SPLIT_SHARE(own)
    partial_t all = lanes_combine(own, partials, at.lanes, at.step);
    COMBINE_RESCALED(all, rescales)
    if (at.lane != 0 || at.row >= p.outputs)
        return;
    long to = (long)p.out_offset;
    ADD_OFFSET(to, (index_t)at.row, p.outer, p.outer_rank, p.out_strides);
    out[to] = RESULT(all, rescales);
}
#endif

#endif
