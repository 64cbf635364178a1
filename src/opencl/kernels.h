/* SPDX-License-Identifier: Apache-2.0 */
/* The text of cl/, embedded by embed.sh. */
#ifndef TANDEM_OPENCL_KERNELS_H
#define TANDEM_OPENCL_KERNELS_H

extern const char kernel_common[];
extern const char kernel_copy[];
extern const char kernel_elementwise[];
extern const char kernel_gather[];
extern const char kernel_gemm[];
extern const char kernel_norm[];
extern const char kernel_optimizer[];
extern const char kernel_join[];
extern const char kernel_product[];
extern const char kernel_skinny[];
extern const char kernel_reduce[];
extern const char kernel_softmax[];
extern const char kernel_strict[];
extern const char kernel_pack[];
extern const char kernel_pad[];
extern const char kernel_tensor[];
extern const char kernel_wgmma[];

#endif
