/* SPDX-License-Identifier: Apache-2.0 */
/* Plans GEMMs with few rows or columns, which cl/gemm/gemv.cl computes.  The
 * operand with more rows is the matrix; the rows of the other operand are the
 * vectors.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_GEMV_PLAN_H
#define TANDEM_OPENCL_PLAN_GEMV_PLAN_H

#include "opencl/plan/gemm_plan.h"

/* Work-group size of GEMV_1_MN_MAJOR. */
#define GEMV_MN_MAJOR_GROUP_LOG2 9u
#define GEMV_MN_MAJOR_GROUP (1u << GEMV_MN_MAJOR_GROUP_LOG2)

/* Returns true if `kernel` supports the GEMM's number of vectors and leading
 * dimensions.  GEMV_1_MN_MAJOR also needs an MN-major matrix. */
bool gemv_supports(const struct tandem_gemm *gemm, enum gemm_kernel_id kernel);
/* Implements gemm_kernel_tiling() for GEMV kernels. */
struct gemm_tiling gemv_tiling(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel);
/* Plans the kernels of a GEMV.  Partial sums follow the temp_bytes bytes that
 * the plan has already reserved in the temporary buffer. */
void plan_gemv(struct launch_plan *plan, const struct tandem_gemm *gemm,
               const struct tandem_tensor_desc *old, enum gemm_kernel_id kernel,
               uint32_t splits, uint32_t group_log2);

#endif
