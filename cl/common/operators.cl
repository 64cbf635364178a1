/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise operators and casts, each as a function of one element. */
#ifndef TANDEM_OPERATORS_CL
#define TANDEM_OPERATORS_CL

#include "common/float16.cl"
#include "common/math.cl"

/* ---- operators of one input; a and b are attributes ---- */

#define UNARY(name, expression)                                                \
    static inline float op_##name(float x, float a, float b)                   \
    {                                                                          \
        return expression;                                                     \
    }

/* Computes 1 / (1 + e^-x) without overflow and precisely for small results. */
static inline float sigmoid(float x)
{
    float e = exp(-fabs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* Returns the cumulative standard normal distribution at -a, for `a` >= 0, with
 * an error below 2^-24. A polynomial, fitted for `a` up to 5.5 and falling for
 * larger `a`, approximates the base-2 logarithm of the result. */
static inline float normal_cdf_negative(float a)
{
    float p = fma(-2.834892e-06f, a, 3.93771625e-05f);
    p = fma(p, a, -1.86176694e-04f);
    p = fma(p, a, -1.36946779e-04f);
    p = fma(p, a, 7.06343539e-03f);
    p = fma(p, a, -5.24961911e-02f);
    p = fma(p, a, -4.5920819e-01f);
    p = fma(p, a, -1.15110517f);
    return FAST_EXP2(fma(p, a, -1.0f));
}

/* Returns x times the standard normal CDF at x, or 0 if x < -16. */
static inline float gelu_erf(float x)
{
    float a = fmin(fabs(x), 16.0f);
    return nan_max(x, 0.0f) - a * normal_cdf_negative(a);
}

/* Computes x * (1 + tanh u) / 2 as x / (1 + e^(-2 * u)). */
static inline float gelu_tanh(float x)
{
    float u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    return x / (1.0f + exp(-2.0f * u));
}

/* Evaluates e^x - 1 even if x >= 0. A branch would save no time, because
 * neighbouring work-items usually have x of both signs. */
static inline float elu(float x, float alpha)
{
    float y = x < -20.0f ? -20.0f : x;
    float e = expm1_in_range(x >= 0.0f ? 0.0f : y);
    return x >= 0.0f ? x : alpha * e;
}

/* If x / alpha is small, it can be subnormal, and celu rounds to x. */
static inline float celu(float x, float alpha)
{
    float z = x / alpha;
    float y = z < -20.0f ? -20.0f : z;
    float e = expm1_in_range(x >= 0.0f ? 0.0f : y);
    return x >= 0.0f || fabs(z) < 0x1p-25f ? x : alpha * e;
}

/* Defines an operator with a fast path. A kernel that has tested several
 * elements with op_NAME_needs_slow_path calls op_NAME_fast directly. */
#define UNARY_FAST(name)                                                       \
    static inline bool op_##name##_needs_slow_path(float x, float a, float b)  \
    {                                                                          \
        return name##_needs_slow_path(x);                                      \
    }                                                                          \
    static inline float op_##name##_fast(float x, float a, float b)            \
    {                                                                          \
        return name##_fast(x);                                                 \
    }                                                                          \
    static inline float op_##name(float x, float a, float b)                   \
    {                                                                          \
        return name##_needs_slow_path(x) ? name(x) : name##_fast(x);           \
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
UNARY(expm1, expm1_fast(x))
UNARY(log, log_fast(x))
UNARY(log1p, log1p_fast(x))
UNARY_FAST(sin)
UNARY_FAST(cos)
UNARY(tanh, tanh_fast(x))
UNARY(erf, erf_fast(x))
UNARY(sigmoid, sigmoid(x))
UNARY(relu, nan_max(x, 0.0f))
UNARY(leaky_relu, x >= 0.0f ? x : a * x)
UNARY(elu, elu(x, a))
UNARY(clip, nan_min(nan_max(x, a), b))
UNARY(swish, x / (1.0f + exp(-x)))
UNARY(gelu, gelu_erf(x))
UNARY(gelu_tanh, gelu_tanh(x))
UNARY(softplus, softplus_fast(x))
UNARY(mish, mish_fast(x))
UNARY(hardswish, x * nan_min(nan_max(x / 6.0f + 0.5f, 0.0f), 1.0f))
UNARY(hardsigmoid, nan_min(nan_max(a * x + b, 0.0f), 1.0f))
UNARY(softsign, x / (1.0f + fabs(x)))
UNARY(selu, x >= 0.0f ? b * x : a * expm1_fast(x))
UNARY(celu, celu(x, a))
UNARY(thresholded_relu, x <= a ? 0.0f : x)
UNARY_FAST(tan)
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(asinh, asinh(x))
UNARY(acosh, acosh(x))
UNARY(atanh, atanh(x))
UNARY(exp2, exp2(x))
UNARY(log2, log2(x))
UNARY(none, x)

/* ---- truth values ---- */

/* Returns 1 if x is true, else 0. On CPUs, get_num_groups(1) returns the 1,
 * because LLVM would compile a vector of "x ? 1 : 0" to a masked load of
 * constants. With AVX-512, if no x is true, such a load takes 100 ns until the
 * page of the constants has been read once. */
#if IS_CPU
#define UCHAR_TRUE ((uchar)get_num_groups(1))
#else
#define UCHAR_TRUE 1
#endif
static inline uchar bool_to_uchar(bool x)
{
    return x ? UCHAR_TRUE : 0;
}

/* ---- operators of two and three inputs ---- */

#define BINARY(name, expression)                                               \
    static inline float op_##name(float a, float b)                            \
    {                                                                          \
        return expression;                                                     \
    }
#define COMPARE(name, relation)                                                \
    static inline uchar op_##name(float a, float b)                            \
    {                                                                          \
        return bool_to_uchar(a relation b);                                    \
    }
#define LOGICAL(name, expression)                                              \
    static inline uchar op_##name(uchar a, uchar b)                            \
    {                                                                          \
        return bool_to_uchar(expression);                                      \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
static inline bool op_pow_needs_slow_path(float a, float b)
{
    return pow_needs_slow_path(a, b);
}
BINARY(pow_fast, pow_fast(a, b))
BINARY(pow, pow_needs_slow_path(a, b) ? pow(a, b) : pow_fast(a, b))
BINARY(min, nan_min(a, b))
BINARY(max, nan_max(a, b))
BINARY(prelu, a >= 0.0f ? a : b *a)
static inline float op_fmod(float a, float b)
{
    return fmod(a, b);
}
/* The remainder has the sign of b. */
static inline float op_mod(float a, float b)
{
    float r = fmod(a, b);
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
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
    return bool_to_uchar(x == 0);
}
static inline uchar op_isnan(float x, float a, float b)
{
    return bool_to_uchar(x != x);
}
/* `a` is 1 to detect -infinity, and `b` to detect infinity. */
static inline uchar op_isinf(float x, float a, float b)
{
    return bool_to_uchar((x == -INFINITY && a != 0.0f) ||
                         (x == INFINITY && b != 0.0f));
}
static inline float op_where(uchar a, float b, float c)
{
    return a != 0 ? b : c;
}
static inline float op_fma(float a, float b, float c)
{
    return fma(a, b, c);
}

/* ---- operators of integers, which wrap around ---- */

#define INTEGER_UNARY(name, type, expression)                                  \
    static inline type op_##name##_##type(type x, float a, float b)            \
    {                                                                          \
        return expression;                                                     \
    }
#define INTEGER_BINARY(name, type, result, expression)                         \
    static inline result op_##name##_##type(type a, type b)                    \
    {                                                                          \
        return expression;                                                     \
    }
#define INTEGER_COMPARE(name, type, relation)                                  \
    INTEGER_BINARY(name, type, uchar, bool_to_uchar(a relation b))

/* CPUs trap if they divide by 0, or the smallest integer by -1, so these
 * divisors are replaced by 1. */
#define INTEGER_OPERATORS(type, unsigned_type)                                 \
    static inline type type##_negate(type x)                                   \
    {                                                                          \
        return (type)(0 - (unsigned_type)x);                                   \
    }                                                                          \
    static inline type type##_divisor(type b)                                  \
    {                                                                          \
        return b == 0 || b == -1 ? 1 : b;                                      \
    }                                                                          \
    static inline type type##_divide(type a, type b)                           \
    {                                                                          \
        type quotient = a / type##_divisor(b);                                 \
        return b == 0 ? 0 : b == -1 ? type##_negate(a) : quotient;             \
    }                                                                          \
    static inline type type##_floored_mod(type a, type b)                      \
    {                                                                          \
        type r = a % type##_divisor(b);                                        \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                       \
    }                                                                          \
    INTEGER_UNARY(neg, type, type##_negate(x))                                 \
    INTEGER_UNARY(abs, type, x < 0 ? type##_negate(x) : x)                     \
    INTEGER_UNARY(sign, type, (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0))               \
    INTEGER_BINARY(add, type, type,                                            \
                   (type)((unsigned_type)a + (unsigned_type)b))                \
    INTEGER_BINARY(sub, type, type,                                            \
                   (type)((unsigned_type)a - (unsigned_type)b))                \
    INTEGER_BINARY(mul, type, type,                                            \
                   (type)((unsigned_type)a * (unsigned_type)b))                \
    INTEGER_BINARY(div, type, type, type##_divide(a, b))                       \
    INTEGER_BINARY(mod, type, type, type##_floored_mod(a, b))                  \
    INTEGER_BINARY(fmod, type, type, a % type##_divisor(b))                    \
    INTEGER_BINARY(min, type, type, a < b ? a : b)                             \
    INTEGER_BINARY(max, type, type, a > b ? a : b)                             \
    INTEGER_COMPARE(equal, type, ==)                                           \
    INTEGER_COMPARE(not_equal, type, !=)                                       \
    INTEGER_COMPARE(less, type, <)                                             \
    INTEGER_COMPARE(less_or_equal, type, <=)                                   \
    INTEGER_COMPARE(greater, type, >)                                          \
    INTEGER_COMPARE(greater_or_equal, type, >=)                                \
    static inline type op_where_##type(uchar a, type b, type c)                \
    {                                                                          \
        return a != 0 ? b : c;                                                 \
    }
INTEGER_OPERATORS(int, uint)
INTEGER_OPERATORS(long, ulong)

/* ---- casts from float, and from any integer as a long ---- */

static inline long float_to_long(float x)
{
    if (x != x)
        return 0;
    if (x >= 9223372036854775808.0f)
        return LONG_MAX;
    return x < -9223372036854775808.0f ? LONG_MIN : (long)x;
}
static inline int long_to_int(long x)
{
    return (int)clamp(x, (long)INT_MIN, (long)INT_MAX);
}
static inline uchar long_to_uchar(long x)
{
    return (uchar)clamp(x, (long)0, (long)255);
}

/* Converts an integer to f32 with 24 significant bits, rounding to odd: the
 * last bit is 1 if other bits were lost. Rounding the result to 16 bits then
 * gives the same value as rounding the integer. */
#define ROUND_TO_ODD(name, type, bits, unsigned_type)                          \
    static inline float name(type x)                                           \
    {                                                                          \
        unsigned_type magnitude =                                              \
            x < 0 ? 0 - (unsigned_type)x : (unsigned_type)x;                   \
        uint shift = (bits)-24 - min((uint)clz(magnitude), (uint)(bits)-24);   \
        unsigned_type significand = magnitude >> shift;                        \
        significand |= significand << shift != magnitude ? 1 : 0;              \
        float y = (float)(uint)significand * as_float((127 + shift) << 23);    \
        return x < 0 ? -y : y;                                                 \
    }
ROUND_TO_ODD(int_to_float_odd, int, 32, uint)
ROUND_TO_ODD(long_to_float_odd, long, 64, ulong)

/* Returns x, but turns a signaling NaN into a quiet NaN. */
#define f16_quiet(x) f16_from_f32(f16_to_f32(x))
#if IS_CPU
static inline ushort bf16_quiet(ushort x)
{
    return (ushort)(x | bool_to_uchar((x & 0x7fffu) > 0x7f80u) << 6);
}
#else
#define bf16_quiet(x) bf16_from_f32(bf16_to_f32(x))
#endif

#define CAST(from, from_type, to, to_type, expression)                         \
    static inline to_type op_cast_##from##_##to(from_type x, float a, float b) \
    {                                                                          \
        return expression;                                                     \
    }
CAST(f32, float, f32, float, x)
CAST(f32, float, i32, int, long_to_int(float_to_long(x)))
CAST(f32, float, i64, long, float_to_long(x))
CAST(f32, float, u8, uchar, long_to_uchar(float_to_long(x)))
CAST(f32, float, bool, uchar, bool_to_uchar(x != 0.0f))
CAST(int, long, f32, float, convert_float_rte(x))
CAST(int, long, i32, int, long_to_int(x))
CAST(int, long, i64, long, x)
CAST(int, long, u8, uchar, long_to_uchar(x))
CAST(int, long, bool, uchar, bool_to_uchar(x != 0))

#define CASTS_OF_16_BITS(name, other)                                          \
    CAST(f32, float, name, ushort, name##_from_f32(x))                         \
    CAST(i32, int, name, ushort, name##_from_f32(int_to_float_odd(x)))         \
    CAST(int, long, name, ushort, name##_from_f32(long_to_float_odd(x)))       \
    CAST(other, ushort, name, ushort, name##_from_f32(other##_to_f32(x)))      \
    CAST(name, ushort, name, ushort, name##_quiet(x))                          \
    CAST(name, ushort, f32, float, name##_to_f32(x))                           \
    CAST(name, ushort, i32, int, long_to_int(float_to_long(name##_to_f32(x)))) \
    CAST(name, ushort, i64, long, float_to_long(name##_to_f32(x)))             \
    CAST(name, ushort, u8, uchar,                                              \
         long_to_uchar(float_to_long(name##_to_f32(x))))                       \
    CAST(name, ushort, bool, uchar, bool_to_uchar(name##_to_f32(x) != 0.0f))
CASTS_OF_16_BITS(f16, bf16)
CASTS_OF_16_BITS(bf16, f16)

#endif
