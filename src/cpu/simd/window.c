/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD kernels of operators that slide windows over the input. */
#include "config.h"

#include "cpu/simd/simd_kernels.h"

/* Vectors of outputs that are computed together, so that each weight is loaded
 * once for all of them. */
#define VECTORS 8

/* Adds the weighted sums to `count` vectors from y[i] on.  The last vector has
 * n lanes, or all if n >= LANES.  Inlined for each constant `count`, so that
 * the sums stay in registers. */
static inline __attribute__((always_inline)) void
vectors_sum(float *y, const float *const *x, const float *w, int64_t terms,
            int64_t i, const int count, int64_t n)
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
        lanes_store(to, lanes, lanes_load(to, lanes) + sum[v]);
    }
}

static void weighted_sum(float *y, const float *const *x, const float *w,
                         int64_t terms, int64_t n)
{
    int64_t i = 0;
    for (; i + VECTORS * LANES <= n; i += VECTORS * LANES)
        vectors_sum(y, x, w, terms, i, VECTORS, LANES);
    int64_t vectors = (n - i + LANES - 1) / LANES;
    int64_t last = n - i - (vectors - 1) * LANES;
    switch (vectors) {
    case 8:
        vectors_sum(y, x, w, terms, i, 8, last);
        break;
    case 7:
        vectors_sum(y, x, w, terms, i, 7, last);
        break;
    case 6:
        vectors_sum(y, x, w, terms, i, 6, last);
        break;
    case 5:
        vectors_sum(y, x, w, terms, i, 5, last);
        break;
    case 4:
        vectors_sum(y, x, w, terms, i, 4, last);
        break;
    case 3:
        vectors_sum(y, x, w, terms, i, 3, last);
        break;
    case 2:
        vectors_sum(y, x, w, terms, i, 2, last);
        break;
    case 1:
        vectors_sum(y, x, w, terms, i, 1, last);
        break;
    default:
        break;
    }
}

void ISA(window_kernels)(struct kernels *table)
{
    table->weighted_sum = weighted_sum;
}
