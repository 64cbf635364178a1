/* SPDX-License-Identifier: Apache-2.0 */
/* What pack_operands.cl writes, and gemm_mma.cl and gemm_wgmma.cl read: f16,
 * bf16, f32 rounded to TF32, or f32 as pairs of halves, or of TF32 numbers. */
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

/* How an operand lies: lines along k; along m or n, of which there are whole
 * pieces of sixteen bytes; or in blocks, as pack_operands.cl makes them. */
#define LAYOUT_K_MAJOR 0
#define LAYOUT_MN_MAJOR 1
#define LAYOUT_PACKED 2
/* Of an element. */
#if FORMAT == FORMAT_F16 || FORMAT == FORMAT_BF16
#define ELEMENT_BYTES 2
#else
#define ELEMENT_BYTES 4
#endif
/* Rows of a block. */
#define PACKED_ROWS 128
/* In the place of a row's scale: it has an infinite or NaN element. */
#define SCALE_NOT_FINITE 0x7fffffff
/* Elements of pairs of TF32 numbers are multiplied by it, so that the smallest
 * have a low part too. */
#define TF32_SPLIT_SCALE 0x1p36f

#if FORMAT == FORMAT_TF32
/* The nearest TF32 number, as an f32, of which tensor cores read the upper 19
 * bits; of two, the one that is larger or (cvt.rn) even.  cvt.rn is one
 * instruction, from compute capability 9.0 on. */
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
