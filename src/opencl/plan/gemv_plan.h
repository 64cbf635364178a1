/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of cl/gemm/gemv.cl: GEMMs with few rows or columns.  The longer operand
 * is the matrix; the rows of the other one are the vectors.  Pure functions;
 * any thread. */
#ifndef TANDEM_OPENCL_PLAN_GEMV_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMV_PLAN_H

#include "opencl/plan/gemm_plan.h"

/* How a work-group of cl/gemm/gemv.cl divides its matrix rows. */
struct gemv_shape {
    uint32_t rows_per_item; /* matrix rows of a work-item */
    uint32_t lanes;         /* work-items that share these rows along k */
    uint32_t k_unroll;      /* unrolled steps of k */
    uint32_t group_log2;
};

/* Work-group size of GEMV_1_MN_MAJOR. */
#define GEMV_MN_MAJOR_GROUP_LOG2 9u
#define GEMV_MN_MAJOR_GROUP (1u << GEMV_MN_MAJOR_GROUP_LOG2)

/* Returns the shape for a K-major or an MN-major matrix. */
const struct gemv_shape *gemv_shape(enum gemm_kernel_id kernel, bool mn_major);
bool gemv_matrix_is_mn_major(const struct tandem_gemm *gemm);
/* Returns true if the GEMM has few enough vectors, its leading dimensions are
 * in range and, for GEMV_1_MN_MAJOR, its matrix is MN-major. */
bool gemv_supports(const struct tandem_gemm *gemm, enum gemm_kernel_id kernel);
/* Returns the number of work-groups of one split. */
uint64_t gemv_groups(const struct tandem_gemm *gemm,
                     enum gemm_kernel_id kernel);
/* Returns the number of matrix rows of a work-group. */
uint32_t gemv_rows_per_group(const struct tandem_gemm *gemm,
                             enum gemm_kernel_id kernel);
/* Returns how much of k a work-group reads at a time. */
uint32_t gemv_k_tile(const struct tandem_gemm *gemm,
                     enum gemm_kernel_id kernel);
/* Appends the steps of a GEMV.  Uses the temporary buffer after its current
 * contents. */
void plan_gemv(struct launch_plan *plan, const struct tandem_gemm *gemm,
               enum gemm_kernel_id kernel, uint32_t splits,
               uint32_t group_log2);

#endif
