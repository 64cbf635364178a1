/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM kernel configs: the GEMM kernels of cl/ with their tile shapes, and the
 * limits that all of them share.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H
#define TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H

#include <tandem/backend.h>

/* SIMT: cl/gemm/gemm_simt.cl.  GEMV: cl/gemm/gemv.cl, by number of vectors.
 * MMA_3XTF32: cl/nvidia/gemm_3xtf32.cl.  Other MMA: cl/nvidia/gemm_mma.cl.
 * WGMMA: cl/nvidia/gemm_wgmma.cl. */
enum gemm_kernel_id {
    GEMM_SIMT_128X128,
    GEMM_SIMT_64X64,
    GEMM_SIMT_32X64,
    GEMM_MMA_3XTF32_128X128,
    GEMM_MMA_3XTF32_64X64,
    GEMV_1,
    GEMV_4,
    GEMV_8,
    GEMV_16,
    GEMM_MMA_TF32_128X256,
    GEMM_MMA_TF32_128X64,
    GEMM_MMA_FP16X3_128X128,
    GEMM_MMA_FP16X3_64X64,
    GEMM_MMA_16BIT_128X256,
    GEMM_MMA_16BIT_128X64,
    GEMM_SIMT_128X64, /* used only as simt_fallback */
    GEMM_WGMMA_FP16X3_128X128,
    GEMM_WGMMA_FP16X3_128X64,
    GEMM_WGMMA_3XTF32_128X128,
    GEMM_WGMMA_3XTF32_128X64,
    GEMM_WGMMA_TF32_256X128,
    GEMM_WGMMA_TF32_128X128,
    GEMM_WGMMA_16BIT_128X128,
    GEMM_WGMMA_16BIT_128X64,
    GEMV_1_MN_MAJOR, /* MN-major matrix, large work-groups */
    GEMM_KERNEL_COUNT
};

/* Number format that tensor cores multiply in gemm_mma.cl and gemm_wgmma.cl. */
enum mma_format {
    MMA_NONE,
    MMA_16BIT,  /* f16 or bf16 */
    MMA_TF32,   /* f32, rounded to TF32 */
    MMA_FP16X3, /* f32 as two f16 numbers with one scale per row */
    MMA_3XTF32  /* f32 as two TF32 numbers; is_3xtf32 is set as well */
};

struct gemm_kernel_config {
    const char *name;
    /* Part of the result that a work-group computes, and its step along k.
     * 0 for GEMV kernels, whose blocks depend on the operands' layouts. */
    uint32_t tile_m, tile_n, k_tile;
    uint32_t group_log2;
    /* Work-groups for which a compute unit has registers. */
    uint32_t groups_per_compute_unit;
    /* 3xTF32: accurate as f32, but results that are not finite are left to
     * simt_fallback. */
    bool is_3xtf32;
    /* The SIMT kernel that recomputes the tiles with non-finite results.  Its
     * tile shape may differ.  A SIMT or GEMV kernel names itself. */
    enum gemm_kernel_id simt_fallback;
    /* Vectors of a GEMV kernel; 0 for the others. */
    uint32_t gemv_vectors;
    enum mma_format mma_format;
    bool uses_wgmma; /* cl/nvidia/gemm_wgmma.cl; see docs/gemm-wgmma.md. */
};

extern const struct gemm_kernel_config gemm_configs[GEMM_KERNEL_COUNT];

#define MAX_SPLIT_K 256u

/* Returns true if a, b and c are f32. */
bool gemm_is_all_f32(const struct tandem_gemm *gemm);
/* Returns true if CLBlast can compute the GEMM: all operands are f32, because
 * CLBlast's f16 routines do not run on all devices, and all offsets fit in the
 * int of its kernels. */
bool clblast_supports_gemm(const struct tandem_gemm *gemm);
/* Returns true if all indices of the GEMM kernels fit in 32 bits. */
bool gemm_fits_32bit_index(const struct tandem_gemm *gemm);

#endif
