/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of f32 for the files of this room, which are compiled once for each
 * instruction set: 8 lanes with AVX2, 16 with AVX-512.  ISA(name) is the
 * name's own for the set that is compiled for.
 */
#ifndef TANDEM_CPU_X86_VECTOR_H
#define TANDEM_CPU_X86_VECTOR_H

#include <immintrin.h>
#include <sleef.h>
#include <stdint.h>

#define SIGN_BIT ((int32_t)0x80000000u)

#ifdef __AVX512F__

#define ISA(name) name##_avx512
#define LANES 16

typedef __m512 vf;    /* f32 */
typedef __m512i vi;   /* 32-bit integers */
typedef __mmask16 vm; /* one bit a lane */
typedef __m512d vd;   /* f64, half as many */

#define SLEEF1(name) Sleef_##name##f16_u10avx512f
#define SLEEF_POW Sleef_powf16_u10avx512f

static inline vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
/* The first n lanes, 0 < n < LANES; the others are fill's, or left alone. */
static inline vf vf_load_part(const float *p, int64_t n, vf fill)
{
    return _mm512_mask_loadu_ps(fill, (vm)((1u << n) - 1), p);
}
static inline void vf_store_part(float *p, int64_t n, vf x)
{
    _mm512_mask_storeu_ps(p, (vm)((1u << n) - 1), x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf vf_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}
static inline vf vf_floor(vf x)
{
    return _mm512_roundscale_ps(x, 0x09);
}
static inline vf vf_ceil(vf x)
{
    return _mm512_roundscale_ps(x, 0x0a);
}
static inline vf vf_round(vf x)
{
    return _mm512_roundscale_ps(x, 0x08);
}
static inline vf vf_xor(vf a, vf b)
{
    return _mm512_xor_ps(a, b);
}
static inline vf vf_andnot(vf a, vf b)
{
    return _mm512_andnot_ps(a, b);
}
/* As the machine has it: b where either is NaN. */
static inline vf vf_max_raw(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
static inline vf vf_min_raw(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
#define vf_compare(a, b, how) _mm512_cmp_ps_mask(a, b, how)
/* a where the mask is set, else b. */
static inline vf vf_select(vm mask, vf a, vf b)
{
    return _mm512_mask_blend_ps(mask, b, a);
}
static inline vm vm_or(vm a, vm b)
{
    return (vm)(a | b);
}
static inline vm vm_none(void)
{
    return 0;
}
/* One bit a lane. */
static inline uint32_t vm_bits(vm mask)
{
    return mask;
}
/* LANES bytes, each 1 or 0; and the mask of those that are not 0. */
static inline void vm_store_bytes(uint8_t *p, vm mask)
{
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_maskz_set1_epi8((__mmask16)mask, 1));
}
static inline vm vm_load_bytes(const uint8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm_test_epi8_mask(bytes, bytes);
}
static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}
static inline vd vd_set(double x)
{
    return _mm512_set1_pd(x);
}
static inline vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
static inline vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
static inline vd vd_load(const double *p)
{
    return _mm512_loadu_pd(p);
}
static inline void vd_store(double *p, vd x)
{
    _mm512_storeu_pd(p, x);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}

#else /* AVX2 */

#define ISA(name) name##_avx2
#define LANES 8

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm; /* all bits of a lane */
typedef __m256d vd;

#define SLEEF1(name) Sleef_##name##f8_u10avx2
#define SLEEF_POW Sleef_powf8_u10avx2

static inline vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
static inline __m256i part_mask(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vf_load_part(const float *p, int64_t n, vf fill)
{
    __m256i mask = part_mask(n);
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask),
                            _mm256_castsi256_ps(mask));
}
static inline void vf_store_part(float *p, int64_t n, vf x)
{
    _mm256_maskstore_ps(p, part_mask(n), x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
static inline vf vf_floor(vf x)
{
    return _mm256_round_ps(x, 0x09);
}
static inline vf vf_ceil(vf x)
{
    return _mm256_round_ps(x, 0x0a);
}
static inline vf vf_round(vf x)
{
    return _mm256_round_ps(x, 0x08);
}
static inline vf vf_xor(vf a, vf b)
{
    return _mm256_xor_ps(a, b);
}
static inline vf vf_andnot(vf a, vf b)
{
    return _mm256_andnot_ps(a, b);
}
static inline vf vf_max_raw(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf vf_min_raw(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
#define vf_compare(a, b, how) _mm256_cmp_ps(a, b, how)
static inline vf vf_select(vm mask, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, mask);
}
static inline vm vm_or(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}
static inline vm vm_none(void)
{
    return _mm256_setzero_ps();
}
static inline uint32_t vm_bits(vm mask)
{
    return (uint32_t)_mm256_movemask_ps(mask);
}
static inline void vm_store_bytes(uint8_t *p, vm mask)
{
    __m256i lanes = _mm256_castps_si256(mask);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(lanes),
                                    _mm256_extracti128_si256(lanes, 1));
    __m128i bytes =
        _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
    _mm_storel_epi64((__m128i *)(void *)p, bytes);
}
static inline vm vm_load_bytes(const uint8_t *p)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    __m256i lanes = _mm256_cvtepu8_epi32(bytes);
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(lanes, _mm256_setzero_si256()));
}
static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}
static inline vd vd_set(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
static inline vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
static inline void vd_store(double *p, vd x)
{
    _mm256_storeu_pd(p, x);
}
static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}

