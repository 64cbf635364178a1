/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD transpose of 4-byte elements, in squares of LANES x LANES elements.
 * AVX-512 uses the kernel of AVX2. */
#ifndef TANDEM_SIMD_AVX512
#include "config.h"

#include <string.h>

#include "cpu/simd/simd_kernels.h"

static inline void square_transpose(uint32_t *y, int64_t y_stride,
                                    const uint32_t *x, int64_t x_stride)
{
    vf rows[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
        rows[i] = vf_load((const float *)(const void *)(x + i * x_stride));
    vf_transpose(rows);
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
        vf_store((float *)(void *)(y + i * y_stride), rows[i]);
}

/* If the row stride is a power of two, rows map to the same cache sets.  A
 * matrix of at most TILE x TILE elements is therefore first copied to a padded
 * buffer. */
#define TILE 64
#define TILE_STRIDE (TILE + 8)

static void transpose4(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns)
{
    uint32_t tile[TILE * TILE_STRIDE];
    int64_t full_rows = rows & ~(int64_t)(LANES - 1);
    int64_t full_columns = columns & ~(int64_t)(LANES - 1);
    if (rows <= TILE && columns <= TILE) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(tile + i * TILE_STRIDE, x + i * x_stride,
                   (size_t)columns * sizeof *tile);
        x = tile;
        x_stride = TILE_STRIDE;
    }
    for (int64_t j = 0; j < full_columns; j += LANES)
        for (int64_t i = 0; i < full_rows; i += LANES)
            square_transpose(y + j * y_stride + i, y_stride,
                             x + i * x_stride + j, x_stride);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = j < full_columns ? full_rows : 0; i < rows; i++)
            y[j * y_stride + i] = x[i * x_stride + j];
}

void ISA(transpose_kernels)(struct kernels *table)
{
    table->transpose4 = transpose4;
}
#endif
