/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions over the lanes of a row, which are work-items of one work-group.
 */
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
static inline float max16(float16 x)
{
    float8 y = fmax(x.lo, x.hi);
    return max4(fmax(y.lo, y.hi));
}
static inline float sum16(float16 x)
{
    float8 y = x.lo + x.hi;
    return sum4(y.lo + y.hi);
}

#if SHUFFLE == 1 && GROUP >= 32
#define WIDTH 32u
#ifdef EMULATED
/* Defined by the emulator. */
float from_lane(float x, uint mask);
#else
static inline float from_lane(float x, uint mask)
{
    uint y;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                     : "=r"(y)
                     : "r"(as_uint(x)), "r"(mask));
    return as_float(y);
}
#endif
#elif SHUFFLE == 2 && GROUP >= 32
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define WIDTH get_max_sub_group_size()
static inline float from_lane(float x, uint mask)
{
    return intel_sub_group_shuffle_xor(x, mask);
}
#endif
#ifdef WIDTH
static inline float4 from_lane4(float4 x, uint mask)
{
    return (float4)(from_lane(x.x, mask), from_lane(x.y, mask),
                    from_lane(x.z, mask), from_lane(x.w, mask));
}
static inline float2 from_lane2(float2 x, uint mask)
{
    return (float2)(from_lane(x.x, mask), from_lane(x.y, mask));
}
#endif

/* The body of a function (own, parts, lanes, step) that combines the values
 * `own` of `lanes` work-items in a fixed order. lanes is a power of two, and the
 * lanes are `step` work-items apart. All work-items of the group must call the
 * function, and all get the result. parts has room for GROUP values and is not
 * used by anything else. join must be commutative. */
#ifdef WIDTH
#define LANES_SHUFFLE(join, exchange)                                          \
    uint width = WIDTH, span = lanes * step;                                   \
    if (step <= width) {                                                       \
        for (uint mask = min(span, width) / 2; mask >= step; mask /= 2)        \
            own = join(own, exchange(own, mask));                              \
        if (span <= width)                                                     \
            return own;                                                        \
        uint nth = id & (step - 1);                                            \
        if ((id & (width - 1)) < step)                                         \
            parts[id / width * step + nth] = own;                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        uint first = (id & ~(span - 1)) / width * step + nth;                  \
        uint many = span / width;                                              \
        if (step == 1 && many <= width) {                                      \
            own = parts[first + (id & (many - 1))];                            \
            for (uint mask = many / 2; mask > 0; mask /= 2)                    \
                own = join(own, exchange(own, mask));                          \
            return own;                                                        \
        }                                                                      \
        own = parts[first];                                                    \
        for (uint i = 1; i < many; ++i)                                        \
            own = join(own, parts[first + i * step]);                          \
        return own;                                                            \
    }
#else
#define LANES_SHUFFLE(join, exchange)
#endif
#define LANES_BODY(join, exchange)                                             \
    {                                                                          \
        uint id = get_local_id(0);                                             \
        LANES_SHUFFLE(join, exchange)                                          \
        uint lane = (id / step) & (lanes - 1);                                 \
        parts[id] = own;                                                       \
        for (uint half_ = lanes / 2; half_ > 0; half_ /= 2) {                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                      \
            if (lane < half_)                                                  \
                parts[id] = join(parts[id], parts[id + half_ * step]);         \
        }                                                                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                          \
        return parts[id - lane * step];                                        \
    }


/* Returns true if x is true for any work-item of the group. All work-items must
 * call it. seen is a word of local memory that only this call uses. */
#if SHUFFLE == 1
#ifdef EMULATED
bool group_vote(bool x);
bool warp_vote(bool x);
#else
#define VOTE(name, instruction)                                                \
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
VOTE(group_vote, "bar.red.or.pred all, 0, own;")
VOTE(warp_vote, "vote.sync.any.pred all, own, 0xffffffff;")
#endif
static inline bool group_any(bool x, __local uint *seen)
{
    return group_vote(x);
}
#else
static inline bool group_any(bool x, __local uint *seen)
{
    if (get_local_id(0) == 0)
        *seen = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (x)
        atomic_or(seen, 1u);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *seen != 0;
}
#endif

/* Returns true if x is true for any of the rows whose lanes reduce together
 * (LANES_BODY). If it returns true, these lanes may all reduce once more. x must
 * be the same for all lanes of a row. If lanes is GROUP the result is x, but
 * PoCL 3.1 then loses values that are live across the next barrier, so only
 * NVIDIA takes this shortcut. */
static inline bool rows_any(bool x, __local uint *seen, uint lanes, uint step)
{
#if SHUFFLE == 1 && defined WIDTH
    if (lanes == GROUP) {
        if (x)
            barrier(CLK_LOCAL_MEM_FENCE);
        return x;
    }
    if (lanes * step <= WIDTH)
        return warp_vote(x);
#endif
    return group_any(x, seen);
}
/* Barrier between two reductions through the same local memory after rows_any
 * has returned true. */
static inline void rows_meet(uint lanes, uint step)
{
#if SHUFFLE == 1 && defined WIDTH
    if (lanes * step <= WIDTH)
        return;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
}

static inline float plus(float a, float b)
{
    return a + b;
}
static inline float lanes_sum(float own, __local float *parts, uint lanes,
                              uint step)
    LANES_BODY(plus, from_lane)
static inline float lanes_max(float own, __local float *parts, uint lanes,
                              uint step)
    LANES_BODY(fmax, from_lane)

/* The row, lane and split of this work-item. The lanes of a row are neighbours,
 * or, if interleaved, `step` work-items apart. */
struct place {
    uint lanes, lane, step;
    ulong row, split;
};

static inline struct place place_of(uint lanes_log2, uint across, uint splits,
                                    ulong row_groups)
{
    struct place at;
    uint id = get_local_id(0);
    at.lanes = 1u << lanes_log2;
    uint rows = GROUP / at.lanes;
    uint row = across ? id & (rows - 1) : id >> lanes_log2;
    at.lane = across ? id / rows : id & (at.lanes - 1);
    at.step = across ? rows : 1;
    index_t group = (index_t)get_group_id(0);
    index_t groups = (index_t)row_groups;
    index_t split = splits > 1 ? group / groups : 0;
    at.split = split;
    at.row = (ulong)(group - split * groups) * rows + row;
    return at;
}

#endif
