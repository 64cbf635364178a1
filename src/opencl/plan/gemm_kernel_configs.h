/* SPDX-License-Identifier: Apache-2.0 */
/* The GEMM kernels of cl/, and the limits that all of them share.  Pure
 * functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H
#define TANDEM_OPENCL_PLAN_GEMM_KERNEL_CONFIGS_H

#include <tandem/backend.h>

/* Those of cl/gemm/gemm_simt.cl, of cl/nvidia/gemm_3xtf32.cl, of
 * cl/gemm/gemv.cl, of cl/nvidia/gemm_mma.cl and of cl/nvidia/gemm_wgmma.cl. */
enum tile_id {
    GEMM_SIMT_128X128,
    TILE_MEDIUM,
    TILE_SMALL,
    GEMM_MMA_3XTF32_128X128,
    TILE_STRICT_MEDIUM,
    TILE_SKINNY_1,
    TILE_SKINNY_4,
    TILE_SKINNY_8,
    TILE_SKINNY_16,
    TILE_TF32_LARGE,
    TILE_TF32_MEDIUM,
    TILE_PAIR_LARGE,
    TILE_PAIR_MEDIUM,
    GEMM_MMA_16BIT_128X256,
    TILE_HALF_MEDIUM,
    TILE_TALL, /* of cl/gemm/gemm_simt.cl, for what others cannot do alone */
    TILE_WGMMA_PAIR_LARGE,
    TILE_WGMMA_PAIR_MEDIUM,
    TILE_WGMMA_SPLIT_LARGE,
    TILE_WGMMA_SPLIT_MEDIUM,
    TILE_WGMMA_TF32_LARGE,
    TILE_WGMMA_TF32_MEDIUM,
    TILE_WGMMA_HALF_LARGE,
    TILE_WGMMA_HALF_MEDIUM,
    TILE_SKINNY_BROAD, /* one row, by more of what lies across k */
    TILES
};

/* What cl/nvidia/gemm_mma.cl and gemm_wgmma.cl multiply in a tile;
 * tensor_core_packing.h. */
enum tensor {
    TENSOR_NONE,
    TENSOR_HALF,
    TENSOR_TF32,
    MMA_FP16X3,
    TENSOR_SPLIT /* as accurate as a strict one, which it also is */
};

struct tile {
    const char *name;
    /* How much of the result a group computes, and of k at a time. */
    uint32_t m, n, slice;
    uint32_t group_log2;
    uint32_t slots; /* groups for which a compute unit has registers */
    bool strict; /* as cl/nvidia/gemm_3xtf32.cl's: each product is as accurate
                  * as f32, and what is not finite is left to the plain tile */
    enum tile_id plain; /* kernel without tensor cores that recomputes the
                         * non-finite tiles of this one; its tile may differ */
    uint32_t narrow; /* cl/gemm/gemv.cl's: rows, or columns; then m, n and slice
                      * depend on the product */
    enum tensor tensor;
    bool patched; /* cl/nvidia/gemm_wgmma.cl's; docs/gemm-wgmma.md */
};

extern const struct tile tiles[TILES];

#define MOST_SPLITS 256u

/* Whether all of it is f32. */
bool product_wide(const struct tandem_gemm *gemm);
/* Whether CLBlast takes it, too: what is f32 (its routines of f16 are not for
 * all devices), and reaches no further than its kernels count, in int. */
bool product_by_clblast(const struct tandem_gemm *gemm);
/* Whether the tiles can count as far as gemm's matrices go. */
bool product_counts(const struct tandem_gemm *gemm);

#endif
