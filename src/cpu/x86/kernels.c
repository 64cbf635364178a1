/* SPDX-License-Identifier: Apache-2.0 */
/* The table of this instruction set. */
#include "config.h"

#include "cpu/x86/room.h"
#include "cpu/x86/vector.h"

void ISA(kernels)(struct kernels *table)
{
#ifdef __AVX512F__
    table->name = "avx512";
#else
    table->name = "avx2";
    transpose_kernels_avx2(table);
#endif
    ISA(elementwise_rows)(table->rows);
    ISA(optimizer_rows)(table->rows);
    ISA(reduce_kernels)(table);
    ISA(column_kernels)(table);
}
