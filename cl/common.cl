/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every kernel shares: the rules of arithmetic, the walk over up to
 * eight axes, and the operators as functions of one element.  The plugin
 * puts this file before the kernel's own; by hand, the include does.
 *
 * Every compiler met so far gets this subset of the language right:
 *   - parameters are one struct by value, its arrays of one dimension, no
 *     padding at its end: rusticl counts a struct's bytes only so;
 *   - no work-item indexes that struct, or an array of its own, by a number
 *     of its own: llvmpipe reads elsewhere, or crashes;
 *   - an int made a long is not compared with a constant, which rusticl folds
 *     wrongly: clamp, max and comparisons as unsigned serve instead.
 */
#ifndef TANDEM_COMMON_CL
#define TANDEM_COMMON_CL

/* A product and a sum are rounded apart, fused only where fma is written. */
#pragma OPENCL FP_CONTRACT OFF

/* Work-items of a group; a power of two. */
#ifndef GROUP
#define GROUP 256
#endif
/* How neighbouring work-items exchange values: 0: through local memory alone,
 * 1: NVIDIA's warps, 2: the sub-groups of cl_intel_subgroups. */
#ifndef SHUFFLE
#define SHUFFLE 0
#endif
/* 1: the device is a processor. */
#ifndef CPU
#define CPU 0
#endif
/* 1: indices of 64 bits, for 2^31 elements and more. */
#ifndef WIDE
#define WIDE 0
#endif

/* Numbers of elements; places within an operand, in elements, where WIDE says
 * that these reach as far. */
#if WIDE
typedef ulong index_t;
typedef long place_t;
#else
typedef uint index_t;
typedef int place_t;
#endif

#define AXES 8
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

/* The extents of a space, innermost axis first; multiplier and shift divide
 * an index below 2^31 by the extent. */
struct extents {
    ulong extent[AXES];
    uint multiplier[AXES];
    uint shift[AXES];
};

static inline uint quotient(uint n, uint multiplier, uint shift)
{
    return (mul_hi(n, multiplier) + n) >> shift;
}

/* Splits index into the coordinate along axis AXIS of space and the rest. */
#if WIDE
#define SPLIT(index, space, axis, coordinate)                                  \
    do {                                                                       \
        ulong rest_ = (index) / (space).extent[axis];                          \
        coordinate = (long)((index) - rest_ * (space).extent[axis]);           \
        index = rest_;                                                         \
    } while (0)
#else
#define SPLIT(index, space, axis, coordinate)                                  \
    do {                                                                       \
        uint rest_ = quotient(index, (space).multiplier[axis],                 \
                              (space).shift[axis]);                            \
        coordinate = (long)((index) - rest_ * (uint)(space).extent[axis]);     \
        index = rest_;                                                         \
    } while (0)
#endif

/* Adds to offset the place of index in a space of rank axes. */
#define WALK(offset, start, space, rank, strides)                              \
    WALK_AXES("unroll", offset, start, space, rank, strides)
/* Likewise where it seldom is done: ptxas brings the constants of an unrolled
 * loop forward to where all items pass.  Other compilers keep arrays that a
 * loop indexes in private memory. */
#if SHUFFLE == 1
#define WALK_ROLLED(offset, start, space, rank, strides)                       \
    WALK_AXES("unroll 1", offset, start, space, rank, strides)
#else
#define WALK_ROLLED WALK
#endif
#define WALK_AXES(loop, offset, start, space, rank, strides)                   \
    do {                                                                       \
        index_t left_ = (start);                                               \
        if ((rank) == 1) {                                                     \
            offset += (long)left_ * (strides)[0];                              \
            break;                                                             \
        }                                                                      \
        _Pragma(loop) for (uint axis_ = 0; axis_ < AXES; ++axis_)              \
        {                                                                      \
            if (axis_ >= (rank))                                               \
                continue;                                                      \
            long at_ = (long)left_;                                            \
            if (axis_ + 1 < (rank))                                            \
                SPLIT(left_, space, axis_, at_);                               \
            offset += at_ * (strides)[axis_];                                  \
        }                                                                      \
    } while (0)

/* The tile of a group, of tiles of a plane of which so many lie along its
 * columns, before the next band of rows: plane, column and row.  Where there is
 * nothing to do, counts are 0: compilers may bring divisions forward, and
 * processors trap those. */
#define TILE_FIND(along, of_plane, tile_columns, tile_rows)                    \
    index_t along_ = (index_t)max(along, (ulong)1);                            \
    index_t tiles_ = (index_t)max(of_plane, (ulong)1);                         \
    index_t plane = (index_t)get_group_id(0) / tiles_;                         \
    index_t within_ = (index_t)get_group_id(0) - plane * tiles_;               \
    index_t band_ = within_ / along_;                                          \
    index_t column = (within_ - band_ * along_) * (tile_columns);              \
    index_t row = band_ * (tile_rows);

