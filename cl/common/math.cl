/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one or two floats that need fewer instructions than those of the
 * OpenCL library. Results are within 5 ULP, and those of pow within 11 ULP.
 * Each function uses one formula for all x, because neighbouring work-items
 * rarely take the same branch. If NAME_needs_slow_path(x) is true, x is one of
 * the few inputs that need another formula, and the caller uses the library
 * function instead of NAME_fast(x).
 *
 * Comments call polynomials C, P, Q and S. Their coefficients minimize the
 * relative error (Remez exchange with 40 digits) and are rounded to floats,
 * unless a comment says otherwise. If a constant is the sum of two or three
 * floats, all but the last are rounded down, so that -0 gives -0. */
#ifndef TANDEM_MATH_CL
#define TANDEM_MATH_CL

#include "common/indexing.cl"

/* Unlike fmax and fmin, these functions return NaN if an argument is NaN. */
static inline float nan_max(float a, float b)
{
    return a >= b || a != a ? a : b;
}
static inline float nan_min(float a, float b)
{
    return a <= b || a != a ? a : b;
}

/* FAST_EXP2 is 2^x within 3 ULP; a subnormal result may be 0. FAST_RECIPROCAL
 * is 1 / x within 2.5 ULP for x from 1 to 2^126. OpenCL guarantees these bounds
 * for exp2 and division. NVIDIA's compiler translates the native_ functions to
 * ex2.approx.ftz and rcp.approx.ftz, whose errors are 2 and 1 ULP according to
 * PTX. Other platforms give no bounds for native_ functions. */
#if SHUFFLE == 1
#define FAST_EXP2(x) native_exp2(x)
#define FAST_RECIPROCAL(x) native_recip(x)
#else
#define FAST_EXP2(x) exp2(x)
#define FAST_RECIPROCAL(x) (1.0f / (x))
#endif

/* ---- sine and cosine ---- */

#define sin_needs_slow_path(x) (!(fabs(x) < 32768.0f))
#define cos_needs_slow_path sin_needs_slow_path
#define tan_needs_slow_path sin_needs_slow_path

/* Returns sin(x + quarters * pi / 2). With x = j * pi / 2 + r and
 * |r| <= pi / 4, sin r is r + r^3 * S(r^2) within 2^-28, and cos r is
 * 1 - r^2 / 2 + r^4 * C(r^2) within 2^-33. */
static inline float sin_plus_quarters(float x, uint quarters)
{
    /* Adding 12582912, which is 1.5 * 2^23, rounds to an integer. */
    float t = fma(x, 0.636619747f, 12582912.0f);
    float j = t - 12582912.0f;
    float r = fma(j, -1.57079625f, x);
    r = fma(j, -7.54978942e-08f, r);
    r = fma(j, -5.39030295e-15f, r);
    uint quarter = as_uint(t) + quarters;
    float s = r * r;
    float odd = fma(s, -0.00019518788f, 0.00833219197f);
    odd = fma(s, odd, -0.166666552f);
    odd = r * fma(s, odd, 1.0f);
    float even = fma(s, 2.44323273e-05f, -0.00138873095f);
    even = fma(s, even, 0.0416666456f);
    even = fma(s, even, -0.5f);
    even = fma(s, even, 1.0f);
    float y = (quarter & 1u) != 0 ? even : odd;
    return as_float(as_uint(y) ^ (quarter & 2u) << 30);
}
#define sin_fast(x) sin_plus_quarters(x, 0u)
#define cos_fast(x) sin_plus_quarters(x, 1u)
#define tan_fast(x) (sin_fast(x) / cos_fast(x))

/* ---- logarithms ---- */

/* Returns ln x. If x = 2^e * (1 + r) with |r| <= 1 / 3, ln(1 + r) is
 * r + r^2 * P(r) within 2^-24.9. */
