/* SPDX-License-Identifier: Apache-2.0 */
/* Plans launches of Tandem's own GEMM kernels, and provides properties of these
 * kernels for kernel selection.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_GEMM_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMM_PLAN_H

#include "opencl/plan/gemm_kernel_configs.h"
#include "opencl/plan/plan.h"
#include "gemm/patches.cl"

enum operand_id { OPERAND_A, OPERAND_B, OPERAND_COUNT };

/* Returns true if the kernel can compute the GEMM, after packing the operands
 * if necessary (operand_packing.h). */
bool gemm_kernel_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel);
/* Returns true if `kernel` is SIMT and reads an operand without vec4. */
bool gemm_kernel_reads_scalars(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel);
/* How a kernel divides a GEMM among work-groups. */
struct gemm_tiling {
    uint64_t groups; /* number of work-groups if k is not split */
    uint32_t k_tile; /* elements along k per iteration */
    /* Matrix rows per work-group of a GEMV kernel, or 1 for other kernels.
     * gemm_cost_model.h multiplies the cost of a k_tile by this number. */
    uint32_t cost_units;
    bool matrix_is_mn_major; /* the matrix of a GEMV kernel is MN-major */
};
struct gemm_tiling gemm_kernel_tiling(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel);

/* Returns true if 3xTF32 kernels can read the operand without packing. */
bool operand_is_aligned(const struct tandem_gemm *gemm,
                        enum operand_id operand);

/* Plans a non-empty GEMM that the kernel supports.  If `packed` is not NULL,
 * packed[i] is a packed copy of operand i, or NULL if there is no copy. */
void plan_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id kernel, struct split_k split_k,
               const struct tandem_matrix *const *packed, uint32_t group_log2);

/* Patches of a tensor as the operand `b` of a GEMM; see cl/gemm/patches.cl. */
struct gemm_patches {
    const struct tandem_tensor_desc *tensor;
    struct patches_params params;
};
/* Returns true if `b` can be patches. */
bool gemm_kernel_reads_patches(enum gemm_kernel_id kernel);
/* Returns true if the key is that of such a kernel. */
bool gemm_key_reads_patches(const struct kernel_key *key);

/* What a GEMM reads besides the matrices of struct tandem_gemm. */
struct gemm_sources {
    /* Replaces `b`, of which the offset and the batch stride still count. */
    const struct gemm_patches *patches;
    /* What beta multiplies instead of c, with the strides of c; not in the
     * buffer of c. */
    const struct tandem_tensor_desc *old;
};
/* Adds a GEMM to a plan, like plan_gemm.  `sources` is NULL or may contain NULL
 * pointers. */
void plan_add_gemm(struct launch_plan *plan, const struct tandem_gemm *gemm,
                   const struct gemm_sources *sources,
                   const struct gemm_selection *selection,
                   const struct tandem_matrix *const *packed,
                   uint32_t group_log2);

#endif