/* ---- work-items that share a row ---- */

/* The first HELD of 32 numbers. */
#define EACH_1(F) F(0)
#define EACH_2(F) EACH_1(F) F(1)
#define EACH_3(F) EACH_2(F) F(2)
#define EACH_4(F) EACH_3(F) F(3)
#define EACH_5(F) EACH_4(F) F(4)
#define EACH_6(F) EACH_5(F) F(5)
#define EACH_7(F) EACH_6(F) F(6)
#define EACH_8(F) EACH_7(F) F(7)
#define EACH_9(F) EACH_8(F) F(8)
#define EACH_10(F) EACH_9(F) F(9)
#define EACH_11(F) EACH_10(F) F(10)
#define EACH_12(F) EACH_11(F) F(11)
#define EACH_13(F) EACH_12(F) F(12)
#define EACH_14(F) EACH_13(F) F(13)
#define EACH_15(F) EACH_14(F) F(14)
#define EACH_16(F) EACH_15(F) F(15)
#define EACH_32(F)                                                             \
    EACH_16(F) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25)     \
    F(26) F(27) F(28) F(29) F(30) F(31)
#define EACH(F) CAT(EACH_, HELD)(F)

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
/* Whoever loads this program has them. */
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

/* The body of a function of (own, parts, lanes, step), which joins a value of
 * each of lanes work-items, a power of two of them and step apart, in one fixed
 * order.  Every work-item of the group calls it, with GROUP places in parts
 * that nothing else uses; all get the result.  join must not care for the order
 * of its two values. */
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

/* PoCL 3.1 loses values held across the barriers of such a block. */
#if SHUFFLE == 1
#define RARELY(x) __builtin_expect((x), 0)
#else
#define RARELY(x) (x)
#endif

/* Whether x holds for any work-item of the group, all of which call it.  seen:
 * one word of local memory, of this call's own. */
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

/* Likewise, as far as joins (LANES_BODY) of lanes and step take part in one
 * another: where x holds for one of them, all of those may join again.  x is
 * the same, to the bit, for all lanes of a row.  (Where lanes is GROUP that is
 * x; but PoCL 3.1 then loses values that are held across the next barrier.) */
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
/* Among those whom rows_any sent on: between two joins by the same local
 * memory. */
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

/* Which row, lane and split of rows this work-item has: lanes of a row are
 * neighbours, or step apart (across), and neighbours then of other rows. */
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

#include "common/math.cl"

/* ---- operators of one input; a and b are attributes ---- */

#define UNARY(name, expression)                                                \
    static inline float op_##name(float x, float a, float b)                   \
    {                                                                          \
        return expression;                                                     \
    }

/* NaN, unlike in fmax and fmin, wins. */
static inline float nan_max(float a, float b)
{
    return a >= b || a != a ? a : b;
}
static inline float nan_min(float a, float b)
{
    return a <= b || a != a ? a : b;
}

