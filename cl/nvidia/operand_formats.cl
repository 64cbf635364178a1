/* SPDX-License-Identifier: Apache-2.0 */
/* Memory layouts of operands, and the formats f16, bf16, f32 rounded to TF32,
 * f32 as two f16 numbers (fp16x3) and f32 as two TF32 numbers (3xtf32). */
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

/* Layouts of an operand: K-major; MN-major, with lines of whole 16-byte chunks;
 * and the blocks that pack_operands.cl writes. */
#define LAYOUT_K_MAJOR 0
#define LAYOUT_MN_MAJOR 1
#define LAYOUT_PACKED 2
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
#define ELEMENT_BYTES 2
#else
#define ELEMENT_BYTES 4
#endif
#define PACKED_ROWS 128
/* Replaces the scale of a row that has an infinite or NaN element. */
#define SCALE_NOT_FINITE 0x7fffffff
/* 3xtf32 multiplies all elements by this factor, so that the smallest ones have
 * a low part. */
#define TF32_SPLIT_SCALE 0x1p36f

#if FORMAT == FORMAT_TF32
/* Rounds x to the nearest TF32 number, which is in the upper 19 bits of the
 * result. cvt.rna rounds ties away from 0. cvt.rn rounds ties to even and is a
 * single instruction from compute capability 9.0 on. */
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
