/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that fill parts of the kernel table of one instruction set.  Each
 * file of this folder is compiled once for each instruction set. */
#ifndef TANDEM_CPU_SIMD_SIMD_KERNELS_H
#define TANDEM_CPU_SIMD_SIMD_KERNELS_H

#include "cpu/kernels/kernel_table.h"
#include "cpu/simd/vector.h"

void ISA(elementwise_kernels)(struct kernels *table);
void ISA(optimizer_kernels)(struct kernels *table);
void ISA(reduce_kernels)(struct kernels *table);
void ISA(column_kernels)(struct kernels *table);
void ISA(softmax_kernels)(struct kernels *table);
void ISA(window_kernels)(struct kernels *table);
void ISA(transpose_kernels)(struct kernels *table);

#endif
