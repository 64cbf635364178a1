/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions.  Every output has lanes work-items of one group, which walk its
 * elements in turn, sixteen loads under way at a time, and are joined by a
 * tree: one fixed order, no atomics on values, so the same bits every time.
 *
 *   across 0: the lanes of an output are neighbours (the reduced axis is the
 *             contiguous one);  1: neighbours belong to neighbouring outputs
 *
 *          across 0                      across 1
 *   out 0: 0 1 2 3   out 1: 4 5 6 7      out 0: 0 2 4 6   out 1: 1 3 5 7
 *
 * Few outputs with many elements are split over groups, each of which writes
 * a partial result.  combine_splits joins them; or, JOINED, the group that
 * comes last does: by then all are there, and their order is that of the
 * splits.
 */
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
#ifndef JOINED
#define JOINED 0
#endif

#define SUMMING                                                                \
    (REDUCTION == SUM || REDUCTION == MEAN || REDUCTION == SUM_SQUARE ||       \
     REDUCTION == L2 || REDUCTION == DOT)
#define ARG (REDUCTION == ARG_MAX || REDUCTION == ARG_MIN)

#if ARG
typedef long result_t;
#else
typedef float result_t;
#endif

struct reduce {
    ulong outputs, count, chunk; /* elements of an output; of a split */
    ulong output_groups;
    uint splits, lanes_log2, across, vector;
    uint kept_rank, reduced_rank;
    ulong out_offset, in_offset, other_offset;
    struct extents kept, reduced;
    long out_strides[AXES], in_strides[AXES];
    long reduced_strides[AXES], other_strides[AXES];
};

/* ---- what a lane holds (running), what the tree joins (part) ---- */

/* NEUTRAL stands where there is no element. */
#if SUMMING
/* The sum and what its roundings lost: the error does not grow with the count.
 * A sum that is not finite has lost NaN. */
#define NEUTRAL 0.0f
#define SQUARES (REDUCTION != SUM && REDUCTION != MEAN)
struct running {
    float sum, lost;
};
typedef float part;
/* Of a split: its sum, and the steps by which elements were divided before
 * (rescaled_sum.cl). */
typedef float2 kept_t;

static inline void lane_clear(struct running *l)
{
    l->sum = l->lost = 0.0f;
}
static inline void lane_add(struct running *l, float x)
{
    float sum = l->sum + x;
    float added = sum - l->sum;
    l->lost += (l->sum - (sum - added)) + (x - added);
    l->sum = sum;
}
#if REDUCTION == SUM_SQUARE || REDUCTION == L2
#define SUMMAND(x) ((x) * (x))
#else
#define SUMMAND(x) (x)
#endif
static inline void lane_take(struct running *l, float x, index_t index)
{
    lane_add(l, SUMMAND(x));
}
static inline void lane_take16(struct running *l, float16 x, index_t index,
                               index_t four, index_t one)
{
    lane_add(l, sum16(SUMMAND(x)));
}
static inline part lane_part(const struct running *l)
{
    return isfinite(l->sum) ? l->sum + l->lost : l->sum;
}
static inline part part_join(part a, part b)
{
    return a + b;
}

/* The steps by which a row's elements are to be divided, in another sum. */
static inline float steps_wanted(float plain)
{
    if (!isfinite(plain))
        return 1.0f;
    return SQUARES && fabs(plain) < SMALL_SUM ? -1.0f : 0.0f;
}
static inline float step_of(float steps)
{
    return steps > 0.0f ? STEP_DOWN : steps < 0.0f ? STEP_UP : 1.0f;
}
/* A sum of what was divided by so many steps more, or less. */
static inline float stepped(float sum, float steps)
{
    float step = step_of(steps);
    if (fabs(steps) > 1.0f)
        return steps > 0.0f ? 0.0f * sum : sum;
    return SQUARES ? sum * step * step : sum * step;
}
/* Whether again, the sum of elements in so many steps, counts, not the plain
 * one: what is large and cancels out has no place there. */
