/* SPDX-License-Identifier: Apache-2.0 */
/* Table of the GEMM kernels, and limits of the matrix sizes they support. */
#include "opencl/plan/gemm_kernel_configs.h"

#include "common/argument_check.h"

/* Columns: name, tile_m, tile_n, k_tile, group_log2, groups_per_compute_unit,
 * is_3xtf32, gemv_vectors, mma_format, uses_wgmma. */
const struct gemm_kernel_config gemm_configs[GEMM_KERNEL_COUNT] = {
    [GEMM_SIMT_128X128] = {"simt-128x128", 128, 128, 16, 7, 2, false, 0,
                           MMA_NONE, false},
    [GEMM_SIMT_64X64] = {"simt-64x64", 64, 64, 16, 7, 4, false, 0, MMA_NONE,
                         false},
    [GEMM_SIMT_32X64] = {"simt-32x64", 32, 64, 32, 7, 5, false, 0, MMA_NONE,
                         false},
    [GEMM_MMA_3XTF32_128X128] = {"3xtf32-128x128", 128, 128, 16, 7, 2, true, 0,
                                 MMA_NONE, false},
    [GEMM_MMA_3XTF32_64X64] = {"3xtf32-64x64", 64, 64, 16, 6, 4, true, 0,
                               MMA_NONE, false},
    [GEMV_1] = {"gemv-1", 0, 0, 0, 0, 1, false, 1, MMA_NONE, false},
    [GEMV_4] = {"gemv-4", 0, 0, 0, 0, 1, false, 4, MMA_NONE, false},
    [GEMV_8] = {"gemv-8", 0, 0, 0, 0, 1, false, 8, MMA_NONE, false},
    [GEMV_16] = {"gemv-16", 0, 0, 0, 0, 1, false, 16, MMA_NONE, false},
    [GEMM_MMA_TF32_128X256] = {"tf32-128x256", 128, 256, 32, 8, 1, false, 0,
                               MMA_TF32, false},
    [GEMM_MMA_TF32_128X64] = {"tf32-128x64", 128, 64, 32, 7, 2, false, 0,
                              MMA_TF32, false},
    [GEMM_MMA_FP16X3_128X128] = {"fp16x3-128x128", 128, 128, 32, 8, 1, false, 0,
                                 MMA_FP16X3, false},
    [GEMM_MMA_FP16X3_64X64] = {"fp16x3-64x64", 64, 64, 32, 7, 3, false, 0,
                               MMA_FP16X3, false},
    [GEMM_MMA_16BIT_128X256] = {"16bit-128x256", 128, 256, 64, 8, 1, false, 0,
                                MMA_16BIT, false},
    [GEMM_MMA_16BIT_128X64] = {"16bit-128x64", 128, 64, 64, 7, 2, false, 0,
                               MMA_16BIT, false},
    [GEMM_RECOMPUTE] = {"recompute", 128, 64, 16, 7, 3, false, 0, MMA_NONE,
                        false},
    [GEMM_WGMMA_FP16X3_128X128] = {"wgmma-fp16x3-128x128", 128, 128, 32, 9, 1,
                                   false, 0, MMA_FP16X3, true},
    [GEMM_WGMMA_FP16X3_128X64] = {"wgmma-fp16x3-128x64", 128, 64, 32, 9, 1,
                                  false, 0, MMA_FP16X3, true},
    [GEMM_WGMMA_3XTF32_128X128] = {"wgmma-3xtf32-128x128", 128, 128, 16, 9, 1,
                                   true, 0, MMA_3XTF32, true},
    [GEMM_WGMMA_3XTF32_128X64] = {"wgmma-3xtf32-128x64", 128, 64, 16, 9, 1,
                                  true, 0, MMA_3XTF32, true},
    [GEMM_WGMMA_TF32_256X128] = {"wgmma-tf32-256x128", 256, 128, 32, 9, 1,
                                 false, 0, MMA_TF32, true},
    [GEMM_WGMMA_TF32_128X128] = {"wgmma-tf32-128x128", 128, 128, 32, 9, 1,
                                 false, 0, MMA_TF32, true},
    [GEMM_WGMMA_16BIT_128X128] = {"wgmma-16bit-128x128", 128, 128, 64, 9, 1,
                                  false, 0, MMA_16BIT, true},
    [GEMM_WGMMA_16BIT_128X64] = {"wgmma-16bit-128x64", 128, 64, 64, 9, 1, false,
                                 0, MMA_16BIT, true},
    [GEMV_1_MN_MAJOR] = {"gemv-1-mn-major", 0, 0, 0, 0, 1, false, 1, MMA_NONE,
                         false},
};

/* Limit of the leading dimension (ld), so that 128 * ld fits in 32 bits. */
#define MAX_LD (INT32_MAX / 128)

bool gemm_fits_32bit_index(const struct tandem_gemm *gemm)
{
    /* Below these limits, even indices past the last tile fit in 32 bits. */
    return gemm->m < INT32_MAX && gemm->n < INT32_MAX && gemm->k < INT32_MAX &&
           gemm->batch < INT32_MAX && gemm->a.ld < MAX_LD &&
           gemm->b.ld < MAX_LD;
}

bool gemm_is_all_f32(const struct tandem_gemm *gemm)
{
    return gemm->dtype == TANDEM_F32 && gemm_c_dtype(gemm) == TANDEM_F32;
}

/* Returns true if all element offsets fit in an int, even after CLBlast has
 * padded the matrix with up to 255 rows and 255 columns. */
static bool matrix_fits_int(const struct tandem_matrix *matrix, int64_t rows)
{
    double end = (double)(matrix->byte_offset / sizeof(float)) +
                 ((double)rows + 256.0) * ((double)matrix->ld + 256.0);
    return end < (double)INT32_MAX;
}

bool clblast_supports_gemm(const struct tandem_gemm *gemm)
{
    bool transpose_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool transpose_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    int64_t a_rows = transpose_a ? gemm->k : gemm->m;
    int64_t b_rows = transpose_b ? gemm->n : gemm->k;
    return gemm->batch == 1 && gemm_is_all_f32(gemm) &&
           matrix_fits_int(&gemm->a, a_rows) &&
           matrix_fits_int(&gemm->b, b_rows) &&
           matrix_fits_int(&gemm->c, gemm->m);
}
