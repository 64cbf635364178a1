/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over the lanes of a row. Lanes are the work-items of a work-group
 * that work on the same row. */
#ifndef TANDEM_LANE_REDUCE_CL
#define TANDEM_LANE_REDUCE_CL

#include "common/indexing.cl"

static inline float max4(float4 x)
{
    return fmax(fmax(x.s0, x.s1), fmax(x.s2, x.s3));
}
static inline float sum4(float4 x)
{
    return (x.s0 + x.s1) + (x.s2 + x.s3);
}
/* Functions take float16 by pointer: for CPUs without AVX-512, clang warns that
 * an argument of this type changes the ABI. */
INLINE float max16(const float16 *x)
{
    float8 y = fmax((*x).lo, (*x).hi);
    return max4(fmax(y.lo, y.hi));
}
INLINE float sum16(const float16 *x)
{
    float8 y = (*x).lo + (*x).hi;
    return sum4(y.lo + y.hi);
}
/* Returns the sum of exp(x - shift). */
INLINE float sum16_exp(const float16 *x, float shift)
{
    float8 y = exp((*x).lo - shift) + exp((*x).hi - shift);
    return sum4(y.lo + y.hi);
}

#if SHUFFLE == 1 && GROUP_SIZE >= 32
#define SHUFFLE_WIDTH 32u
#ifdef EMULATED
/* Defined by the emulator. */
float shuffle_xor(float x, uint mask);
#else
static inline float shuffle_xor(float x, uint mask)
{
    uint y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                     : "=r"(y)
                     : "r"(as_uint(x)), "r"(mask));
    return as_float(y);
}
#endif
#elif SHUFFLE == 2 && GROUP_SIZE >= 32
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define SHUFFLE_WIDTH get_max_sub_group_size()
static inline float shuffle_xor(float x, uint mask)
{
    return intel_sub_group_shuffle_xor(x, mask);
}
#endif
/* Returns true if the results of all sub-groups fit into one sub-group. The
 * 1024 work-items of NVIDIA's largest work-groups are 32 warps, so that the
 * result is known when compiling. */
#if SHUFFLE == 1
#define SUBGROUPS_FIT(subgroups, width) true
#else
#define SUBGROUPS_FIT(subgroups, width) ((subgroups) <= (width))
#endif
#ifdef SHUFFLE_WIDTH
static inline float4 shuffle_xor4(float4 x, uint mask)
{
    return (float4)(shuffle_xor(x.x, mask), shuffle_xor(x.y, mask),
                    shuffle_xor(x.z, mask), shuffle_xor(x.w, mask));
}
static inline float2 shuffle_xor2(float2 x, uint mask)
{
    return (float2)(shuffle_xor(x.x, mask), shuffle_xor(x.y, mask));
}
#endif

#if SHUFFLE == 1 && defined SHUFFLE_WIDTH
/* Adds up `count` sums of this work-item and of the work-item at id ^ mask. If
 * there are several sums, each of the two work-items gets half of the totals,
 * in the first half of `sum`: the work-item with the bit `mask` in its id gets
 * the totals of the second half. `count` must be a power of two; 0 stands for
 * one sum. */
INLINE void sums_exchange(float *sum, uint count, uint mask)
{
    const bool upper = (get_local_id(0) & mask) != 0;
    if (count <= 1)
        sum[0] += shuffle_xor(sum[0], mask);
    REPEAT (i, count / 2) {
        const float first = sum[i], second = sum[i + count / 2];
        sum[i] = (upper ? second : first) +
                 shuffle_xor(upper ? first : second, mask);
    }
}
#endif

/* The body of a function with the parameters own, partials, lanes and step. The
 * function combines the values `own` of all lanes of a row in a fixed order. A
 * row has `lanes` lanes, a power of two, which are `step` work-items apart. All
 * work-items of the work-group must call the function, and each gets the result
 * of its row. `partials` is local memory for GROUP_SIZE values, which nothing
 * else may use. The operator `combine` must be commutative. */
#ifdef SHUFFLE_WIDTH
#define LANES_COMBINE_SHUFFLE(combine, shuffle)                                \
    uint width = SHUFFLE_WIDTH, span = lanes * step;                           \
    if (step <= width) {                                                       \
        for (uint mask = min(span, width) / 2; mask >= step; mask /= 2)        \
            own = combine(own, shuffle(own, mask));                            \
        if (span <= width)                                                     \
            return own;                                                        \
        uint row_ = id & (step - 1);                                           \
        if ((id & (width - 1)) < step)                                         \
            partials[id / width * step + row_] = own;                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        uint first = (id & ~(span - 1)) / width * step + row_;                 \
        uint subgroups = span / width;                                         \
        if (step == 1 && SUBGROUPS_FIT(subgroups, width)) {                    \
            own = partials[first + (id & (subgroups - 1))];                    \
            for (uint mask = subgroups / 2; mask > 0; mask /= 2)               \
                own = combine(own, shuffle(own, mask));                        \
            return own;                                                        \
        }                                                                      \
        own = partials[first];                                                 \
        for (uint i = 1; i < subgroups; ++i)                                   \
            own = combine(own, partials[first + i * step]);                    \
        return own;                                                            \
    }