static inline bool again_counts(float again, float steps)
{
    return steps > 0.0f || (steps < 0.0f && isfinite(again));
}

/* The product of x and y, each of them times step: neither what is infinite nor
 * a zero may meet what is so by its scaling alone. */
static inline float product_again(float x, float y, float step)
{
    float plain = x * y, apart = (x * step) * (y * step);
    if (step == STEP_DOWN)
        return isfinite(plain)   ? plain * step * step
               : isfinite(apart) ? apart
                                 : plain;
    bool less = fabs(x) < fabs(y);
    float low = less ? x : y, high = less ? y : x;
    return fabs(plain) < 0x1p-60f ? (low * step) * high * step
                                  : plain * step * step;
}
#if REDUCTION == DOT
#define TERM_AGAIN(i, j, step) product_again(in[i], other[j], step)
#else
#define TERM_AGAIN(i, j, step) SUMMAND(in[i] * (step))
#endif

#elif ARG
/* The best value and its index, NONE where there is no element. */
#define NEUTRAL (REDUCTION == ARG_MAX ? -INFINITY : INFINITY)
#define NONE (~(index_t)0)
struct running {
    float value;
    index_t index;
};
struct best {
    float value;
    uint reserved;
    ulong index;
};
typedef struct best part;

static inline void lane_clear(struct running *l)
{
    l->value = NEUTRAL;
    l->index = NONE;
}
/* Indices come in rising order; the first NaN stays. */
static inline void lane_take(struct running *l, float x, index_t index)
{
    bool beaten = REDUCTION == ARG_MAX ? !(x <= l->value) : !(x >= l->value);
    bool wins = beaten && l->value == l->value;
    l->value = wins ? x : l->value;
    l->index = wins ? index : l->index;
}
#if REDUCTION == ARG_MAX
#define BEATS(b, a) ((b) > (a))
#else
#define BEATS(b, a) ((b) < (a))
#endif
static inline void lane_take4(struct running *l, float4 x, index_t index,
                              index_t one)
{
    lane_take(l, x.s0, index);
    lane_take(l, x.s1, index + one);
    lane_take(l, x.s2, index + 2 * one);
    lane_take(l, x.s3, index + 3 * one);
}
static inline void lane_take16(struct running *l, float16 x, index_t index,
                               index_t four, index_t one)
{
    /* Of equal neighbours the first stays. */
    int8 second8 = BEATS(x.odd, x.even);
    float8 x8 = select(x.even, x.odd, second8);
    int8 at8 = select((int8)(0, 2, 4, 6, 8, 10, 12, 14),
                      (int8)(1, 3, 5, 7, 9, 11, 13, 15), second8);
    int4 second4 = BEATS(x8.odd, x8.even);
    float4 x4 = select(x8.even, x8.odd, second4);
    int4 at4 = select(at8.even, at8.odd, second4);
    int2 second2 = BEATS(x4.odd, x4.even);
    float2 x2 = select(x4.even, x4.odd, second2);
    int2 at2 = select(at4.even, at4.odd, second2);
    bool second = BEATS(x2.odd, x2.even);
    float best = second ? x2.odd : x2.even;
    uint at = (uint)(second ? at2.odd : at2.even);
    if (!isnan(sum16(x))) {
        bool wins = BEATS(best, l->value);
        l->value = wins ? best : l->value;
        l->index = wins ? index + (at >> 2) * four + (at & 3) * one : l->index;
        return;
    }
    /* There is a NaN, or infinities of both signs. */
    lane_take4(l, x.lo.lo, index, one);
    lane_take4(l, x.lo.hi, index + four, one);
    lane_take4(l, x.hi.lo, index + 2 * four, one);
    lane_take4(l, x.hi.hi, index + 3 * four, one);
}
static inline part lane_part(const struct running *l)
{
    part all;
    all.value = l->value;
    all.reserved = 0;
    all.index = l->index == NONE ? ULONG_MAX : (ulong)l->index;
    return all;
}
/* NaN wins, then the value, then the lower index. */
static inline part part_join(part a, part b)
{
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool wins = REDUCTION == ARG_MAX ? b.value > a.value : b.value < a.value;
    bool ties = (a_nan && b_nan) || a.value == b.value;
    bool second = a_nan != b_nan ? b_nan
                                 : wins || (ties && b.index < a.index);
    part best;
    best.value = second ? b.value : a.value;
    best.reserved = 0;
    best.index = second ? b.index : a.index;
    return best;
}
#ifdef WIDTH
static inline part part_from_lane(part x, uint mask)
{
    uint low = (uint)x.index, high = (uint)(x.index >> 32);
    part y;
    y.value = from_lane(x.value, mask);
    y.reserved = 0;
    low = as_uint(from_lane(as_float(low), mask));
    high = as_uint(from_lane(as_float(high), mask));
    y.index = (ulong)high << 32 | low;
    return y;
}
#endif
#elif REDUCTION == LOG_SUM_EXP
/* The largest x so far and the compensated sum of e^(x - largest). */
#define NEUTRAL -INFINITY
struct running {
    float largest, sum, lost;
};
typedef float2 part; /* the largest and the sum */

