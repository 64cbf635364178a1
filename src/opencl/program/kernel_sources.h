/* SPDX-License-Identifier: Apache-2.0 */
/* The source text of the kernels in cl/, embedded by embed_kernels.sh. */
#ifndef TANDEM_OPENCL_PROGRAM_KERNEL_SOURCES_H
#define TANDEM_OPENCL_PROGRAM_KERNEL_SOURCES_H

extern const char kernel_transpose[];
extern const char kernel_elementwise[];
extern const char kernel_gather[];
extern const char kernel_gemm_epilogue[];
extern const char kernel_gemm_naive[];
extern const char kernel_norm[];
extern const char kernel_optimizer[];
extern const char kernel_split_k_fixup[];
extern const char kernel_gemm_simt[];
extern const char kernel_gemv[];
extern const char kernel_reduce[];
extern const char kernel_softmax[];
extern const char kernel_gemm_3xtf32[];
extern const char kernel_pack_operands[];
extern const char kernel_pad_operands[];
extern const char kernel_gemm_mma[];
extern const char kernel_gemm_wgmma[];

#endif
