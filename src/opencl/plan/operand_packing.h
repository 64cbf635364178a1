/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a product's operands before a tile reads them: nothing, a
 * copy whose lines are aligned and padded (cl/gemm/pad_operands.cl), or the
 * blocks that cl/nvidia/gemm_mma.cl takes (cl/nvidia/pack_operands.cl).  Pure
 * functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_OPERAND_PACKING_H
#define TANDEM_OPENCL_PLAN_OPERAND_PACKING_H

#include "opencl/plan/gemm_plan.h"

/* Bits of the operands that the tile takes packed alone, a's being the first.
 * 1 << OPERAND_A, 1 << OPERAND_B. */
uint32_t gemm_packed_operands(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile);
/* Whether the kernel that makes them so counts as far. */
bool packing_fits_32bit_index(const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile);
/* Bytes that packing such operands moves, and the launches that it takes. */
uint64_t packing_bytes(const struct tandem_gemm *gemm, enum gemm_kernel_id tile,
                       uint32_t operands, uint32_t *out_launches);
/* A number for how it lies then, beside its extents. */
uint64_t packing_layout_id(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id tile, enum operand_id operand);
/* Packs them after what the plan's temporary holds; out_packed, which is gemm
 * before, has them as the tile reads them. */
void plan_operand_packing(struct launch_plan *plan,
                          const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile, uint32_t operands,
                          uint32_t group_log2, struct tandem_gemm *out_packed);

#endif
