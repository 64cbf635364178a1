/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of our own GEMM kernels, and what the kernel selection needs to know
 * about them.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMM_PLAN_H

#include "opencl/plan/gemm_kernel_configs.h"
#include "opencl/plan/plan.h"

enum operand_id { OPERAND_A, OPERAND_B, OPERAND_COUNT };

/* Stream-K: k of the last `split_tiles` tiles is split into at most `splits`
 * ranges.  Without splits the values are 1 and 0, otherwise both are larger.
 * GEMV kernels split all tiles or none. */
struct split_k {
    uint32_t splits, split_tiles;
};
#define ALL_GEMM_TILES UINT32_MAX
#define NO_SPLIT ((struct split_k){1, 0})

/* Returns true if the kernel can compute the GEMM, after packing the operands
 * if necessary (operand_packing.h). */
bool gemm_kernel_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel);
/* Returns true if this is a SIMT kernel that reads single elements. */
bool gemm_kernel_reads_scalars(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel);
/* Returns the number of work-groups of one split. */
uint64_t gemm_kernel_groups(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id kernel);
uint32_t gemm_kernel_k_tile(const struct tandem_gemm *gemm,
                            enum gemm_kernel_id kernel);
/* Returns the factor of the cost of a k_tile (gemm_cost_model.h): the matrix
 * rows of a work-group for GEMV kernels, 1 for the others. */
uint32_t gemm_kernel_cost_units(const struct tandem_gemm *gemm,
                                enum gemm_kernel_id kernel);

bool operand_is_mn_major(const struct tandem_gemm *gemm,
                         enum operand_id operand);
/* Returns true if a 3xTF32 kernel can read the operand without packing. */
bool operand_is_aligned(const struct tandem_gemm *gemm,
                        enum operand_id operand);

/* Plans a GEMM that is not empty and that the kernel supports.  `packed` has
 * the packed copies of a and b, or NULL for operands without one; `packed`
 * itself may be NULL. */
void plan_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id kernel, struct split_k split_k,
               const struct tandem_matrix *const *packed, uint32_t group_log2);

#endif