#else
#define LANES_COMBINE_SHUFFLE(combine, shuffle)
#endif
#define LANES_COMBINE_BODY(combine, shuffle)                                   \
    {                                                                          \
        uint id = get_local_id(0);                                             \
        LANES_COMBINE_SHUFFLE(combine, shuffle)                                \
        uint lane = (id / step) & (lanes - 1);                                 \
        partials[id] = own;                                                    \
        for (uint half_ = lanes / 2; half_ > 0; half_ /= 2) {                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                      \
            if (lane < half_)                                                  \
                partials[id] =                                                 \
                    combine(partials[id], partials[id + half_ * step]);        \
        }                                                                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        return partials[id - lane * step];                                     \
    }

/* Returns true if `x` is true for any work-item of the work-group. All of them
 * must call this function. vote_word is local memory that nothing else uses. */
#if SHUFFLE == 1
#ifdef EMULATED
bool group_vote(bool x);
bool warp_vote(bool x);
#else
#define DEFINE_VOTE(name, instruction)                                         \
    static inline bool name(bool x)                                            \
    {                                                                          \
        uint any;                                                              \
        __asm__ volatile("{ .reg .pred own, all; setp.ne.u32 own, %1, 0; "     \
                         instruction " selp.u32 %0, 1, 0, all; }"              \
                         : "=r"(any)                                           \
                         : "r"((uint)x)                                        \
                         : "memory");                                          \
        return any != 0;                                                       \
    }
DEFINE_VOTE(group_vote, "bar.red.or.pred all, 0, own;")
DEFINE_VOTE(warp_vote, "vote.sync.any.pred all, own, 0xffffffff;")
#endif
INLINE bool group_vote_any(bool x, __local uint *vote_word)
{
    return group_vote(x);
}
#else
INLINE bool group_vote_any(bool x, __local uint *vote_word)
{
    if (get_local_id(0) == 0)
        *vote_word = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x)
        atomic_or(vote_word, 1u);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *vote_word != 0;
}
#endif

/* Returns true if `x` is true for any row of this warp, or for any row of the
 * work-group if a row's lanes do not fit into a warp. `x` must be the same for
 * all lanes of a row. If the result is true, all lanes of these rows have
 * finished the previous reduction and can start another. With one row per
 * work-group, NVIDIA GPUs return `x` without a vote. Others vote, because PoCL
 * 3.1 would otherwise lose values that are live across the next barrier. */
INLINE bool rows_vote_any(bool x, __local uint *vote_word, uint lanes,
                          uint step)
{
#if SHUFFLE == 1 && defined SHUFFLE_WIDTH
    if (lanes == GROUP_SIZE) {
        if (x)
            barrier(CLK_LOCAL_MEM_FENCE);
        return x;
    }
    if (lanes * step <= SHUFFLE_WIDTH)
        return warp_vote(x);
#endif
    return group_vote_any(x, vote_word);
}
/* A barrier between two reductions that use the same local memory. Call this
 * function only if rows_vote_any has returned true. */
static inline void rows_barrier(uint lanes, uint step)
{
#if SHUFFLE == 1 && defined SHUFFLE_WIDTH
    if (lanes * step <= SHUFFLE_WIDTH)
        return;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
}

#define VALUE_ADD(a, b) ((a) + (b))
INLINE float lanes_sum(float own, __local float *partials, uint lanes,
                       uint step)
    LANES_COMBINE_BODY(VALUE_ADD, shuffle_xor)
INLINE float lanes_max(float own, __local float *partials, uint lanes,
                       uint step)
    LANES_COMBINE_BODY(fmax, shuffle_xor)

/* The row, the lane and the split (part of the row) assigned to a work-item.
 * Neighbouring lanes of a row are `step` work-items apart. */
struct lane_assignment {
    uint lanes, lane, step;
    ulong row, split;
};

static inline struct lane_assignment
lane_assign(uint lanes_log2, uint lanes_interleaved, uint splits,
            ulong row_groups)
{
    struct lane_assignment at;
    uint id = get_local_id(0);
    at.lanes = 1u << lanes_log2;
    uint rows = GROUP_SIZE / at.lanes;
    uint row = lanes_interleaved ? id & (rows - 1) : id >> lanes_log2;
    at.lane = lanes_interleaved ? id / rows : id & (at.lanes - 1);
    at.step = lanes_interleaved ? rows : 1;
    index_t group = (index_t)get_group_id(0);
    index_t groups = (index_t)row_groups;
    index_t split = splits > 1 ? group / groups : 0;
    at.split = split;
    at.row = (ulong)(group - split * groups) * rows + row;
    return at;
}

#endif
