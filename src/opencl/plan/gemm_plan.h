/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own kernels of matrix products: the tiles that they come in, and plans
 * for them.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMM_PLAN_H

#include "opencl/plan/gemm_kernel_configs.h"
#include "opencl/plan/plan.h"

/* Groups that each split of the product takes. */
uint64_t gemm_kernel_groups(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id tile);
/* How much of k it takes at a time, and of its cost (gemm_cost_model.h) at each
 * step: a skinny one that of each row. */
uint32_t gemm_kernel_k_tile(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id tile);
uint32_t gemm_kernel_cost_units(const struct tandem_gemm *gemm,
                                enum gemm_kernel_id tile);
/* Whether tile takes gemm, packed where it has to be (operand_packing.h):
 * skinny ones few rows or columns alone. */
bool gemm_kernel_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile);
/* Whether the tile, a plain one, reads elements one by one. */
bool gemm_kernel_reads_scalars(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id tile);
enum operand_id { OPERAND_A, OPERAND_B, OPERAND_COUNT };

/* Whether the operand does not lie along k. */
bool operand_is_mn_major(const struct tandem_gemm *gemm,
                         enum operand_id operand);
/* Whether a strict product takes it as it lies. */
bool operand_is_aligned(const struct tandem_gemm *gemm,
                        enum operand_id operand);
/* k of the last tiles, parted of them, is cut into splits chunks, at most;
 * skinny ones cut all or none. */
struct split_k {
    uint32_t splits, split_tiles; /* 1 and 0, or more of both */
};
#define ALL_GEMM_TILES UINT32_MAX
#define NO_SPLIT ((struct split_k){1, 0})

/* gemm is no empty one, and fits.  kept: where operands lie packed already, a
 * and b, NULL for those that do not; or NULL. */
void plan_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id tile, struct split_k division,
               const struct tandem_matrix *const *kept, uint32_t group_log2);

#endif
