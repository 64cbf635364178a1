/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the kernel table of one instruction set; compiled once for each set. */
#include "config.h"

#include "cpu/kernels/vectorized_loops.h"
#include "cpu/simd/simd_kernels.h"

void ISA(kernels)(struct kernels *table)
{
    table->name = ISA_NAME;
#ifndef TANDEM_SIMD_AVX512 /* AVX-512 keeps the transpose kernel of AVX2. */
    ISA(transpose_kernels)(table);
#endif
    ISA(elementwise_kernels)(table);
    ISA(optimizer_kernels)(table);
    ISA(reduce_kernels)(table);
    ISA(column_kernels)(table);
    ISA(softmax_kernels)(table);
    ISA(window_kernels)(table);
    loop_kernels(table);
}