static inline void lane_clear(struct running *l)
{
    l->largest = -INFINITY;
    l->sum = l->lost = 0.0f;
}
/* e^(x - largest); 0 where both are -infinity, 1 where both are infinity. */
static inline float term_of(float x, float largest)
{
    return x != largest ? exp(x - largest) : x == -INFINITY ? 0.0f : 1.0f;
}
static inline float4 terms_of(float4 x, float largest)
{
    return (float4)(term_of(x.s0, largest), term_of(x.s1, largest),
                    term_of(x.s2, largest), term_of(x.s3, largest));
}

/* Raises the largest to at least x, which may be NaN. */
static inline void lane_raise(struct running *l, float x)
{
    if (x > l->largest) {
        float shrink = exp(l->largest - x);
        l->sum *= shrink;
        l->lost *= shrink;
        l->largest = x;
    }
}

static inline void lane_add(struct running *l, float term)
{
    float y = term - l->lost;
    float next = l->sum + y;
    l->lost = (next - l->sum) - y;
    l->sum = next;
}

static inline void lane_take(struct running *l, float x, index_t index)
{
    lane_raise(l, x);
    lane_add(l, term_of(x, l->largest));
}

static inline void lane_take16(struct running *l, float16 x, index_t index,
                               index_t four, index_t one)
{
    lane_raise(l, max16(x));
    float m = l->largest;
    if (isfinite(m)) {
        lane_add(l, sum16(exp(x - m)));
        return;
    }
    lane_add(l, sum4((terms_of(x.lo.lo, m) + terms_of(x.lo.hi, m)) +
                     (terms_of(x.hi.lo, m) + terms_of(x.hi.hi, m))));
}

static inline part lane_part(const struct running *l)
{
    return (part)(l->largest, l->sum);
}
static inline part part_join(part a, part b)
{
    float largest = fmax(a.x, b.x);
    float y = a.x != largest ? a.y * exp(a.x - largest) : a.y;
    float z = b.x != largest ? b.y * exp(b.x - largest) : b.y;
    return (part)(largest, y + z);
}
#else
/* The product, the maximum or the minimum of the elements so far. */
#define NEUTRAL                                                                \
    (REDUCTION == PROD ? 1.0f : REDUCTION == MAX ? -INFINITY : INFINITY)
struct running {
    float value;
};
typedef float part;

