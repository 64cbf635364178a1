/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD kernels of operators that slide windows over the input. */
#include "config.h"

#include "cpu/simd/simd_kernels.h"

/* Vectors of outputs that are computed together, so that each weight is loaded
 * once for all of them. */
#define VECTORS 8

/* Computes `count` vectors of weighted_sum from y[i] on.  The last vector has
 * n lanes, or all if n >= LANES.  Inlined for each constant `count`, so that
 * the sums stay in registers. */
static inline __attribute__((always_inline)) void
vectors_sum(float *y, const float *start, const float *const *x, const float *w,
            int64_t terms, int64_t i, const int count, int64_t n)
{
    vf sum[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < count; v++)
        sum[v] = vf_set(0);
    for (int64_t t = 0; t < terms; t++) {
        const float *from = x[t] + i;
        vf weight = vf_set(w[t]);
#pragma GCC unroll 8
        for (int v = 0; v < count; v++)
            sum[v] = vf_fma(
                weight, lanes_load(from + v * LANES, v < count - 1 ? LANES : n),
                sum[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < count; v++) {
        int64_t lanes = v < count - 1 ? LANES : n;
        float *to = y + i + v * LANES;
        vf first = start != NULL ? vf_set(*start) : lanes_load(to, lanes);
        lanes_store(to, lanes, first + sum[v]);
    }
}

static void weighted_sum(float *y, const float *start, const float *const *x,
                         const float *w, int64_t terms, int64_t n)
{
    int64_t i = 0;
    for (; i + VECTORS * LANES <= n; i += VECTORS * LANES)
        vectors_sum(y, start, x, w, terms, i, VECTORS, LANES);
    int64_t vectors = (n - i + LANES - 1) / LANES;
    int64_t last = n - i - (vectors - 1) * LANES;
    switch (vectors) {
    case 8:
        vectors_sum(y, start, x, w, terms, i, 8, last);
        break;
    case 7:
        vectors_sum(y, start, x, w, terms, i, 7, last);
        break;
    case 6:
        vectors_sum(y, start, x, w, terms, i, 6, last);
        break;
    case 5:
        vectors_sum(y, start, x, w, terms, i, 5, last);
        break;
    case 4:
        vectors_sum(y, start, x, w, terms, i, 4, last);
        break;
    case 3:
        vectors_sum(y, start, x, w, terms, i, 3, last);
        break;
    case 2:
        vectors_sum(y, start, x, w, terms, i, 2, last);
        break;
    case 1:
        vectors_sum(y, start, x, w, terms, i, 1, last);
        break;
    default:
        break;
    }
}

static void copy_rows(float *y, int64_t y_stride, const float *x,
                      int64_t x_stride, int64_t rows, int64_t n)
{
    for (int64_t row = 0; row < rows; row++, y += y_stride, x += x_stride)
        for (int64_t i = 0; i < n; i += LANES)
            lanes_store(y + i, n - i, lanes_load(x + i, n - i));
}

static void deinterleave(float *even, float *odd, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t rest = 2 * (n - i) - LANES;
        vf a = lanes_load(x + 2 * i, rest + LANES);
        vf b = rest > 0 ? lanes_load(x + 2 * i + LANES, rest) : a;
        lanes_store(even + i, n - i, vf_even(a, b));
        lanes_store(odd + i, n - i, vf_odd(a, b));
    }
}

void ISA(window_kernels)(struct kernels *table)
{
    table->weighted_sum = weighted_sum;
    table->copy_rows = copy_rows;
    table->deinterleave = deinterleave;
}
