/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a matrix and a vector.  What an element of the result is made
 * of, and in which order, does not depend on the block that it is computed in.
 */
#include "config.h"

#include "cpu/simd/room.h"
#include "cpu/simd/vector.h"

/* Rows, or vectors of columns, whose sums are in registers, which takes loops
 * that are unrolled. */
#define BLOCK 4
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

static inline vf lanes_load(const float *p, int64_t n)
{
    return n >= LANES ? vf_load(p) : vf_load_part(p, n, vf_set(0));
}

/* ---- along the rows ----------------------------------------------------- */

/* Adds the sums of the first rows of a block, which all take part, as many
 * times as it takes. */
static inline void block_rows(float *y, const float *const w[BLOCK],
                              int64_t rows, int64_t n, const float *x)
{
    vf even[BLOCK], odd[BLOCK];
    float sums[BLOCK];
    int64_t i = 0;
    UNROLL for (int r = 0; r < BLOCK; r++)
        even[r] = odd[r] = vf_set(0);
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vf first = vf_load(x + i), second = vf_load(x + i + LANES);
        UNROLL for (int r = 0; r < BLOCK; r++)
        {
            even[r] = vf_fma(vf_load(w[r] + i), first, even[r]);
            odd[r] = vf_fma(vf_load(w[r] + i + LANES), second, odd[r]);
        }
    }
    for (; i < n; i += LANES) {
        vf last = lanes_load(x + i, n - i);
        UNROLL for (int r = 0; r < BLOCK; r++)
            even[r] = vf_fma(lanes_load(w[r] + i, n - i), last, even[r]);
    }
    vf_sum4(sums, vf_add(even[0], odd[0]), vf_add(even[1], odd[1]),
            vf_add(even[2], odd[2]), vf_add(even[3], odd[3]));
    for (int64_t r = 0; r < rows; r++)
        y[r] += sums[r];
}

static void rows_dot(float *y, const float *w, int64_t stride, int64_t rows,
                     int64_t n, const float *x)
{
    for (; rows >= BLOCK; rows -= BLOCK, w += BLOCK * stride, y += BLOCK) {
        const float *const own[BLOCK] = {w, w + stride, w + 2 * stride,
                                         w + 3 * stride};
        block_rows(y, own, BLOCK, n, x);
    }
    if (rows > 0) {
        const float *const own[BLOCK] = {w, w + (rows > 1 ? stride : 0),
                                         w + (rows > 2 ? 2 * stride : 0), w};
        block_rows(y, own, rows, n, x);
    }
}

/* ---- across the rows ---------------------------------------------------- */

/* Adds rows of vectors full vectors. */
static inline void block_columns(float *y, const float *w, int64_t stride,
                                 int64_t rows, int vectors, const float *x)
{
    vf even[BLOCK], odd[BLOCK];
    int64_t row = 0;
    UNROLL for (int v = 0; v < vectors; v++)
        even[v] = odd[v] = vf_set(0);
    for (; row + 2 <= rows; row += 2, w += 2 * stride) {
        vf first = vf_set(x[row]), second = vf_set(x[row + 1]);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            even[v] = vf_fma(vf_load(w + v * LANES), first, even[v]);
            odd[v] = vf_fma(vf_load(w + stride + v * LANES), second, odd[v]);
        }
    }
    UNROLL for (int v = 0; v < vectors; v++)
    {
        if (row < rows)
            even[v] = vf_fma(vf_load(w + v * LANES), vf_set(x[row]), even[v]);
        vf_store(y + v * LANES, vf_add(vf_load(y + v * LANES),
                                       vf_add(even[v], odd[v])));
    }
}

/* Adds rows of n < LANES columns. */
static void part_columns(float *y, const float *w, int64_t stride,
                         int64_t rows, int64_t n, const float *x)
{
    vf even = vf_set(0), odd = even;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2, w += 2 * stride) {
        even = vf_fma(lanes_load(w, n), vf_set(x[row]), even);
        odd = vf_fma(lanes_load(w + stride, n), vf_set(x[row + 1]), odd);
    }
    if (row < rows)
        even = vf_fma(lanes_load(w, n), vf_set(x[row]), even);
    vf_store_part(y, n, vf_add(lanes_load(y, n), vf_add(even, odd)));
}

static void columns_dot(float *y, const float *w, int64_t stride, int64_t rows,
                        int64_t columns, const float *x)
{
    int64_t i = 0;
    for (; i + BLOCK * LANES <= columns; i += BLOCK * LANES)
        block_columns(y + i, w + i, stride, rows, BLOCK, x);
    for (; i + LANES <= columns; i += LANES)
        block_columns(y + i, w + i, stride, rows, 1, x);
    if (i < columns)
        part_columns(y + i, w + i, stride, rows, columns - i, x);
}

void ISA(product_kernels)(struct kernels *table)
{
    table->rows_dot = rows_dot;
    table->columns_dot = columns_dot;
}
