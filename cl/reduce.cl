/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions.  Every output has lanes work-items of one group, which walk its
 * elements in turn and are joined by a tree in local memory: one fixed order,
 * no atomics, so the same bits every time.
 *
 *   across 0: the lanes of an output are neighbours (the reduced axis is the
 *             contiguous one);  1: neighbours belong to neighbouring outputs
 *
 *          across 0                      across 1
 *   out 0: 0 1 2 3   out 1: 4 5 6 7      out 0: 0 2 4 6   out 1: 1 3 5 7
 *
 * Few outputs with many elements are split over groups: first writes one
 * partial result per split, last joins them.
 */
#ifndef TANDEM_EMBEDDED
#include "common.cl"
#endif

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

/* ---- what a lane holds (lane), what the tree joins (part) ---- */

#if SUMMING
/* A compensated sum: its error does not grow with the count.  plain is kept
 * for sums that are not finite, of which the compensation makes NaN. */
struct lane {
    float sum, lost, plain;
};
typedef float part;

static inline void lane_clear(struct lane *l)
{
    l->sum = l->lost = l->plain = 0.0f;
}
static inline void lane_take(struct lane *l, float x, ulong index)
{
    float y = x - l->lost;
    float next = l->sum + y;
    l->lost = (next - l->sum) - y;
    l->sum = next;
    l->plain += x;
}
static inline part lane_part(const struct lane *l)
{
    return isfinite(l->sum) ? l->sum : l->plain;
}
static inline part part_join(part a, part b)
{
    return a + b;
}
#elif ARG
struct lane {
    float value;
    uint found;
    ulong index;
};
typedef struct lane part;

static inline void lane_clear(struct lane *l)
{
    l->value = 0.0f;
    l->found = 0;
    l->index = 0;
}
/* Whether b wins over a: NaN over all, then the value, then the lower index. */
static inline part part_join(part a, part b)
{
    if (b.found == 0)
        return a;
    if (a.found == 0)
        return b;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool wins = REDUCTION == ARG_MAX ? b.value > a.value : b.value < a.value;
    bool ties = (a_nan && b_nan) || a.value == b.value;
    if (a_nan != b_nan)
        return b_nan ? b : a;
    return wins || (ties && b.index < a.index) ? b : a;
}
static inline void lane_take(struct lane *l, float x, ulong index)
{
    struct lane b;
    b.value = x;
    b.found = 1;
    b.index = index;
    *l = part_join(*l, b);
}
static inline part lane_part(const struct lane *l)
{
    return *l;
}
#elif REDUCTION == LOG_SUM_EXP
/* The largest x so far and the compensated sum of e^(x - largest). */
struct lane {
    float largest, sum, lost;
};
typedef float2 part; /* the largest and the sum */

static inline void lane_clear(struct lane *l)
{
    l->largest = -INFINITY;
    l->sum = l->lost = 0.0f;
}
/* e^(x - largest); 0 where both are -infinity, 1 where both are infinity. */
static inline float term_of(float x, float largest)
{
    return x != largest ? exp(x - largest) : x == -INFINITY ? 0.0f : 1.0f;
}

/* Raises the largest to at least x, which may be NaN. */
static inline void lane_raise(struct lane *l, float x)
{
    if (x > l->largest) {
        float shrink = exp(l->largest - x);
        l->sum *= shrink;
        l->lost *= shrink;
        l->largest = x;
    }
}

static inline void lane_add(struct lane *l, float term)
{
    float y = term - l->lost;
    float next = l->sum + y;
    l->lost = (next - l->sum) - y;
    l->sum = next;
}

static inline void lane_take(struct lane *l, float x, ulong index)
{
    lane_raise(l, x);
    lane_add(l, term_of(x, l->largest));
}

static inline void lane_take4(struct lane *l, float4 x)
{
    lane_raise(l, fmax(fmax(x.s0, x.s1), fmax(x.s2, x.s3)));
    float m = l->largest;
    lane_add(l, (term_of(x.s0, m) + term_of(x.s1, m)) +
                    (term_of(x.s2, m) + term_of(x.s3, m)));
}

static inline part lane_part(const struct lane *l)
{
    return (part)(l->largest, l->sum);
}
static inline part part_join(part a, part b)
{
    float largest = fmax(a.x, b.x);
    if (a.x != largest)
        a.y *= exp(a.x - largest);
    if (b.x != largest)
        b.y *= exp(b.x - largest);
    return (part)(largest, a.y + b.y);
}
#else
struct lane {
    float value;
};
typedef float part;

static inline void lane_clear(struct lane *l)
{
    l->value = REDUCTION == PROD  ? 1.0f
               : REDUCTION == MAX ? -INFINITY
                                  : INFINITY;
}
static inline part part_join(part a, part b)
{
    return REDUCTION == PROD  ? a * b
           : REDUCTION == MAX ? nan_max(a, b)
                              : nan_min(a, b);
}
static inline void lane_take(struct lane *l, float x, ulong index)
{
    l->value = part_join(l->value, x);
}
static inline part lane_part(const struct lane *l)
{
    return l->value;
}
#endif

static inline result_t part_result(part a, ulong count)
{
#if ARG
    return (long)a.index;
#elif REDUCTION == LOG_SUM_EXP
    return a.x + log(a.y);
#elif REDUCTION == MEAN
    return a / (float)count;
#elif REDUCTION == L2
    return sqrt(a);
#else
    return a;
#endif
}

#if REDUCTION == SUM_SQUARE || REDUCTION == L2
#define TERM(i, j) (in[i] * in[i])
#elif REDUCTION == DOT
#define TERM(i, j) (in[i] * other[j])
#else
#define TERM(i, j) in[i]
#endif

