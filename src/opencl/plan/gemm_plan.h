/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own kernels of matrix products: the tiles that they come in, and plans
 * for them.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMM_PLAN_H

#include "opencl/plan/plan.h"

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

/* Groups that each split of the product takes. */
uint64_t product_groups(const struct tandem_gemm *gemm, enum tile_id tile);
/* How much of k it takes at a time, and of its cost (gemm_cost_model.h) at each
 * step: a skinny one that of each row. */
uint32_t product_slice(const struct tandem_gemm *gemm, enum tile_id tile);
uint32_t product_share(const struct tandem_gemm *gemm, enum tile_id tile);
/* Whether tile takes gemm, packed where it has to be (operand_packing.h):
 * skinny ones few rows or columns alone. */
bool product_fits(const struct tandem_gemm *gemm, enum tile_id tile);
/* Whether the tile, a plain one, reads elements one by one. */
bool product_by_ones(const struct tandem_gemm *gemm, enum tile_id tile);
/* Whether all of it is f32. */
bool product_wide(const struct tandem_gemm *gemm);
/* Whether CLBlast takes it, too: what is f32 (its routines of f16 are not for
 * all devices), and reaches no further than its kernels count, in int. */
bool product_by_clblast(const struct tandem_gemm *gemm);
/* Whether the tiles can count as far as gemm's matrices go. */
bool product_counts(const struct tandem_gemm *gemm);
enum operand_id { OPERAND_A, OPERAND_B, OPERANDS };

/* Whether the operand does not lie along k. */
bool operand_is_mn_major(const struct tandem_gemm *gemm,
                         enum operand_id operand);
/* Whether a strict product takes it as it lies. */
bool operand_aligned(const struct tandem_gemm *gemm, enum operand_id operand);
/* k of the last tiles, parted of them, is cut into splits chunks, at most;
 * skinny ones cut all or none. */
struct division {
    uint32_t splits, parted; /* 1 and 0, or more of both */
};
#define ALL_TILES UINT32_MAX
#define WHOLE ((struct division){1, 0})

/* gemm is no empty one, and fits.  kept: where operands lie packed already, a
 * and b, NULL for those that do not; or NULL. */
void plan_product(struct plan *plan, const struct tandem_gemm *gemm,
                  enum tile_id tile, struct division division,
                  const struct tandem_matrix *const *kept,
                  uint32_t group_log2);

#endif
