/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes of 4-byte elements, 8 x 8 at a time in registers. */
#include "config.h"

#include <immintrin.h>
#include <string.h>

#include "cpu/x86/room.h"

static inline __m256 row_load(const uint32_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}

static inline void row_store(uint32_t *p, __m256 x)
{
    _mm256_storeu_ps((float *)(void *)p, x);
}

static inline void transpose_8x8(uint32_t *y, int64_t y_stride,
                                 const uint32_t *x, int64_t x_stride)
{
    __m256 r[8], s[8];
    for (int i = 0; i < 8; i++)
        r[i] = row_load(x + i * x_stride);
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        row_store(y + i * y_stride,
                  _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        row_store(y + (i + 4) * y_stride,
                  _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* Rows that are a power of two apart fall on the same lines of the cache: a
 * tile is first copied together, whole cache lines at a time. */
#define TILE 64
#define TILE_STRIDE (TILE + 8)

static void transpose4(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns)
{
    uint32_t tile[TILE * TILE_STRIDE];
    int64_t full_rows = rows & ~(int64_t)7;
    int64_t full_columns = columns & ~(int64_t)7;
    if (rows <= TILE && columns <= TILE) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(tile + i * TILE_STRIDE, x + i * x_stride,
                   (size_t)columns * sizeof *tile);
        x = tile;
        x_stride = TILE_STRIDE;
    }
    for (int64_t j = 0; j < full_columns; j += 8)
        for (int64_t i = 0; i < full_rows; i += 8)
            transpose_8x8(y + j * y_stride + i, y_stride, x + i * x_stride + j,
                          x_stride);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = j < full_columns ? full_rows : 0; i < rows; i++)
            y[j * y_stride + i] = x[i * x_stride + j];
}

void transpose_kernels_avx2(struct kernels *table)
{
    table->transpose4 = transpose4;
}