static inline void lane_clear(struct running *l)
{
    l->value = NEUTRAL;
}
static inline part part_join(part a, part b)
{
    return REDUCTION == PROD  ? a * b
           : REDUCTION == MAX ? nan_max(a, b)
                              : nan_min(a, b);
}
static inline void lane_take(struct running *l, float x, index_t index)
{
    l->value = part_join(l->value, x);
}
#if REDUCTION == PROD
static inline void lane_take16(struct running *l, float16 x, index_t index,
                               index_t four, index_t one)
{
    float8 y = x.lo * x.hi;
    float4 z = y.lo * y.hi;
    float2 w = z.lo * z.hi;
    l->value *= w.x * w.y;
}
#else
static inline float joined4(float4 x)
{
    return part_join(part_join(x.s0, x.s1), part_join(x.s2, x.s3));
}
static inline void lane_take16(struct running *l, float16 x, index_t index,
                               index_t four, index_t one)
{
    /* fmax and fmin pass over NaN. */
    if (!isnan(sum16(x)) && l->value == l->value) {
        float8 y = REDUCTION == MAX ? fmax(x.lo, x.hi) : fmin(x.lo, x.hi);
        float4 z = REDUCTION == MAX ? fmax(y.lo, y.hi) : fmin(y.lo, y.hi);
        float2 w = REDUCTION == MAX ? fmax(z.lo, z.hi) : fmin(z.lo, z.hi);
        l->value = REDUCTION == MAX ? fmax(l->value, fmax(w.x, w.y))
                                    : fmin(l->value, fmin(w.x, w.y));
        return;
    }
    float low = part_join(joined4(x.lo.lo), joined4(x.lo.hi));
    float high = part_join(joined4(x.hi.lo), joined4(x.hi.hi));
    l->value = part_join(l->value, part_join(low, high));
}
#endif
static inline part lane_part(const struct running *l)
{
    return l->value;
}
#endif

#if ARG
#define EXCHANGE part_from_lane
#elif REDUCTION == LOG_SUM_EXP
#define EXCHANGE from_lane2
#else
#define EXCHANGE from_lane
#endif
static inline part lanes_join(part own, __local part *parts, uint lanes,
                              uint step)
    LANES_BODY(part_join, EXCHANGE)