static inline float log_fast(float x)
{
    bool tiny = x < FLT_MIN;
    int i = as_int(tiny ? x * 0x1p23f : x);
    int e = (i - 0x3f2aaaab) & (int)0xff800000;
    float r = as_float(i - e) - 1.0f;
    float p = fma(r, 0.140263408f, -0.153885186f);
    p = fma(r, p, 0.139958099f);
    p = fma(r, p, -0.164159656f);
    p = fma(r, p, 0.200111687f);
    p = fma(r, p, -0.250078171f);
    p = fma(r, p, 0.333331972f);
    p = fma(r, p, -0.499999374f);
    float exponent = fma((float)e, 0x1p-23f, tiny ? -23.0f : 0.0f);
    float y = fma(exponent, 0.693147182f, fma(r * r, p, r));
    /* The result is x if x is infinite or NaN, and NaN if x is negative. */
    y = x > 0.0f && x <= FLT_MAX ? y : fma(x, INFINITY, INFINITY);
    return x == 0.0f ? -INFINITY : y;
}

/* Returns ln(1 + x). If 1 + x = 2^e * (1 + r) with r from -1/4 to 1/2,
 * ln(1 + r) is r + r^2 * P(r) within 2^-24.7. The result for -0 is -0. */
static inline float log1p_fast(float x)
{
    int e = (0x3fbfffff - as_int(x + 1.0f)) & (int)0xff800000; /* -e * 2^23 */
    float t = fma(as_float(0x40800000 + e), -0.25f, 1.0f);
    float r = as_float(as_int(x) + e) - t;
    float p = fma(r, 0.0541330464f, -0.120674275f);
    p = fma(r, p, 0.149839267f);
    p = fma(r, p, -0.16822806f);
    p = fma(r, p, 0.199770764f);
    p = fma(r, p, -0.24993442f);
    p = fma(r, p, 0.333335489f);
    p = fma(r, p, -0.500000596f);
    float y = fma((float)e, -8.26295832e-08f, fma(r * r, p, r));
    y = x > -1.0f && x <= FLT_MAX ? y : fma(x, INFINITY, INFINITY);
    return x == -1.0f ? -INFINITY : y;
}

/* ---- e^x - 1 and functions of it ---- */

/* Returns e^x - 1 for x from -20 to 89, computed within 2^-25.8 as
 * 2^j * (1 + r + r^2 * P(r)) - 1 with |r| <= ln 2 / 2. */
static inline float expm1_in_range(float x)
{
    float t = fma(x, 1.44269502f, 12582912.0f);
    float j = t - 12582912.0f;
    float r = fma(j, 1.90465421e-09f, fma(j, -0.693147182f, x));
    float p = fma(r, 0.0013882526f, 0.008366514f);
    p = fma(r, p, 0.0416672006f);
    p = fma(r, p, 0.166665435f);
    p = fma(r, p, 0.49999997f);
    p = fma(r * r, p, r);
    /* Uses 2^(j - 1) and doubles the result, because 2^128 overflows. */
    float power = as_float((as_int(t) << 23) + 0x3f000000);
    float y = fma(power, p, power - 0.5f);
    return y + y;
}
static inline float expm1_fast(float x)
{
    float y = x > 89.0f ? 89.0f : x;
    y = y < -20.0f ? -20.0f : y;
    return fabs(x) < 0x1p-25f ? x : expm1_in_range(y);
}

/* Returns tanh x. If |x| < 0.5, tanh x is x + x^3 * P(x^2) within 2^-25.8.
 * Otherwise, |tanh x| is 1 - 2 / (e^(2 * |x|) + 1). */
static inline float tanh_fast(float x)
{
    float a = fabs(x), s = x * x;
    float small = fma(s, 0.0172569957f, -0.0530529544f);
    small = fma(s, small, 0.133259878f);
    small = fma(s, small, -0.333331496f);
    small = a * fma(s, small, 1.0f);
    float e = FAST_EXP2(a * 2.88539004f);
    float large = fma(-2.0f, FAST_RECIPROCAL(e + 1.0f), 1.0f);
    return copysign(a >= 0.5f ? large : small, x);
}

/* Returns erf x. If |x| < 0.5, erf x is x * P(x^2) within 2^-24. Otherwise,
 * |erf x| is 1 - 2^(|x| * Q(|x|)) within 2^-25. */
static inline float erf_fast(float x)
{
    float a = fabs(x), s = x * x;
    float small = fma(s, 0.00471912371f, -0.0267578233f);
    small = fma(s, small, 0.112828352f);
    small = fma(s, small, -0.376126081f);
    small = a * fma(s, small, 1.12837911f);
    float b = fmin(a, 4.0f);
    float large = fma(b, 0.000279002154f, -0.00444901688f);
    large = fma(b, large, 0.0325676315f);
    large = fma(b, large, -0.15134488f);
    large = fma(b, large, -0.917419851f);
    large = fma(b, large, -1.62804937f);
    large = 1.0f - FAST_EXP2(b * large);
    return copysign(a >= 0.5f ? large : small, x);
}

