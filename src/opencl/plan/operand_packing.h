/* SPDX-License-Identifier: Apache-2.0 */
/* Operand packing: decides which operands of a GEMM are copied before the GEMM
 * kernel reads them.  A copy has padded rows or columns
 * (cl/gemm/pad_operands.cl) or is divided into blocks for tensor cores
 * (cl/nvidia/pack_operands.cl).  In masks of operands, bit OPERAND_A stands for
 * `a` and bit OPERAND_B for `b`.  Pure functions that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_OPERAND_PACKING_H
#define TANDEM_OPENCL_PLAN_OPERAND_PACKING_H

#include "opencl/plan/gemm_plan.h"

/* Returns a mask of the operands that the kernel can read only when packed. */
uint32_t gemm_packed_operands(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel);
bool packing_fits_32bit_index(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel);
/* Returns the number of bytes that are read and written to pack `operands`.
 * Sets *out_launches to the number of packing kernels to launch. */
uint64_t packing_bytes(const struct tandem_gemm *gemm,
                       enum gemm_kernel_id kernel, uint32_t operands,
                       uint32_t *out_launches);
/* Plans kernels that pack `operands` into the temporary buffer.  `out_packed`
 * is a copy of `gemm`, in which the packed copies replace these operands. */
void plan_operand_packing(struct launch_plan *plan,
                          const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel, uint32_t operands,
                          uint32_t group_log2, struct tandem_gemm *out_packed);

#endif