#endif

/* ---- made of the above, for both ---------------------------------------- */

static inline vf vf_sign_bit(void)
{
    return vf_set(-0.0f);
}
static inline vf vf_neg(vf x)
{
    return vf_xor(x, vf_sign_bit());
}
static inline vf vf_abs(vf x)
{
    return vf_andnot(vf_sign_bit(), x);
}
static inline vm vf_nan(vf x)
{
    return vf_compare(x, x, _CMP_UNORD_Q);
}
/* NaN where either is. */
static inline vf vf_max(vf a, vf b)
{
    return vf_select(vf_nan(a), a, vf_max_raw(a, b));
}
static inline vf vf_min(vf a, vf b)
{
    return vf_select(vf_nan(a), a, vf_min_raw(a, b));
}
static inline double vd_sum(vd x)
{
    double lanes[LANES / 2], sum = 0;
    vd_store(lanes, x);
    for (int i = 0; i < LANES / 2; i++)
        sum += lanes[i];
    return sum;
}
static inline double vd_product(vd x)
{
    double lanes[LANES / 2], product = 1;
    vd_store(lanes, x);
    for (int i = 0; i < LANES / 2; i++)
        product *= lanes[i];
    return product;
}

/* ---- transcendentals
 * ----------------------------------------------------------- SLEEF, within 1
 * ulp, mended where its range ends before f32's does. */

static inline vf vf_exp(vf x)
{
    return SLEEF1(exp)(x);
}
static inline vf vf_expm1(vf x)
{
    return SLEEF1(expm1)(x);
}
static inline vf vf_log(vf x)
{
    return SLEEF1(log)(x);
}
/* SLEEF's log1p gives infinity from 1e38 on; there it is log. */
static inline vf vf_log1p(vf x)
{
    vm large = vf_compare(x, vf_set(1e30f), _CMP_GT_OQ);
    vf y = SLEEF1(log1p)(x);
    if (vm_bits(large) != 0)
        y = vf_select(large, SLEEF1(log)(x), y);
    return y;
}
static inline vf vf_sin(vf x)
{
    return SLEEF1(sin)(x);
}
static inline vf vf_cos(vf x)
{
    return SLEEF1(cos)(x);
}

/* The polynomials below are minimax fits made for this file; their errors are
 * below the rounding of f32 unless a comment says more. */

static inline vf vf_copy_sign(vf magnitude, vf sign)
{
    return vf_xor(magnitude, vf_xor(vf_abs(sign), sign));
}

/* x + x^3 p(x^2) near 0, else 1 - 2 / (e^2|x| + 1); within 3 ulp. */
static inline vf vf_tanh(vf x)
{
    vf s = vf_mul(x, x), a = vf_abs(x);
    vf p = vf_set(-0.005528634f);
    p = vf_fma(p, s, vf_set(0.020483317f));
    p = vf_fma(p, s, vf_set(-0.053692967f));
    p = vf_fma(p, s, vf_set(0.13330899f));
    p = vf_fma(p, s, vf_set(-0.33333263f));
    vf near = vf_fma(vf_mul(x, s), p, x);
    vf e = vf_add(vf_exp(vf_add(a, a)), vf_set(1));
    vf far = vf_sub(vf_set(1), vf_div(vf_set(2), e));
    return vf_select(vf_compare(a, vf_set(0.65f), _CMP_LT_OQ), near,
                     vf_copy_sign(far, x));
}

/* 1 - erf(a) for a >= 0: t q(t) e^(-a^2) with t = 1 / (1 + a / 2); absolute
 * error below 2^-24. */
static inline vf vf_erfc_tail(vf a)
{
    vf t = vf_div(vf_set(1), vf_fma(a, vf_set(0.5f), vf_set(1)));
    vf q = vf_set(0.061555434f);
    q = vf_fma(q, t, vf_set(-0.23137289f));
    q = vf_fma(q, t, vf_set(0.14808178f));
    q = vf_fma(q, t, vf_set(0.28065538f));
    q = vf_fma(q, t, vf_set(0.14656979f));
    q = vf_fma(q, t, vf_set(0.31686112f));
    q = vf_fma(q, t, vf_set(0.27764937f));
    return vf_mul(vf_mul(t, q), vf_exp(vf_neg(vf_mul(a, a))));
}

/* x p(x^2) below 1, else one less the tail; within 4 ulp. */
static inline vf vf_erf(vf x)
{
    vf s = vf_mul(x, x), a = vf_abs(x);
    vf p = vf_set(7.8538607e-05f);
    p = vf_fma(p, s, vf_set(-0.0008010194f));
    p = vf_fma(p, s, vf_set(0.0051883277f));
    p = vf_fma(p, s, vf_set(-0.026853813f));
    p = vf_fma(p, s, vf_set(0.11283585f));
    p = vf_fma(p, s, vf_set(-0.37612626f));
    p = vf_fma(p, s, vf_set(1.1283791f));
    vf far = vf_sub(vf_set(1), vf_erfc_tail(a));
    return vf_select(vf_compare(a, vf_set(1), _CMP_LT_OQ), vf_mul(x, p),
                     vf_copy_sign(far, x));
}

static inline vf vf_pow(vf a, vf b)
{
    return SLEEF_POW(a, b);
}

#endif
