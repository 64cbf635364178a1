/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cl/nvidia/gemm_mma.cl and gemm_wgmma.cl ask of their operands, and
 * cl/nvidia/pack_operands.cl, which makes them so.  Pure functions; any thread.
 */
#ifndef TANDEM_OPENCL_PLAN_TENSOR_CORE_PACKING_H
#define TANDEM_OPENCL_PLAN_TENSOR_CORE_PACKING_H

#include "opencl/plan/gemm_plan.h"

/* As in cl/nvidia/gemm_mma.cl. */
enum operand_layout { LAYOUT_K_MAJOR, LAYOUT_MN_MAJOR, LAYOUT_PACKED };
/* As in cl/nvidia/packed_layout.cl. */
enum packed_format {
    FORMAT_F16,
    FORMAT_BF16,
    FORMAT_TF32,
    FORMAT_FP16X3,
    FORMAT_3XTF32
};

/* What the tile multiplies gemm's operands as. */
enum packed_format tensor_core_format(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id tile);
/* Whether gemm's caller allows what the tile does, and it can count so far. */
bool tensor_core_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id tile);
/* What a route depends on here, beside extents and dtypes: six bits. */
uint32_t tensor_core_key_flags(const struct tandem_gemm *gemm);
/* The key of the tile's kernel, but for what is done last. */
uint64_t tensor_core_variant_key(const struct tandem_gemm *gemm,
                                 enum gemm_kernel_id tile);
/* What a kernel's tensor maps take of the temporary, at a multiple of
 * TENSOR_MAP_ALIGN, where so many groups are launched; 0: it has none. */
uint64_t tensor_map_bytes(uint64_t key, uint64_t groups);
#define TENSOR_MAP_ALIGN 64u
/* What operand_packing.h says of all tiles. */
uint32_t tensor_core_packed_operands(const struct tandem_gemm *gemm,
                                     enum gemm_kernel_id tile);
uint64_t tensor_core_packing_bytes(const struct tandem_gemm *gemm,
                                   enum gemm_kernel_id tile, uint32_t operands,
                                   uint32_t *out_launches);
uint64_t tensor_core_layout_id(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id tile,
                               enum operand_id operand);
void tensor_core_plan_packing(struct launch_plan *plan,
                              const struct tandem_gemm *gemm,
                              enum gemm_kernel_id tile, uint32_t operands,
                              struct tandem_gemm *out_packed);

#endif
