/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of operands in memory, and the formats: f16, bf16, f32 rounded to
 * TF32, f32 as two f16 numbers (fp16x3), f32 as two TF32 numbers (3xtf32). */
#ifndef TANDEM_PACKED_LAYOUT_CL
#define TANDEM_PACKED_LAYOUT_CL

#define FORMAT_F16 0
#define FORMAT_BF16 1
#define FORMAT_TF32 2
#define FORMAT_FP16X3 3
#define FORMAT_3XTF32 4
#ifndef FORMAT
#define FORMAT FORMAT_TF32
#endif

/* K-major; MN-major with whole chunks of 16 bytes; pack_operands.cl's
 * blocks. */
#define LAYOUT_K_MAJOR 0
#define LAYOUT_MN_MAJOR 1
#define LAYOUT_PACKED 2
/* Bytes of an element. */
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
#define ELEMENT_BYTES 2
#else
#define ELEMENT_BYTES 4
#endif
/* Rows of a block. */
#define PACKED_ROWS 128
/* Replaces the scale of a row that has an infinite or NaN element. */
#define SCALE_NOT_FINITE 0x7fffffff
/* Factor for elements of 3xtf32, so that the smallest have a low part too. */
#define TF32_SPLIT_SCALE 0x1p36f

#if FORMAT == FORMAT_TF32
/* Rounds to the nearest TF32 number, which is an f32 of which tensor cores read
 * the upper 19 bits. Ties round away from 0, or to even with cvt.rn, which is
 * one instruction from compute capability 9.0 on. */
static inline uint tf32_round(uint x)
{
#ifdef EMULATED
    return (x & 0x7f800000u) == 0x7f800000u ? x : (x + 0x1000u) & 0xffffe000u;
#else
    uint out;
#if TF32_TO_EVEN
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(out) : "f"(as_float(x)));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(as_float(x)));
#endif
    return out;
#endif
}
#endif

#endif
