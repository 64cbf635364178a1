/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of vector.h with 8 lanes for AVX2, FMA and F16C. */
#ifndef TANDEM_CPU_SIMD_VECTOR_AVX2_H
#define TANDEM_CPU_SIMD_VECTOR_AVX2_H

#include <immintrin.h>
#include <sleef.h>
#include <stdint.h>

#define ISA(name) name##_avx2
#define ISA_NAME "avx2"
#define LANES 8

typedef __m256 vf;
typedef __m256 vm; /* mask: the bits of a lane are all set or all clear */
typedef __m256d vd;

#define SLEEF1(name) Sleef_##name##f8_u10avx2
#define SLEEF_POW Sleef_powf8_u10avx2

#define vf_set _mm256_set1_ps
#define vf_fma _mm256_fmadd_ps
#define vf_sqrt _mm256_sqrt_ps
#define vf_xor _mm256_xor_ps
#define vf_andnot _mm256_andnot_ps
#define vf_max_raw _mm256_max_ps
#define vf_min_raw _mm256_min_ps
#define vm_or _mm256_or_ps
#define vm_and _mm256_and_ps
#define vd_fma _mm256_fmadd_pd
#define vf_floor(x) _mm256_round_ps(x, 0x09)
#define vf_ceil(x) _mm256_round_ps(x, 0x0a)
#define vf_round(x) _mm256_round_ps(x, 0x08)
#define vf_select(mask, a, b) _mm256_blendv_ps(b, a, mask)
#define vf_compare(a, b, how) _mm256_cmp_ps(a, b, _CMP_##how)

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
/* Masked stores are slow on AMD processors before Zen 4. */
static inline void vf_store_part(float *p, int64_t n, vf x)
{
    __m128 low = _mm256_castps256_ps128(x);
    if ((n & 4) != 0) {
        _mm_storeu_ps(p, low);
        low = _mm256_extractf128_ps(x, 1);
        p += 4;
    }
    if ((n & 2) != 0) {
        _mm_storel_pi((__m64 *)(void *)p, low);
        low = _mm_movehl_ps(low, low);
        p += 2;
    }
    if ((n & 1) != 0)
        _mm_store_ss(p, low);
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void vf_store_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
static inline void vf_store_bf16(uint16_t *p, vf x)
{
    __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits,
                         _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
        16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i y = _mm256_blendv_epi8(
        rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_packus_epi32(_mm256_castsi256_si128(y),
                                      _mm256_extracti128_si256(y, 1)));
}
/* Multiplies x by 2^n in two steps, because f32 cannot hold 2^128 or 2^129. */
static inline vf vf_scale(vf x, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    __m256i rest = _mm256_sub_epi32(whole, half), one = _mm256_set1_epi32(127);
    half = _mm256_slli_epi32(_mm256_add_epi32(half, one), 23);
    rest = _mm256_slli_epi32(_mm256_add_epi32(rest, one), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(half)),
                         _mm256_castsi256_ps(rest));
}
static inline uint32_t vm_bits(vm mask)
{
    return (uint32_t)_mm256_movemask_ps(mask);
}
static inline vm vm_load_bytes(const uint8_t *p)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    __m256i lanes = _mm256_cvtepu8_epi32(bytes);
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(lanes, _mm256_setzero_si256()));
}
static inline vd vd_low(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
static inline vd vd_high(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
static inline vf vf_swap4(vf x)
{
    return _mm256_permute2f128_ps(x, x, 1);
}
static inline vf vf_swap2(vf x)
{
    return _mm256_permute_ps(x, 0x4e);
}
static inline vf vf_swap1(vf x)
{
    return _mm256_permute_ps(x, 0xb1);
}
static inline vf vf_even(vf a, vf b)
{
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}
static inline vf vf_odd(vf a, vf b)
{
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}
/* Transposes in three steps: swaps single elements between rows, then pairs of
 * elements, and then halves of rows. */
static inline void vf_transpose(vf *r)
{
    vf s[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        vf low = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
        r[i] = low;
    }
}

#endif
