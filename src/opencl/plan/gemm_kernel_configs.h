/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the GEMM kernels in cl/, for example their tile sizes, and size
 * limits of GEMMs.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H
#define TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H

#include <stdbool.h>

#include <tandem/backend.h>

/* The GEMM kernels.  GEMV_n supports n vectors per work-group.  SIMT kernels
 * are in cl/gemm/gemm_simt.cl, GEMV kernels in cl/gemm/gemv.cl, RECOMPUTE is
 * cl/gemm/gemm_recompute.cl, MMA_3XTF32
 * kernels in cl/nvidia/gemm_3xtf32.cl, other MMA kernels in
 * cl/nvidia/gemm_mma.cl, and WGMMA kernels in cl/nvidia/gemm_wgmma.cl. */
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
    GEMM_RECOMPUTE, /* for tiles with infinities or NaN, and for tests */
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

/* Number formats in which NVIDIA's tensor cores multiply. */
enum mma_format {
    MMA_NONE,
    MMA_16BIT,  /* f16 or bf16 */
    MMA_TF32,   /* f32, rounded to TF32 */
    MMA_FP16X3, /* f32 as two f16 numbers with one scale per row */
    MMA_3XTF32  /* f32 as two TF32 numbers; see is_3xtf32 */
};

struct gemm_kernel_config {
    const char *name;
    /* A work-group computes a tile of tile_m rows and tile_n columns of the
     * result, and reads k_tile elements along k per iteration.  All three are 0
     * for GEMV kernels, which gemv_tiling() describes. */
    uint32_t tile_m, tile_n, k_tile;
    uint32_t group_log2;
    /* Number of work-groups for which a compute unit has enough registers. */
    uint32_t groups_per_compute_unit;
    /* True for 3xTF32 kernels, which are as accurate as f32. */
    bool is_3xtf32;
    /* Maximum number of vectors of a GEMV kernel, or 0 for other kernels. */
    uint32_t gemv_vectors;
    enum mma_format mma_format;
    bool uses_wgmma; /* cl/nvidia/gemm_wgmma.cl; see docs/kernels.md. */
};

extern const struct gemm_kernel_config gemm_configs[GEMM_KERNEL_COUNT];

#define MAX_SPLIT_K 256u
/* Maximum number of steps of k that a work-group of a tiled kernel adds up,
 * unless this would take more than MAX_SPLIT_K splits. */
#define MAX_SPLIT_STEPS 65536u

/* Stream-K: for the last `split_tiles` tiles of the result, k is split into at
 * most `splits` ranges.  Without splitting, `splits` is 1 and `split_tiles` is
 * 0.  GEMV kernels split all tiles or none. */
struct split_k {
    uint32_t splits, split_tiles;
};
#define ALL_GEMM_TILES UINT32_MAX
#define NO_SPLIT ((struct split_k){1, 0})

/* How a GEMM is computed. */
struct gemm_selection {
    bool clblast;               /* CLBlast is selected */
    enum gemm_kernel_id kernel; /* kernel used if CLBlast is not selected */
    struct split_k split;
    double ns; /* predicted time; 0 means unknown, for CLBlast only */
};

bool gemm_is_all_f32(const struct tandem_gemm *gemm);
/* Maximum k for which a GEMM is a single CLBlast call.  A GEMM with a larger k
 * becomes several calls. */
#define CLBLAST_MAX_UNSPLIT_K 512
/* Alignment of operands in bytes that is sufficient for CLBlast's longest
 * vector loads. */
#define CLBLAST_ALIGNMENT 64u
/* Returns true if CLBlast can compute the GEMM: a single product, because
 * CLBlast's batched routines are slower than our kernels (docs/tuning.md) and
 * end the process if they cannot allocate memory. All operands must be f32,
 * because CLBlast's f16 routines do not run on all devices. All element offsets
 * must fit in an int, because CLBlast's kernels compute them as int. */
bool clblast_supports_gemm(const struct tandem_gemm *gemm);
bool gemm_fits_32bit_index(const struct tandem_gemm *gemm);

#endif