/* Neither half overflows, and the small side keeps its digits. */
static inline float sigmoid(float x)
{
    float e = exp(-fabs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* The chance that a normal number is below -a, for a >= 0, within 2^-24; a
 * polynomial is its logarithm, and falls where the fit (up to 5.5) ends. */
static inline float normal_tail(float a)
{
    float p = fma(-2.834892e-06f, a, 3.93771625e-05f);
    p = fma(p, a, -1.86176694e-04f);
    p = fma(p, a, -1.36946779e-04f);
    p = fma(p, a, 7.06343539e-03f);
    p = fma(p, a, -5.24961911e-02f);
    p = fma(p, a, -4.5920819e-01f);
    p = fma(p, a, -1.15110517f);
    return QUICK_EXP2(fma(p, a, -1.0f));
}

/* x times the chance of less than x; from -16 down it is 0. */
static inline float gelu_erf(float x)
{
    float a = fmin(fabs(x), 16.0f);
    return nan_max(x, 0.0f) - a * normal_tail(a);
}

/* (1 + tanh u) / 2 = 1 / (1 + e^-2u) */
static inline float gelu_tanh(float x)
{
    float u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    return x / (1.0f + exp(-2.0f * u));
}

/* One way for all x: neighbours rarely have one sign. */
static inline float elu(float x, float alpha)
{
    float y = x < -20.0f ? -20.0f : x;
    float e = expm1_within(x >= 0.0f ? 0.0f : y);
    return x >= 0.0f ? x : alpha * e;
}

/* What is rare where the library has it, in one way where not: a kernel that
 * knows of several elements that none is takes op_NAME_quick. */
#define UNARY_QUICK(name)                                                      \
    static inline bool op_##name##_rare(float x, float a, float b)             \
    {                                                                          \
        return name##_rare(x);                                                 \
    }                                                                          \
    static inline float op_##name##_quick(float x, float a, float b)           \
    {                                                                          \
        return name##_quick(x);                                                \
    }                                                                          \
    static inline float op_##name(float x, float a, float b)                   \
    {                                                                          \
        return name##_rare(x) ? name(x) : name##_quick(x);                     \
    }

UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x)
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(round, rint(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, rsqrt(x))
UNARY(reciprocal, 1.0f / x)
UNARY(exp, exp(x))
UNARY(expm1, expm1_quick(x))
UNARY(log, log_fast(x))
UNARY(log1p, log1p_quick(x))
UNARY_QUICK(sin)
UNARY_QUICK(cos)
UNARY(tanh, tanh_quick(x))
UNARY(erf, erf_quick(x))
UNARY(sigmoid, sigmoid(x))
UNARY(relu, nan_max(x, 0.0f))
UNARY(leaky_relu, x >= 0.0f ? x : a * x)
UNARY(elu, elu(x, a))
UNARY(clip, nan_min(nan_max(x, a), b))
UNARY(swish, x / (1.0f + exp(-x)))
UNARY(gelu, gelu_erf(x))
UNARY(gelu_tanh, gelu_tanh(x))
UNARY(softplus, softplus_quick(x))
UNARY(mish, mish_quick(x))
UNARY(hardswish, x * nan_min(nan_max(x / 6.0f + 0.5f, 0.0f), 1.0f))
UNARY(none, x)

/* ---- truth values ---- */

/* Returns 1 if x is true, else 0.  On a processor the 1 is no constant, because
 * LLVM compiles a vector of "x ? 1 : 0" to a load of constants under a mask.
 * AVX-512 takes 100 ns for a load without an active lane from a page that was
 * never read, which is so until the first x is true. */
#if CPU
#define TRUTH ((uchar)get_num_groups(1))
#else
#define TRUTH 1
#endif
static inline uchar truth(bool x)
{
    return x ? TRUTH : 0;
}

/* ---- of two and three ---- */

#define BINARY(name, expression)                                               \
    static inline float op_##name(float a, float b)                            \
    {                                                                          \
        return expression;                                                     \
    }
#define COMPARE(name, relation)                                                \
    static inline uchar op_##name(float a, float b)                            \
    {                                                                          \
        return truth(a relation b);                                            \
    }
#define LOGICAL(name, expression)                                              \
    static inline uchar op_##name(uchar a, uchar b)                            \
    {                                                                          \
        return truth(expression);                                              \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
static inline bool op_pow_rare(float a, float b)
{
    return pow_rare(a, b);
}
BINARY(pow_quick, pow_quick(a, b))
BINARY(pow, pow_rare(a, b) ? pow(a, b) : pow_quick(a, b))
BINARY(min, nan_min(a, b))
BINARY(max, nan_max(a, b))
BINARY(relu_grad, b <= 0.0f ? 0.0f : a)
COMPARE(equal, ==)
COMPARE(not_equal, !=)
COMPARE(less, <)
COMPARE(less_or_equal, <=)
COMPARE(greater, >)
COMPARE(greater_or_equal, >=)
LOGICAL(and, a != 0 && b != 0)
LOGICAL(or, a != 0 || b != 0)
LOGICAL(xor, (a != 0) != (b != 0))

static inline uchar op_not(uchar x, float a, float b)
{
    return truth(x == 0);
}
static inline float op_where(uchar a, float b, float c)
{
    return a != 0 ? b : c;
}
static inline float op_fma(float a, float b, float c)
{
    return fma(a, b, c);
}

/* ---- f16 and bf16, which lie in memory as ushorts, beside f32 ---- */

typedef float f32_t;
typedef float4 f32_t4;
typedef ushort f16_t;
typedef ushort4 f16_t4;
typedef ushort bf16_t;
typedef ushort4 bf16_t4;
#define f32_value(x) (x)
#define f32_value4(x) (x)
#define f32_round(x) (x)
#define f32_round4(x) (x)

/* Core OpenCL reads and writes halves, and no more of them. */
static inline float f16_value(ushort x)
{
    return vload_half(0, (const half *)&x);
}
static inline ushort f16_round(float x)
{
    ushort y;
    vstore_half_rte(x, 0, (half *)&y);
    return y;
}
static inline float bf16_value(ushort x)
{
    return as_float((uint)x << 16);
}
static inline ushort bf16_round(float x)
{
    uint bits = as_uint(x);
    uint rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (ushort)((x != x ? bits | 0x400000u : rounded) >> 16);
}

/* x as it is, but for a signaling NaN, which becomes a quiet one. */
#define f16_quiet(x) f16_round(f16_value(x))
#if CPU
static inline ushort bf16_quiet(ushort x)
{
    return (ushort)(x | truth((x & 0x7fffu) > 0x7f80u) << 6);
}
#else
#define bf16_quiet(x) bf16_round(bf16_value(x))
#endif

static inline float4 f16_value4(ushort4 x)
{
    return vload_half4(0, (const half *)&x);
}
static inline ushort4 f16_round4(float4 x)
{
    ushort4 y;
    vstore_half4_rte(x, 0, (half *)&y);
    return y;
}
static inline float4 bf16_value4(ushort4 x)
{
    return as_float4(convert_uint4(x) << 16);
}
static inline ushort4 bf16_round4(float4 x)
{
    return (ushort4)(bf16_round(x.s0), bf16_round(x.s1), bf16_round(x.s2),
                     bf16_round(x.s3));
}

/* An integer in 24 digits, the last of which is odd where others are lost:
 * what that is rounded to in fewer digits is what x is. */
#define ODD(name, type, bits, wide)                                            \
    static inline float name(type x)                                           \
    {                                                                          \
        wide size = x < 0 ? 0 - (wide)x : (wide)x;                             \
        uint shift = (bits)-24 - min((uint)clz(size), (uint)(bits)-24);        \
        wide kept = size >> shift;                                             \
        kept |= kept << shift != size ? 1 : 0;                                 \
        float y = (float)(uint)kept * as_float((127 + shift) << 23);           \
        return x < 0 ? -y : y;                                                 \
    }
ODD(int_odd, int, 32, uint)
ODD(long_odd, long, 64, ulong)

/* ---- casts: from float, and from any integer as a long ---- */

static inline long float_long(float x)
{
    if (x != x)
        return 0;
    if (x >= 9223372036854775808.0f)
        return LONG_MAX;
    return x < -9223372036854775808.0f ? LONG_MIN : (long)x;
}
static inline int long_int(long x)
{
    return (int)clamp(x, (long)INT_MIN, (long)INT_MAX);
}
static inline uchar long_uchar(long x)
{
    return (uchar)clamp(x, (long)0, (long)255);
}
static inline float op_cast_f32_f32(float x, float a, float b)
{
    return x;
}
static inline int op_cast_f32_i32(float x, float a, float b)
{
    return long_int(float_long(x));
}
static inline long op_cast_f32_i64(float x, float a, float b)
{
    return float_long(x);
}
static inline uchar op_cast_f32_u8(float x, float a, float b)
{
    return long_uchar(float_long(x));
}
static inline uchar op_cast_f32_bool(float x, float a, float b)
{
    return truth(x != 0.0f);
}
static inline float op_cast_int_f32(long x, float a, float b)
{
    return convert_float_rte(x);
}
static inline int op_cast_int_i32(long x, float a, float b)
{
    return long_int(x);
}
static inline long op_cast_int_i64(long x, float a, float b)
{
    return x;
}
static inline uchar op_cast_int_u8(long x, float a, float b)
{
    return long_uchar(x);
}
static inline uchar op_cast_int_bool(long x, float a, float b)
{
    return truth(x != 0);
}

#define CAST(from, from_type, to, to_type, expression)                         \
    static inline to_type op_cast_##from##_##to(from_type x, float a, float b) \
    {                                                                          \
        return expression;                                                     \
    }
#define CASTS_OF_16_BITS(name, other)                                          \
    CAST(f32, float, name, ushort, name##_round(x))                            \
    CAST(i32, int, name, ushort, name##_round(int_odd(x)))                     \
    CAST(int, long, name, ushort, name##_round(long_odd(x)))                   \
    CAST(other, ushort, name, ushort, name##_round(other##_value(x)))          \
    CAST(name, ushort, name, ushort, name##_quiet(x))                          \
    CAST(name, ushort, f32, float, name##_value(x))                            \
    CAST(name, ushort, i32, int, long_int(float_long(name##_value(x))))        \
    CAST(name, ushort, i64, long, float_long(name##_value(x)))                 \
    CAST(name, ushort, u8, uchar, long_uchar(float_long(name##_value(x))))     \
    CAST(name, ushort, bool, uchar, truth(name##_value(x) != 0.0f))
CASTS_OF_16_BITS(f16, bf16)
CASTS_OF_16_BITS(bf16, f16)

#endif
