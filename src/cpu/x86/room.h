/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room give its tables, for each instruction set. */
#ifndef TANDEM_CPU_X86_ROOM_H
#define TANDEM_CPU_X86_ROOM_H

#include "cpu/kernels.h"

void elementwise_rows_avx2(row_fn *rows);
void elementwise_rows_avx512(row_fn *rows);
void optimizer_rows_avx2(row_fn *rows);
void optimizer_rows_avx512(row_fn *rows);
void reduce_kernels_avx2(struct kernels *table);
void reduce_kernels_avx512(struct kernels *table);
void column_kernels_avx2(struct kernels *table);
void column_kernels_avx512(struct kernels *table);
void transpose_kernels_avx2(struct kernels *table);

#endif