/* The term of element j where one axis is reduced. */
#define ALONG(j)                                                               \
    TERM(base + (long)(j)*p.reduced_strides[0],                                \
         (long)p.other_offset + (long)(j)*p.other_strides[0])

/* ---- the walk ---- */

/* Which output, lane and slot of the tree this item is. */
struct place {
    uint lane, slot, step;
    ulong output, split;
};

static inline struct place place_of(uint lanes_log2, uint across,
                                    ulong output_groups)
{
    struct place at;
    uint id = get_local_id(0), lanes = 1u << lanes_log2;
    uint outputs = GROUP / lanes;
    uint output = across ? id & (outputs - 1) : id >> lanes_log2;
    at.lane = across ? id / outputs : id & (lanes - 1);
    at.step = across ? outputs : 1;
    at.slot = id;
    at.split = get_group_id(0) / output_groups;
    at.output = (get_group_id(0) - at.split * output_groups) * outputs + output;
    return at;
}

/* Joins the parts of each output's lanes; the result is lane 0's. */
static inline part tree(__local part *parts, part own, struct place at,
                        uint lanes_log2)
{
    parts[at.slot] = own;
    for (uint half_ = (1u << lanes_log2) >> 1; half_ > 0; half_ >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (at.lane < half_)
            parts[at.slot] =
                part_join(parts[at.slot], parts[at.slot + half_ * at.step]);
    }
    return parts[at.slot];
}

#if REDUCTION == DOT
#define INPUT_BUFFERS __global const float *in, __global const float *other
#else
#define INPUT_BUFFERS __global const float *in
#endif

KERNEL void reduce(__global result_t *out, __global part *partial,
                   INPUT_BUFFERS, const struct reduce p)
{
    __local part parts[GROUP];
    ulong output_groups = max(p.output_groups, (ulong)1);
    struct place at = place_of(p.lanes_log2, p.across, output_groups);
    struct lane sum;
    lane_clear(&sum);
    part own = lane_part(&sum);
    if (at.output < p.outputs) {
        long base = (long)p.in_offset;
        WALK(base, (index_t)at.output, p.kept, p.kept_rank, p.in_strides);
        ulong begin = at.split * p.chunk;
        ulong end = min(begin + p.chunk, p.count);
        ulong lanes = 1ul << p.lanes_log2;
        ulong j = begin + at.lane;
        if (p.vector) {
            struct lane sums[4];
            for (uint k = 0; k < 4; ++k)
                lane_clear(&sums[k]);
            ulong fours = begin + (end - begin) / 4 * 4;
            for (ulong i = begin + at.lane * 4; i < fours; i += lanes * 4) {
                float4 x = *(__global const float4 *)(in + base + i);
#if REDUCTION == DOT
                x *= *(__global const float4 *)(other + p.other_offset + i);
#elif REDUCTION == SUM_SQUARE || REDUCTION == L2
                x *= x;
#endif
#if REDUCTION == LOG_SUM_EXP
                lane_take4(&sums[0], x);
#else
                lane_take(&sums[0], x.s0, i);
                lane_take(&sums[1], x.s1, i + 1);
                lane_take(&sums[2], x.s2, i + 2);
                lane_take(&sums[3], x.s3, i + 3);
#endif
            }
            part low = part_join(lane_part(&sums[0]), lane_part(&sums[1]));
            part high = part_join(lane_part(&sums[2]), lane_part(&sums[3]));
            own = part_join(low, high);
            j = fours + at.lane;
        }
        /* Four loads under way at a time. */
        for (; p.reduced_rank == 1 && j + 3 * lanes < end; j += 4 * lanes) {
            float x0 = ALONG(j), x1 = ALONG(j + lanes);
            float x2 = ALONG(j + 2 * lanes), x3 = ALONG(j + 3 * lanes);
            lane_take(&sum, x0, j);
            lane_take(&sum, x1, j + lanes);
            lane_take(&sum, x2, j + 2 * lanes);
            lane_take(&sum, x3, j + 3 * lanes);
        }
        for (; j < end; j += lanes) {
            long i = base;
            WALK(i, (index_t)j, p.reduced, p.reduced_rank, p.reduced_strides);
#if REDUCTION == DOT
            long o = (long)p.other_offset;
            WALK(o, (index_t)j, p.reduced, p.reduced_rank, p.other_strides);
#endif
            lane_take(&sum, TERM(i, o), j);
        }
        own = part_join(own, lane_part(&sum));
    }
    part all = tree(parts, own, at, p.lanes_log2);
    if (at.lane != 0 || at.output >= p.outputs)
        return;
    if (p.splits > 1) {
        partial[at.split * p.outputs + at.output] = all;
        return;
    }
    long to = (long)p.out_offset;
    WALK(to, (index_t)at.output, p.kept, p.kept_rank, p.out_strides);
    out[to] = part_result(all, p.count);
}

KERNEL void join_splits(__global result_t *out, __global const part *partial,
                        const struct reduce p)
{
    __local part parts[GROUP];
    ulong output_groups = max(p.output_groups, (ulong)1);
    struct place at = place_of(p.lanes_log2, p.across, output_groups);
    struct lane none;
    lane_clear(&none);
    part own = lane_part(&none);
    if (at.output < p.outputs)
        for (uint j = at.lane; j < p.splits; j += 1u << p.lanes_log2)
            own = part_join(own, partial[j * p.outputs + at.output]);
    part all = tree(parts, own, at, p.lanes_log2);
    if (at.lane != 0 || at.output >= p.outputs)
        return;
    long to = (long)p.out_offset;
    WALK(to, (index_t)at.output, p.kept, p.kept_rank, p.out_strides);
    out[to] = part_result(all, p.count);
}
