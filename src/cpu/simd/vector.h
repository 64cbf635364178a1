/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Portable f32 vectors for the files of this folder.  Each file is compiled
 * once per instruction set, and ISA(name) appends the name of that set.
 * vector_avx512.h, vector_avx2.h and vector_neon.h each define:
 *
 *   ISA_NAME   the name of the instruction set for kernels_choose
 *   LANES      the number of f32 lanes in a vector
 *   vf, vd     a vector of LANES f32, and a vector of LANES / 2 f64.  The
 *              compiler provides the operators + - * / for both.
 *   vm         a mask, the result of comparing two vf
 *
 *   vf_load_part, vf_store_part   load or store the first n lanes, where
 *              0 < n < LANES.  The other lanes of the result come from `fill`.
 *   vf_load_f16, vf_store_f16, vf_load_bf16, vf_store_bf16   convert LANES
 *              16-bit elements, with the rounding of common/float16.h
 *   vf_andnot  ~a & b
 *   vf_max_raw, vf_min_raw   maximum or minimum instruction of the processor.
 *              If `a` or `b` is NaN, the result is `b` on x86 and NaN on NEON.
 *   vf_compare(a, b, how)   `how` is a predicate of AVX: EQ_OQ LT_OQ LE_OQ
 *              GT_OQ GE_OQ (false for NaN), NEQ_UQ (true for NaN), NLE_UQ
 *              (not a <= b, true for NaN), UNORD_Q (`a` or `b` is NaN)
 *   vf_select  `a` in the lanes where the mask is set, otherwise `b`
 *   vm_bits    the mask as an integer with one bit per lane
 *   vm_load_bytes   a mask that is set in lanes whose byte is not 0
 *   vf_scale   x * 2^n, for an integer n from -126 to 129
 *   vd_low, vd_high   the lower and the upper half of a vf, converted to f64
 *   vf_swap8, vf_swap4, vf_swap2, vf_swap1   swap neighbouring groups of 8, 4,
 * 2 or 1 lanes.  A group is smaller than a vector. vf_even, vf_odd   the
 * elements with even or odd positions of `a`, followed by those of `b`
 *   vf_transpose   transposes a square of LANES x LANES elements.  AVX-512
 *              has none, because it uses the transpose kernel of AVX2.
 *   SLEEF1(name), SLEEF_POW   the functions `name` and pow of the SLEEF
 *              library, whose error is at most 1 ulp
 */
#ifndef TANDEM_CPU_SIMD_VECTOR_H
#define TANDEM_CPU_SIMD_VECTOR_H

/* The build defines the TANDEM_SIMD_ macro of the instruction set.  The macros
 * of the compiler are checked only to detect CFLAGS that disable the set. */
#if defined(TANDEM_SIMD_AVX512)
#if !defined(__AVX512F__) || !defined(__AVX512DQ__) ||                         \
    !defined(__AVX512BW__) || !defined(__AVX512VL__) || !defined(__F16C__) ||  \
    !defined(__FMA__)
#error                                                                         \
    "CFLAGS disable AVX-512, which this file needs: remove -mno-avx512f and \
the like; the library chooses the instruction set at run time"
#endif
#include "cpu/simd/vector_avx512.h"
#elif defined(TANDEM_SIMD_AVX2)
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "CFLAGS disable AVX2, FMA or F16C, which this file needs: remove \
-mno-avx2 and the like; the library chooses the instruction set at run time"
#endif
#include "cpu/simd/vector_avx2.h"
#elif defined(TANDEM_SIMD_NEON)
#include "cpu/simd/vector_neon.h"
#else
#error "the build must define TANDEM_SIMD_AVX2, TANDEM_SIMD_AVX512 or \
TANDEM_SIMD_NEON"
#endif

/* ---- functions of all instruction sets ---------------------------------- */

/* Types of vectors that can start at any element of an array. */
typedef vf vf_unaligned __attribute__((aligned(sizeof(float)), may_alias));
typedef vd vd_unaligned __attribute__((aligned(sizeof(double)), may_alias));

static inline vf vf_load(const float *p)
{
    return *(const vf_unaligned *)p;
}
static inline void vf_store(float *p, vf x)
{
    *(vf_unaligned *)p = x;
}
static inline vd vd_load(const double *p)
{
    return *(const vd_unaligned *)p;
}
static inline void vd_store(double *p, vd x)
{
    *(vd_unaligned *)p = x;
}
/* lanes_load and lanes_store access the first n lanes of a vector, or all lanes
 * if n >= LANES. lanes_load sets the other lanes to 0. */
static inline vf lanes_load(const float *p, int64_t n)
{
    return n >= LANES ? vf_load(p) : vf_load_part(p, n, vf_set(0));
}
static inline void lanes_store(float *p, int64_t n, vf x)
{
    if (n >= LANES)
        vf_store(p, x);
    else
        vf_store_part(p, n, x);
}
static inline vf vf_abs(vf x)
{
    return vf_andnot(vf_set(-0.0f), x);
}
static inline vm vf_nan(vf x)
{
    return vf_compare(x, x, UNORD_Q);
}
/* vf_max and vf_min return NaN in each lane where `a` or `b` is NaN. */
static inline vf vf_max(vf a, vf b)
{
    return vf_select(vf_nan(a), a, vf_max_raw(a, b));
}
static inline vf vf_min(vf a, vf b)
{
    return vf_select(vf_nan(a), a, vf_min_raw(a, b));
}
/* vf_all_max and vf_all_sum combine all lanes, and return the result in each
 * lane.  If a lane is NaN, the sum is NaN and the maximum is unspecified. */
