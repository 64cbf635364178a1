/* SPDX-License-Identifier: Apache-2.0 */
/* Operand layouts of gemm_mma.cl and gemm_wgmma.cl in cl/nvidia, and plans of
 * the kernels that pack operands (cl/nvidia/pack_operands.cl).  Pure functions
 * that any thread may call. */
#ifndef TANDEM_OPENCL_PLAN_TENSOR_CORE_PACKING_H
#define TANDEM_OPENCL_PLAN_TENSOR_CORE_PACKING_H

#include "opencl/plan/gemm_plan.h"

/* Layouts in which tensor-core kernels read operands, and number formats of
 * packed operands. cl/nvidia/operand_formats.cl has the same values. */
enum operand_layout { LAYOUT_K_MAJOR, LAYOUT_MN_MAJOR, LAYOUT_PACKED };
enum packed_format {
    FORMAT_F16,
    FORMAT_BF16,
    FORMAT_TF32,
    FORMAT_FP16X3,
    FORMAT_3XTF32
};

/* Alignment of tensor maps in the temporary buffer, in bytes. */
#define TENSOR_MAP_ALIGN 64u

enum packed_format tensor_core_format(const struct tandem_gemm *gemm,
                                      enum gemm_kernel_id kernel);
/* Returns true if the kernel supports the dtypes, flags and k of the GEMM. */
bool tensor_core_supports(const struct tandem_gemm *gemm,
                          enum gemm_kernel_id kernel);
/* Returns the kernel's key, without the activation. */
struct kernel_key tensor_core_key(const struct tandem_gemm *gemm,
                                  enum gemm_kernel_id kernel);
/* Returns the size in bytes of the tensor maps for a launch of `groups`
 * work-groups, or 0 if the kernel reads no operand through tensor maps. */
uint64_t tensor_map_bytes(const struct kernel_key *key, uint64_t groups);

/* If two operands have the same sizes, and this function returns the same
 * number for both, their packed copies have the same layout. */
uint64_t packing_layout_id(const struct tandem_gemm *gemm,
                           enum gemm_kernel_id kernel, enum operand_id id);

/* The next functions implement operand_packing.h for tensor-core kernels. */
bool tensor_core_packs_operand(const struct tandem_gemm *gemm,
                               enum gemm_kernel_id kernel, enum operand_id id);
uint64_t tensor_core_packing_bytes(const struct tandem_gemm *gemm,
                                   enum gemm_kernel_id kernel,
                                   uint32_t operands, uint32_t *out_launches);
void tensor_core_plan_packing(struct launch_plan *plan,
                              const struct tandem_gemm *gemm,
                              enum gemm_kernel_id kernel, uint32_t operands,
                              struct tandem_gemm *out_packed);

#endif
