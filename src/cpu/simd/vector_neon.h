/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of vector.h with 4 lanes for NEON on AArch64. */
#ifndef TANDEM_CPU_SIMD_VECTOR_NEON_H
#define TANDEM_CPU_SIMD_VECTOR_NEON_H

#include <arm_neon.h>
#include <sleef.h>
#include <stdint.h>
#include <string.h>

#define ISA(name) name##_neon
#define ISA_NAME "neon"
#define LANES 4

typedef float32x4_t vf;
typedef uint32x4_t vm; /* mask: the bits of a lane are all set or all clear */
typedef float64x2_t vd;

#define SLEEF1(name) Sleef_##name##f4_u10advsimd
#define SLEEF_POW Sleef_powf4_u10advsimd

#define vf_set vdupq_n_f32
#define vf_sqrt vsqrtq_f32
#define vf_floor vrndmq_f32
#define vf_ceil vrndpq_f32
#define vf_round vrndnq_f32
#define vf_max_raw vmaxq_f32
#define vf_min_raw vminq_f32
#define vf_compare_EQ_OQ vceqq_f32
#define vf_compare_LT_OQ vcltq_f32
#define vf_compare_LE_OQ vcleq_f32
#define vf_compare_GT_OQ vcgtq_f32
#define vf_compare_GE_OQ vcgeq_f32
#define vf_even vuzp1q_f32
#define vf_odd vuzp2q_f32
#define vf_select vbslq_f32
#define vm_or vorrq_u32
#define vm_and vandq_u32
#define vd_high vcvt_high_f64_f32
#define vf_fma(a, b, c) vfmaq_f32(c, a, b)
#define vd_fma(a, b, c) vfmaq_f64(c, a, b)
#define vf_compare(a, b, how) vf_compare_##how(a, b)

static inline vf vf_load_part(const float *p, int64_t n, vf fill)
{
    vf x = vld1q_lane_f32(p, fill, 0);
    x = n > 1 ? vld1q_lane_f32(p + 1, x, 1) : x;
    return n > 2 ? vld1q_lane_f32(p + 2, x, 2) : x;
}
static inline void vf_store_part(float *p, int64_t n, vf x)
{
    vst1q_lane_f32(p, x, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, x, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, x, 2);
}
static inline vf vf_load_f16(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline void vf_store_f16(uint16_t *p, vf x)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}
static inline vf vf_load_bf16(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
static inline void vf_store_bf16(uint16_t *p, vf x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    vst1_u16(p, vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16));
}
/* Multiplies x by 2^n in two steps, because f32 cannot hold 2^128 or 2^129. */
static inline vf vf_scale(vf x, vf n)
{
    int32x4_t whole = vcvtnq_s32_f32(n), half = vshrq_n_s32(whole, 1);
    int32x4_t rest = vsubq_s32(whole, half), one = vdupq_n_s32(127);
    half = vshlq_n_s32(vaddq_s32(half, one), 23);
    rest = vshlq_n_s32(vaddq_s32(rest, one), 23);
    return vmulq_f32(vmulq_f32(x, vreinterpretq_f32_s32(half)),
                     vreinterpretq_f32_s32(rest));
}
static inline vf vf_xor(vf a, vf b)
{
    return vreinterpretq_f32_u32(
        veorq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}
static inline vf vf_andnot(vf a, vf b)
{
    return vreinterpretq_f32_u32(
        vbicq_u32(vreinterpretq_u32_f32(b), vreinterpretq_u32_f32(a)));
}
static inline vm vf_compare_NEQ_UQ(vf a, vf b)
{
    return vmvnq_u32(vceqq_f32(a, b));
}
static inline vm vf_compare_NLE_UQ(vf a, vf b)
{
    return vmvnq_u32(vcleq_f32(a, b));
}
static inline vm vf_compare_UNORD_Q(vf a, vf b)
{
    return vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)));
}
static inline uint32_t vm_bits(vm mask)
{
    static const uint32_t bits[LANES] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, vld1q_u32(bits)));
}
static inline vm vm_load_bytes(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    uint16x8_t words = vmovl_u8(vcreate_u8(four));
    uint32x4_t lanes = vmovl_u16(vget_low_u16(words));
    return vtstq_u32(lanes, lanes);
}
static inline vd vd_low(vf x)
{
    return vcvt_f64_f32(vget_low_f32(x));
}
static inline vf vf_swap2(vf x)
{
    return vextq_f32(x, x, 2);
}
static inline vf vf_swap1(vf x)
{
    return vrev64q_f32(x);
}
static inline void vf_transpose(vf *r)
{
    float32x4x2_t even = vtrnq_f32(r[0], r[1]), odd = vtrnq_f32(r[2], r[3]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[i] =
            vcombine_f32(vget_low_f32(even.val[i]), vget_low_f32(odd.val[i]));
        r[i + 2] =
            vcombine_f32(vget_high_f32(even.val[i]), vget_high_f32(odd.val[i]));
    }
}

#endif