#if !SUMMING
typedef part kept_t;
#endif
/* steps: of a sum, those of its elements. */
static inline result_t part_result(part a, float steps, ulong count)
{
#if ARG
    return (long)a.index;
#elif REDUCTION == LOG_SUM_EXP
    return a.x + log(a.y);
#elif SUMMING
    float unit = step_of(-steps);
#if REDUCTION == L2
    return sqrt(a) * unit;
#elif SQUARES
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

/* The term of element j where one axis is reduced, and where j has an end. */
#define ALONG(j)                                                               \
    TERM(base + (long)(j)*p.reduced_strides[0],                                \
         (long)p.other_offset + (long)(j)*p.other_strides[0])
#define ALONG_TO(j, end) ((j) < (end) ? ALONG(j) : NEUTRAL)

/* The terms of four neighbours from element j on, where all are. */
#if REDUCTION == DOT
#define FOUR(j)                                                                \
    (*(__global const float4 *)(in + base + (j)) *                             \
     *(__global const float4 *)(other + p.other_offset + (j)))
#else
#define FOUR(j) (*(__global const float4 *)(in + base + (j)))
#endif
#define FOUR_TO(j, end) ((j) < (end) ? FOUR(j) : (float4)(NEUTRAL))

#if ARG
/* A lane whose elements are all NEUTRAL has the index of its first. */
#define BEGIN(own, j, end)                                                     \
    if ((own).index == NONE && (j) < (end))                                    \
        (own).index = (index_t)(j)
#else
#define BEGIN(own, j, end)
#endif

#if REDUCTION == DOT
#define INPUT_BUFFERS __global const float *in, __global const float *other
#else
#define INPUT_BUFFERS __global const float *in
#endif

#if REDUCTION == DOT
#define OTHER_FIND(walk, o, j)                                                 \
    long o = (long)p.other_offset;                                             \
    walk(o, (index_t)(j), p.reduced, p.reduced_rank, p.other_strides);
#else
#define OTHER_FIND(walk, o, j)
#endif

#if SUMMING
/* Adds the scaled elements of a lane's share of its row to `own`.  The lane may
 * get other elements than in the first pass. */
#define SHARE_AGAIN(step)                                                      \
    {                                                                          \
        long base = (long)p.in_offset;                                         \
        WALK_ROLLED(base, (index_t)at.row, p.kept, p.kept_rank, p.in_strides); \
        index_t end = (index_t)min((at.split + 1) * p.chunk, p.count);         \
        for (index_t k = (index_t)(at.split * p.chunk) + (index_t)at.lane;     \
             k < end; k += (index_t)at.lanes) {                                \
            long i = base;                                                     \
            WALK_ROLLED(i, k, p.reduced, p.reduced_rank, p.reduced_strides);   \
            OTHER_FIND(WALK_ROLLED, o, k)                                      \
            lane_add(&own, TERM_AGAIN(i, o, step));                            \
        }                                                                      \
    }

/* Rows whose sums have left the range are summed once more. */
#define SUM_RESCALED(all, steps)                                               \
    float steps = at.row < p.outputs ? steps_wanted(all) : 0.0f;               \
    if (RARELY(rows_any(steps != 0.0f, seen, at.lanes, at.step))) {            \
        lane_clear(&own);                                                      \
        if (steps != 0.0f)                                                     \
            SHARE_AGAIN(step_of(steps))                                        \
        part again = lanes_join(lane_part(&own), parts, at.lanes, at.step);    \
        steps = again_counts(again, steps) ? steps : 0.0f;                     \
        all = steps != 0.0f ? again : all;                                     \
    }
#define KEPT(all, steps) (kept_t)(all, steps)
#define KEPT_JOIN(own, kept) own + stepped(kept.x, -kept.y)
#define RESULT(all, steps) part_result(all, steps, p.count)
/* Likewise of splits' sums. */
#define JOIN_AGAIN(all, steps)                                                 \
    float steps = at.row < p.outputs ? steps_wanted(all) : 0.0f;               \
    if (RARELY(rows_any(steps != 0.0f, seen, at.lanes, at.step))) {            \
        part again = 0.0f;                                                     \
        if (steps != 0.0f)                                                     \
            for (uint s_ = at.lane; s_ < p.splits; s_ += at.lanes) {           \
                kept_t kept = partial[s_ * p.outputs + at.row];                \
                again += stepped(kept.x, steps - kept.y);                      \
            }                                                                  \
        again = lanes_join(again, parts, at.lanes, at.step);                   \
        steps = again_counts(again, steps) ? steps : 0.0f;                     \
        all = steps != 0.0f ? again : all;                                     \
    }
#else
#define SUM_RESCALED(all, steps)
#define JOIN_AGAIN(all, steps)
#define KEPT(all, steps) all
#define KEPT_JOIN(own, kept) part_join(own, kept)
#define RESULT(all, steps) part_result(all, 0.0f, p.count)
#endif

/* A lane's share of the splits of its row.  A function that gave it back would
 * leave an intrinsic, once inlined, which oclgrind 21.10 does not know. */
#define SPLITS_PART(own)                                                       \
    struct running none;                                                       \
    lane_clear(&none);                                                         \
    part own = lane_part(&none);                                               \
    if (at.row < p.outputs)                                                    \
        for (uint s_ = at.lane; s_ < p.splits; s_ += at.lanes)                 \
            own = KEPT_JOIN(own, partial[s_ * p.outputs + at.row]);

/* Whoever sees, in any group, what an item writes after it, sees what was
 * written before it, by those too whom the item met at a barrier. */
#if SHUFFLE == 1
#define FENCE_GROUPS __asm__ volatile("membar.gl;" : : : "memory")
#else
#define FENCE_GROUPS mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define MEET barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

/* A counter for each group of outputs, 0 before and after. */
#if JOINED
#define COUNTERS volatile __global uint *arrived,
#else
#define COUNTERS
#endif

KERNEL void reduce(__global result_t *out, __global kept_t *partial,
                   INPUT_BUFFERS, COUNTERS const struct reduce p)
{
    __local part parts[GROUP];
#if SUMMING
    __local uint seen[1];
#endif
    struct place at =
        place_of(p.lanes_log2, p.across, p.splits, p.output_groups);
    struct running own;
    lane_clear(&own);
    if (at.row < p.outputs) {
        long base = (long)p.in_offset;
        WALK(base, (index_t)at.row, p.kept, p.kept_rank, p.in_strides);
        ulong begin = at.split * p.chunk;
        ulong end = min(begin + p.chunk, p.count);
        ulong lanes = at.lanes, j = begin + at.lane;
        if (p.vector) {
            ulong fours = begin + (end - begin) / 4 * 4;
            ulong i = begin + at.lane * 4, next = lanes * 4;
            BEGIN(own, i, fours);
            for (; i < fours; i += 4 * next) {
                float4 a = FOUR(i), b = FOUR_TO(i + next, fours);
                float4 c = FOUR_TO(i + 2 * next, fours);
                float4 d = FOUR_TO(i + 3 * next, fours);
                lane_take16(&own, (float16)(a, b, c, d), (index_t)i,
                            (index_t)next, 1);
            }
            j = fours + at.lane;
            BEGIN(own, j, end);
            for (; j < end; j += lanes)
                lane_take(&own, ALONG(j), (index_t)j);
        }
        BEGIN(own, j, end);
        for (; p.reduced_rank == 1 && j < end; j += 16 * lanes) {
#define AHEAD(k) ALONG_TO(j + k * lanes, end)
            float16 x = (float16)(ALONG(j), AHEAD(1), AHEAD(2), AHEAD(3),
                                  AHEAD(4), AHEAD(5), AHEAD(6), AHEAD(7),
                                  AHEAD(8), AHEAD(9), AHEAD(10), AHEAD(11),
                                  AHEAD(12), AHEAD(13), AHEAD(14), AHEAD(15));
            lane_take16(&own, x, (index_t)j, (index_t)(4 * lanes),
                        (index_t)lanes);
        }
        for (; j < end; j += lanes) {
            long i = base;
            WALK(i, (index_t)j, p.reduced, p.reduced_rank, p.reduced_strides);
            OTHER_FIND(WALK, o, j)
            lane_take(&own, TERM(i, o), (index_t)j);
        }
    }
    part all = lanes_join(lane_part(&own), parts, at.lanes, at.step);
    SUM_RESCALED(all, steps)
    bool first = at.lane == 0 && at.row < p.outputs;
    if (first && p.splits > 1)
        partial[at.split * p.outputs + at.row] = KEPT(all, steps);
#if JOINED
    __local uint last[1];
    MEET;
    if (get_local_id(0) == 0) {
        ulong of = get_group_id(0) - at.split * p.output_groups;
        FENCE_GROUPS;
        last[0] = atomic_inc(arrived + of) == p.splits - 1;
        FENCE_GROUPS;
        if (last[0])
            arrived[of] = 0;
    }
    MEET;
    if (!last[0])
        return;
    SPLITS_PART(joined)
    all = lanes_join(joined, parts, at.lanes, at.step);
    JOIN_AGAIN(all, joined_steps)
#define STEPS joined_steps
#else
#define STEPS steps
    if (p.splits > 1)
        return;
#endif
    if (!first)
        return;
    long to = (long)p.out_offset;
    WALK(to, (index_t)at.row, p.kept, p.kept_rank, p.out_strides);
    out[to] = RESULT(all, STEPS);
}

KERNEL void combine_splits(__global result_t *out,
                           __global const kept_t *partial,
                           const struct reduce p)
{
    __local part parts[GROUP];
#if SUMMING
    __local uint seen[1];
#endif
    struct place at =
        place_of(p.lanes_log2, p.across, 1, p.output_groups);
    SPLITS_PART(own)
    part all = lanes_join(own, parts, at.lanes, at.step);
    JOIN_AGAIN(all, steps)
    if (at.lane != 0 || at.row >= p.outputs)
        return;
    long to = (long)p.out_offset;
    WALK(to, (index_t)at.row, p.kept, p.kept_rank, p.out_strides);
    out[to] = RESULT(all, steps);
}
