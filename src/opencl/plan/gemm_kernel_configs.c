/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the GEMM kernels' configurations. */
#include "opencl/plan/gemm_kernel_configs.h"

#include "common/argument_check.h"

const struct tile tiles[TILES] = {
    [GEMM_SIMT_128X128] = {"large", 128, 128, 16, 7, 2, false,
                           GEMM_SIMT_128X128, 0, TENSOR_NONE, false},
    [TILE_MEDIUM] = {"medium", 64, 64, 16, 7, 4, false, TILE_MEDIUM, 0,
                     TENSOR_NONE, false},
    [TILE_SMALL] = {"small", 32, 64, 32, 7, 5, false, TILE_SMALL, 0,
                    TENSOR_NONE, false},
    [GEMM_MMA_3XTF32_128X128] = {"strict-large", 128, 128, 16, 7, 2, true,
                                 GEMM_SIMT_128X128, 0, TENSOR_NONE, false},
    [TILE_STRICT_MEDIUM] = {"strict-medium", 64, 64, 16, 6, 4, true,
                            TILE_MEDIUM, 0, TENSOR_NONE, false},
    [TILE_SKINNY_1] = {"skinny-1", 0, 0, 0, 0, 1, false, TILE_SKINNY_1, 1,
                       TENSOR_NONE, false},
    [TILE_SKINNY_4] = {"skinny-4", 0, 0, 0, 0, 1, false, TILE_SKINNY_4, 4,
                       TENSOR_NONE, false},
    [TILE_SKINNY_8] = {"skinny-8", 0, 0, 0, 0, 1, false, TILE_SKINNY_8, 8,
                       TENSOR_NONE, false},
    [TILE_SKINNY_16] = {"skinny-16", 0, 0, 0, 0, 1, false, TILE_SKINNY_16, 16,
                        TENSOR_NONE, false},
    [TILE_TF32_LARGE] = {"tf32-large", 128, 256, 32, 8, 1, false, TILE_MEDIUM,
                         0, TENSOR_TF32, false},
    [TILE_TF32_MEDIUM] = {"tf32-medium", 128, 64, 32, 7, 2, false, TILE_MEDIUM,
                          0, TENSOR_TF32, false},
    [TILE_PAIR_LARGE] = {"pair-large", 128, 128, 32, 8, 1, false,
                         GEMM_SIMT_128X128, 0, MMA_FP16X3, false},
    [TILE_PAIR_MEDIUM] = {"pair-medium", 64, 64, 32, 7, 3, false, TILE_MEDIUM,
                          0, MMA_FP16X3, false},
    [GEMM_MMA_16BIT_128X256] = {"half-large", 128, 256, 64, 8, 1, false,
                                TILE_MEDIUM, 0, TENSOR_HALF, false},
    [TILE_HALF_MEDIUM] = {"half-medium", 128, 64, 64, 7, 2, false, TILE_MEDIUM,
                          0, TENSOR_HALF, false},
    [TILE_TALL] = {"tall", 128, 64, 16, 7, 3, false, TILE_TALL, 0, TENSOR_NONE,
                   false},
    [TILE_WGMMA_PAIR_LARGE] = {"wgmma-pair-large", 128, 128, 32, 9, 1, false,
                               GEMM_SIMT_128X128, 0, MMA_FP16X3, true},
    [TILE_WGMMA_PAIR_MEDIUM] = {"wgmma-pair-medium", 128, 64, 32, 9, 1, false,
                                TILE_TALL, 0, MMA_FP16X3, true},
    [TILE_WGMMA_SPLIT_LARGE] = {"wgmma-split-large", 128, 128, 16, 9, 1, true,
                                GEMM_SIMT_128X128, 0, TENSOR_SPLIT, true},
    [TILE_WGMMA_SPLIT_MEDIUM] = {"wgmma-split-medium", 128, 64, 16, 9, 1, true,
                                 TILE_TALL, 0, TENSOR_SPLIT, true},
    [TILE_WGMMA_TF32_LARGE] = {"wgmma-tf32-large", 256, 128, 32, 9, 1, false,
                               TILE_MEDIUM, 0, TENSOR_TF32, true},
    [TILE_WGMMA_TF32_MEDIUM] = {"wgmma-tf32-medium", 128, 128, 32, 9, 1, false,
                                TILE_MEDIUM, 0, TENSOR_TF32, true},
    [TILE_WGMMA_HALF_LARGE] = {"wgmma-half-large", 128, 128, 64, 9, 1, false,
                               TILE_MEDIUM, 0, TENSOR_HALF, true},
    [TILE_WGMMA_HALF_MEDIUM] = {"wgmma-half-medium", 128, 64, 64, 9, 1, false,
                                TILE_MEDIUM, 0, TENSOR_HALF, true},
    [TILE_SKINNY_BROAD] = {"skinny-broad", 0, 0, 0, 0, 1, false,
                           TILE_SKINNY_BROAD, 1, TENSOR_NONE, false},
};

/* 128 lines are counted in 32 bits. */
#define MOST_LINE (INT32_MAX / 128)

bool product_counts(const struct tandem_gemm *gemm)
{
    /* A chunk past the last must not wrap either, nor a tile of rows. */
    return gemm->m < INT32_MAX && gemm->n < INT32_MAX &&
           gemm->k < INT32_MAX && gemm->batch < INT32_MAX &&
           gemm->a.ld < MOST_LINE && gemm->b.ld < MOST_LINE;
}

bool product_wide(const struct tandem_gemm *gemm)
{
    return gemm->dtype == TANDEM_F32 && gemm_c_dtype(gemm) == TANDEM_F32;
}

/* Padding included: a tile of 256 rows is more than any of CLBlast's
 * parameters pads to. */
static bool counted_in_int(const struct tandem_matrix *matrix, int64_t rows,
                           int64_t batch)
{
    double end = (double)(matrix->byte_offset / sizeof(float)) +
                 (double)matrix->batch_stride * (double)(batch - 1) +
                 ((double)rows + 256.0) * ((double)matrix->ld + 256.0);
    return end < (double)INT32_MAX;
}

bool product_by_clblast(const struct tandem_gemm *gemm)
{
    bool turned_a = (gemm->flags & TANDEM_GEMM_TRANSPOSE_A) != 0;
    bool turned_b = (gemm->flags & TANDEM_GEMM_TRANSPOSE_B) != 0;
    return product_wide(gemm) &&
           counted_in_int(&gemm->a, turned_a ? gemm->k : gemm->m,
                          gemm->batch) &&
           counted_in_int(&gemm->b, turned_b ? gemm->n : gemm->k,
                          gemm->batch) &&
           counted_in_int(&gemm->c, gemm->m, gemm->batch);
}
