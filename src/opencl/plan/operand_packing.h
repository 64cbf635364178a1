/* SPDX-License-Identifier: Apache-2.0 */
/* Operand packing: which operands of a GEMM are copied before the kernel reads
 * them, into padded lines (cl/gemm/pad_operands.cl) or into the blocks of the
 * tensor-core kernels (cl/nvidia/pack_operands.cl).  In masks of operands, a is
 * 1 << OPERAND_A and b is 1 << OPERAND_B.  Pure functions; any thread. */
#ifndef TANDEM_OPENCL_PLAN_OPERAND_PACKING_H
#define TANDEM_OPENCL_PLAN_OPERAND_PACKING_H

#include "opencl/plan/gemm_plan.h"

/* Returns a mask of the operands that must be packed for the kernel. */
uint32_t gemm_packed_operands(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel);
/* Returns true if the indices of the packing kernel fit in 32 bits. */
bool packing_fits_32bit_index(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel);
/* Returns the bytes that packing reads and writes.  Sets *out_launches to the
 * number of kernels. */
uint64_t packing_bytes(const struct tandem_gemm *gemm,
                       enum gemm_kernel_id kernel, uint32_t operands,
                       uint32_t *out_launches);
/* Returns a number that, with the extents of the operand, identifies the packed
 * layout. */
uint64_t packing_layout_id(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel, enum operand_id operand);
/* Appends the packing of `operands` into the temporary buffer.  Sets the
 * matrices of the packed operands in `out_packed`, a copy of `gemm`. */
void plan_operand_packing(struct launch_plan *plan,
                          const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel, uint32_t operands,
                          uint32_t group_log2, struct tandem_gemm *out_packed);

#endif