static inline vf vf_all_max(vf x)
{
#if LANES > 8
    x = vf_max_raw(x, vf_swap8(x));
#endif
#if LANES > 4
    x = vf_max_raw(x, vf_swap4(x));
#endif
    x = vf_max_raw(x, vf_swap2(x));
    return vf_max_raw(x, vf_swap1(x));
}
static inline vf vf_all_sum(vf x)
{
#if LANES > 8
    x += vf_swap8(x);
#endif
#if LANES > 4
    x += vf_swap4(x);
#endif
    x += vf_swap2(x);
    return x + vf_swap1(x);
}
static inline double vd_sum(vd x)
{
    double lanes[LANES / 2];
    vd_store(lanes, x);
    for (int n = LANES / 4; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            lanes[i] += lanes[i + n];
    return lanes[0];
}

/* ---- transcendentals ---------------------------------------------------- */

/* Returns e^x as 2^n e^r, where n is x / ln 2 rounded to an integer. e^r is 1 +
 * r + r^2 p(r) with a minimax polynomial p and an error below 2^-28.  The total
 * error is below 1.01 ulp.  Subnormal results become 0, because subnormal
 * arithmetic can be a hundred times slower.  For the same reason, smaller
 * inputs are computed like the smallest input with a normal result.  NaN
 * remains NaN. */
static inline vf vf_exp(vf x)
{
    vf low = vf_set(-87.33655f);
    vm normal = vf_compare(x, low, NLE_UQ);
    x = vf_min_raw(vf_set(89), vf_max_raw(vf_set(-87.33654f), x));
    vf n = vf_round(x * vf_set(1.44269504f));
    vf r = vf_fma(n, vf_set(-0.693145752f), x);
    r = vf_fma(n, vf_set(-1.42860677e-06f), r);
    vf p = vf_set(0.00138214463f);
    p = vf_fma(p, r, vf_set(0.00836866163f));
    p = vf_fma(p, r, vf_set(0.0416682549f));
    p = vf_fma(p, r, vf_set(0.166665211f));
    p = vf_fma(p, r, vf_set(0.49999994f));
    vf y = vf_fma(r * r, p, r) + vf_set(1);
    return vf_select(normal, vf_scale(y, n), vf_set(0));
}

/* SLEEF's log1p returns infinity for inputs of 1e38 and more.  Inputs above
 * 1e30 therefore use log, whose result is the same in f32. */
static inline vf vf_log1p(vf x)
{
    vm large = vf_compare(x, vf_set(1e30f), GT_OQ);
    vf y = SLEEF1(log1p)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, SLEEF1(log)(x), y);
    return y;
}

/* The functions below use minimax polynomials p and q.  The error of each fit
 * is below the rounding error of f32, unless a comment says otherwise. */

static inline vf vf_copy_sign(vf magnitude, vf sign)
{
    return vf_xor(magnitude, vf_xor(vf_abs(sign), sign));
}

/* Returns tanh(x): x + x^3 p(x^2) if |x| < 0.65, otherwise 1 - 2 / (e^(2|x|) +
 * 1) with the sign of x.  The error is below 3 ulp. */
static inline vf vf_tanh(vf x)
{
    vf s = x * x, a = vf_abs(x);
    vf p = vf_set(-0.005528634f);
    p = vf_fma(p, s, vf_set(0.020483317f));
    p = vf_fma(p, s, vf_set(-0.053692967f));
    p = vf_fma(p, s, vf_set(0.13330899f));
    p = vf_fma(p, s, vf_set(-0.33333263f));
    vf near = vf_fma(x * s, p, x);
    vf e = vf_exp(a + a) + vf_set(1);
    vf far = vf_set(1) - vf_set(2) / e;
    return vf_select(vf_compare(a, vf_set(0.65f), LT_OQ), near,
                     vf_copy_sign(far, x));
}

/* Returns 1 - erf(a) for a >= 0 as t q(t) e^(-a^2), where t = 1 / (1 + a / 2).
 * The absolute error is below 2^-24. */
static inline vf vf_erfc_tail(vf a)
{
    vf t = vf_set(1) / vf_fma(a, vf_set(0.5f), vf_set(1));
    vf q = vf_set(0.061555434f);
    q = vf_fma(q, t, vf_set(-0.23137289f));
    q = vf_fma(q, t, vf_set(0.14808178f));
    q = vf_fma(q, t, vf_set(0.28065538f));
    q = vf_fma(q, t, vf_set(0.14656979f));
    q = vf_fma(q, t, vf_set(0.31686112f));
    q = vf_fma(q, t, vf_set(0.27764937f));
    return t * q * vf_exp(-(a * a));
}

/* Returns erf(x): x p(x^2) if |x| < 1, otherwise 1 - vf_erfc_tail(|x|) with the
 * sign of x.  The error is below 4 ulp. */
static inline vf vf_erf(vf x)
{
    vf s = x * x, a = vf_abs(x);
    vf p = vf_set(7.8538607e-05f);
    p = vf_fma(p, s, vf_set(-0.0008010194f));
    p = vf_fma(p, s, vf_set(0.0051883277f));
    p = vf_fma(p, s, vf_set(-0.026853813f));
    p = vf_fma(p, s, vf_set(0.11283585f));
    p = vf_fma(p, s, vf_set(-0.37612626f));
    p = vf_fma(p, s, vf_set(1.1283791f));
    vf far = vf_set(1) - vf_erfc_tail(a);
    return vf_select(vf_compare(a, vf_set(1), LT_OQ), x * p,
                     vf_copy_sign(far, x));
}

#endif