/* Returns ln(1 + exp x) as max(x, 0) + ln(1 + e) with e = exp(-|x|). ln(1 + e)
 * is e + e^2 * P(e) within 2^-25. */
static inline float softplus_fast(float x)
{
    float e = exp(-fabs(x));
    float p = fma(e, 0.00536548207f, -0.0300685391f);
    p = fma(e, p, 0.079209201f);
    p = fma(e, p, -0.137542158f);
    p = fma(e, p, 0.191538587f);
    p = fma(e, p, -0.248572186f);
    p = fma(e, p, 0.3332133f);
    p = fma(e, p, -0.499996483f);
    p = fma(e * e, p, e);
    return fmax(x, 0.0f) + p;
}

/* Returns x * tanh(ln(1 + exp x)) without computing tanh or ln. */
static inline float mish_fast(float x)
{
    float e = exp(fmin(x, 20.0f));
    float n = e * (e + 2.0f);
    float y = x * (n * FAST_RECIPROCAL(n + 2.0f));
    return x == x ? y : x;
}

/* ---- powers ---- */

#define pow_needs_slow_path(a, b)                                              \
    (as_uint(fabs(a)) - 0x00800000u >= 0x7f000000u || !(fabs(b) <= 256.0f))

/* Returns a^b for an exponent b that POW_IS_SIMPLE accepts. */
#define POW_IS_SIMPLE(b)                                                       \
    (fabs(b) == 0.5f || (b) == 2.0f || (b) == 3.0f || (b) == 4.0f)
static inline float4 pow_simple(float4 a, float b)
{
    if (fabs(b) == 0.5f) {
        /* pow(-infinity, 0.5) is infinity, pow(-0, 0.5) is +0. An integer
         * operation clears the sign, because Mesa removes fabs of a root. */
        float4 root = sqrt(a == -INFINITY ? (float4)(INFINITY) : a);
        root = as_float4(as_uint4(root) & 0x7fffffffu);
        return b < 0.0f ? 1.0f / root : root;
    }
    float4 square = a * a;
    return b == 2.0f ? square : square * (b == 3.0f ? a : square);
}

/* Returns a^b. With |a| = 2^e * m and m from 1/sqrt(2) to sqrt(2), |a|^b is
 * 2^(b * (e + log2 m)). The sum of two floats represents log2 m, which is
 * 2 / ln 2 * (s + s^3 / 3 + ...) with s = (m - 1) / (m + 1). */
static inline float pow_fast(float a, float b)
{
    int i = as_int(fabs(a));
    int e = (i - 0x3f3504f3) & (int)0xff800000;
    float u = as_float(i - e) - 1.0f;
    float q = FAST_RECIPROCAL(u + 2.0f);
    float s = u * q;
    /* The difference u - 2 * s has no rounding error. */
    float low = fma(-s, u, fma(-2.0f, s, u)) * q;
    float t = s * s;
    float p = fma(t, 0.43090564f, 0.576756418f);
    p = fma(t, p, 0.961798251f);
    p = fma(t, p, 3.85192607e-08f);
    float x = s * 2.88539004f;
    float x_low = fma(s, 2.88539004f, -x);
    x_low = fma(low, 2.88539004f, x_low);
    x_low = fma(s, p, x_low);
    float exponent = (float)e * 0x1p-23f;
    float h = exponent + x;
    float l = (x - (h - exponent)) + x_low;
    float y = b * h;
    float y_low = fma(b, l, fma(b, h, -y));
    float z = y + y_low;
    float z_low = y_low - (z - y);
    float r = exp2(z) * fma(z_low, 0.693147182f, 1.0f);
    /* If `a` is negative, the sign of the result is that of (-1)^b. */
    float w = b + 12582912.0f; /* adding 1.5 * 2^23 rounds b to an integer */
    bool is_not_integer = w - 12582912.0f != b;
    r = as_float(as_uint(r) ^ (as_uint(w) << 31 & as_uint(a)));
    return a < 0.0f && is_not_integer ? NAN : r;
}

#endif
