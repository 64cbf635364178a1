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
/* 1: indices of 64 bits, for 2^31 elements and more. */
#ifndef WIDE
#define WIDE 0
#endif

#if WIDE
typedef ulong index_t;
#else
typedef uint index_t;
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
    do {                                                                       \
        index_t left_ = (start);                                               \
        _Pragma("unroll") for (uint axis_ = 0; axis_ < AXES; ++axis_)          \
        {                                                                      \
            if (axis_ >= (rank))                                               \
                continue;                                                      \
            long at_ = (long)left_;                                            \
            if (axis_ + 1 < (rank))                                            \
                SPLIT(left_, space, axis_, at_);                               \
            offset += at_ * (strides)[axis_];                                  \
        }                                                                      \
    } while (0)

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

/* From -4 down erf rounds to -1, and so does tanh from -10 down; not every
 * library gets there. */
static inline float gelu_erf(float x)
{
    float u = x * 0.7071067811865476f;
    return 0.5f * x * (1.0f + (u < -4.0f ? -1.0f : erf(u)));
}

static inline float gelu_tanh(float x)
{
    float u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + (u < -10.0f ? -1.0f : tanh(u)));
}

/* tanh(ln(1 + e)) = n / (n + 2) with n = e (e + 2). */
static inline float mish(float x)
{
    float e = exp(x);
    float n = e * (e + 2.0f);
    return x > 20.0f ? x : x * (n / (n + 2.0f));
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
UNARY(expm1, expm1(x))
UNARY(log, log(x))
UNARY(log1p, log1p(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tanh, tanh(x))
UNARY(erf, erf(x))
UNARY(sigmoid, sigmoid(x))
UNARY(relu, nan_max(x, 0.0f))
UNARY(leaky_relu, x >= 0.0f ? x : a * x)
UNARY(elu, x >= 0.0f ? x : a * expm1(x))
UNARY(clip, nan_min(nan_max(x, a), b))
UNARY(swish, x * sigmoid(x))
UNARY(gelu, gelu_erf(x))
UNARY(gelu_tanh, gelu_tanh(x))
UNARY(softplus, nan_max(x, 0.0f) + log1p(exp(-fabs(x))))
UNARY(mish, mish(x))
UNARY(hardswish, x * nan_min(nan_max(x / 6.0f + 0.5f, 0.0f), 1.0f))
UNARY(none, x)

/* ---- of two and three ---- */

#define BINARY(name, expression)                                               \
    static inline float op_##name(float a, float b)                            \
    {                                                                          \
        return expression;                                                     \
    }
#define COMPARE(name, relation)                                                \
    static inline uchar op_##name(float a, float b)                            \
    {                                                                          \
        return a relation b ? 1 : 0;                                           \
    }
#define LOGICAL(name, expression)                                              \
    static inline uchar op_##name(uchar a, uchar b)                            \
    {                                                                          \
        return (expression) ? 1 : 0;                                           \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(pow, pow(a, b))
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
    return x == 0 ? 1 : 0;
}
static inline float op_where(uchar a, float b, float c)
{
    return a != 0 ? b : c;
}
static inline float op_fma(float a, float b, float c)
{
    return fma(a, b, c);
}

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
    return x != 0.0f ? 1 : 0;
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
    return x != 0 ? 1 : 0;
}

#endif
