/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for cl/gemm/gemv.cl: products with few rows or columns.  Pure
 * functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMV_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMV_PLAN_H

#include "opencl/plan/gemm_plan.h"

/* How a variant is cut, as cl/gemm/gemv.cl's macros say. */
struct gemv_shape {
    uint32_t rows_per_item, lanes, k_unroll, group_log2;
};

/* Work-items of GEMV_1_MN_MAJOR's groups. */
#define GEMV_MN_MAJOR_GROUP_LOG2 9u
#define GEMV_MN_MAJOR_GROUP (1u << GEMV_MN_MAJOR_GROUP_LOG2)

/* outer: neighbours in the wide operand do not lie along k. */
const struct gemv_shape *gemv_shape(enum gemm_kernel_id tile, bool outer);
/* Whether that is how the wide operand lies. */
bool gemv_matrix_is_mn_major(const struct tandem_gemm *gemm);
/* Whether gemm is narrow enough, its leading dimensions are counted and, for
 * GEMV_1_MN_MAJOR, its wide operand lies across k. */
bool gemv_supports(const struct tandem_gemm *gemm, enum gemm_kernel_id tile);
/* Groups that each split takes; rows of the wide operand that each has, and
 * how much of k at a time. */
uint64_t gemv_groups(const struct tandem_gemm *gemm, enum gemm_kernel_id tile);
uint32_t gemv_rows_per_group(const struct tandem_gemm *gemm,
                             enum gemm_kernel_id tile);
uint32_t gemv_k_tile(const struct tandem_gemm *gemm, enum gemm_kernel_id tile);
/* Appends to plan, after what its temporary holds already. */
void plan_gemv(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id tile, uint32_t splits, uint32_t group_log2);

#endif
