/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of vector.h with 16 lanes for AVX-512 F, DQ, BW and VL. */
#ifndef TANDEM_CPU_SIMD_VECTOR_AVX512_H
#define TANDEM_CPU_SIMD_VECTOR_AVX512_H

#include <immintrin.h>
#include <sleef.h>
#include <stdint.h>

#define ISA(name) name##_avx512
#define ISA_NAME "avx512"
#define LANES 16

typedef __m512 vf;
typedef __mmask16 vm; /* one bit per lane */
typedef __m512d vd;

#define SLEEF1(name) Sleef_##name##f16_u10avx512f
#define SLEEF_POW Sleef_powf16_u10avx512f

#define vf_set _mm512_set1_ps
#define vf_fma _mm512_fmadd_ps
#define vf_sqrt _mm512_sqrt_ps
#define vf_scale _mm512_scalef_ps
#define vf_xor _mm512_xor_ps
#define vf_andnot _mm512_andnot_ps
#define vf_max_raw _mm512_max_ps
#define vf_min_raw _mm512_min_ps
#define vd_fma _mm512_fmadd_pd
#define vf_floor(x) _mm512_roundscale_ps(x, 0x09)
#define vf_ceil(x) _mm512_roundscale_ps(x, 0x0a)
#define vf_round(x) _mm512_roundscale_ps(x, 0x08)
#define vf_select(mask, a, b) _mm512_mask_blend_ps(mask, b, a)
#define vf_compare(a, b, how) _mm512_cmp_ps_mask(a, b, _CMP_##how)

static inline vf vf_load_part(const float *p, int64_t n, vf fill)
{
    return _mm512_mask_loadu_ps(fill, (vm)((1u << n) - 1), p);
}
static inline void vf_store_part(float *p, int64_t n, vf x)
{
    _mm512_mask_storeu_ps(p, (vm)((1u << n) - 1), x);
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(
        _mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void vf_store_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
static inline void vf_store_bf16(uint16_t *p, vf x)
{
    __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(bits,
                         _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))),
        16);
    __m512i y =
        _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                             high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(y));
}
static inline vm vm_or(vm a, vm b)
{
    return (vm)(a | b);
}
static inline vm vm_and(vm a, vm b)
{
    return (vm)(a & b);
}
static inline uint32_t vm_bits(vm mask)
{
    return mask;
}
static inline vm vm_load_bytes(const uint8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm_test_epi8_mask(bytes, bytes);
}
static inline vd vd_low(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
static inline vd vd_high(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
static inline vf vf_swap8(vf x)
{
    return _mm512_shuffle_f32x4(x, x, 0x4e);
}
static inline vf vf_swap4(vf x)
{
    return _mm512_shuffle_f32x4(x, x, 0xb1);
}
static inline vf vf_swap2(vf x)
{
    return _mm512_permute_ps(x, 0x4e);
}
static inline vf vf_swap1(vf x)
{
    return _mm512_permute_ps(x, 0xb1);
}
static inline vf vf_even(vf a, vf b)
{
    return _mm512_permutex2var_ps(a,
                                  _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14,
                                                    16, 18, 20, 22, 24, 26, 28,
                                                    30),
                                  b);
}
static inline vf vf_odd(vf a, vf b)
{
    return _mm512_permutex2var_ps(a,
                                  _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15,
                                                    17, 19, 21, 23, 25, 27, 29,
                                                    31),
                                  b);
}

#endif
