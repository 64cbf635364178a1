/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD kernels of operators that slide windows over the input. */
#include "config.h"

#include <math.h>

#include "cpu/simd/simd_kernels.h"

/* Sums that are computed together: of ROW_VECTORS vectors of one row, or of
 * VECTORS vectors of up to 8 rows (4 with AVX2, which has 16 registers). */
#define ROW_VECTORS 8
#define VECTORS 3
/* Vectors of maxima that are computed together. */
#define MAX_VECTORS 4
/* Columns that are computed for all rows before the next ones, so that the
 * elements of `x` stay in the L1 cache. */
#define COLUMNS (2 * VECTORS * LANES)

/* Computes `rows` rows of `vectors` vectors from row r and element i on.  The
 * last vector has n lanes, or all if n >= LANES.  Inlined for constant `rows`
 * and `vectors`, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void
block_sum(const struct weighted_sums *s, int64_t r, int64_t i, int64_t n,
          const int rows, const int vectors)
{
    vf sum[8][ROW_VECTORS];
    const float *w = s->w + r * s->w_stride, *const *x = s->x;
#pragma GCC unroll 8
    for (int j = 0; j < rows; j++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[j][v] = vf_set(0);
    for (int64_t t = 0; t < s->terms; t++) {
        vf from[ROW_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            from[v] =
                lanes_load(x[t] + i + v * LANES, v < vectors - 1 ? LANES : n);
#pragma GCC unroll 8
        for (int j = 0; j < rows; j++) {
            vf weight = vf_set(w[j * s->w_stride + t]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[j][v] = vf_fma(weight, from[v], sum[j][v]);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < rows; j++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            int64_t lanes = v < vectors - 1 ? LANES : n;
            float *y = s->y + (r + j) * s->y_stride + i + v * LANES;
            vf start = s->start != NULL
                           ? vf_set(s->start[(r + j) * s->start_stride])
                           : lanes_load(y, lanes);
            lanes_store(y, lanes, start + sum[j][v]);
        }
}

/* Computes the sums of one row. */
static void row_sums(const struct weighted_sums *s)
{
    int64_t i = 0;
    for (; i + ROW_VECTORS * LANES <= s->n; i += ROW_VECTORS * LANES)
        block_sum(s, 0, i, LANES, 1, ROW_VECTORS);
    int64_t vectors = (s->n - i + LANES - 1) / LANES;
    int64_t last = s->n - i - (vectors - 1) * LANES;
    switch (vectors) {
#define CASE(count)                                                            \
    case count:                                                                \
        block_sum(s, 0, i, last, 1, count);                                    \
        break;
        CASE(8)
        CASE(7)
        CASE(6)
        CASE(5)
        CASE(4)
        CASE(3)
        CASE(2)
        CASE(1)
#undef CASE
    default:
        break;
    }
}

/* Computes elements `first` to `end` - 1 of a constant number of rows. */
#define ROW_GROUP_SUMS(rows)                                                   \
    static void row_group_sums_##rows(const struct weighted_sums *s,           \
                                      int64_t r, int64_t first, int64_t end)   \
    {                                                                          \
        int64_t i = first;                                                     \
        for (; i + VECTORS * LANES <= end; i += VECTORS * LANES)               \
            block_sum(s, r, i, LANES, rows, VECTORS);                          \
        if (end - i > 2 * LANES)                                               \
            block_sum(s, r, i, end - i - 2 * LANES, rows, 3);                  \
        else if (end - i > LANES)                                              \
            block_sum(s, r, i, end - i - LANES, rows, 2);                      \
        else if (end > i)                                                      \
            block_sum(s, r, i, end - i, rows, 1);                              \
    }

#if LANES != 8
ROW_GROUP_SUMS(8)
#endif
ROW_GROUP_SUMS(4)
ROW_GROUP_SUMS(2)
ROW_GROUP_SUMS(1)

static void weighted_sums(const struct weighted_sums *s)
{
    if (s->rows == 1) {
        row_sums(s);
        return;
    }
    for (int64_t i = 0; i < s->n; i += COLUMNS) {
        int64_t r = 0, end = i + COLUMNS < s->n ? i + COLUMNS : s->n;
#if LANES != 8
        for (; r + 8 <= s->rows; r += 8)
            row_group_sums_8(s, r, i, end);
#endif
        for (; r + 4 <= s->rows; r += 4)
            row_group_sums_4(s, r, i, end);
        for (; r + 2 <= s->rows; r += 2)
            row_group_sums_2(s, r, i, end);
        if (r < s->rows)
            row_group_sums_1(s, r, i, end);
    }
}

/* Computes `vectors` vectors of row_maxima from y[i] on.  The vectors have n
 * lanes, or all if n >= LANES. */
static inline __attribute__((always_inline)) void
vectors_max(float *y, const float *const *x, int64_t terms, int64_t i,
            int64_t n, bool accumulates, const int vectors)
{
    vf best[MAX_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        best[v] =
            accumulates ? lanes_load(y + i + v * LANES, n) : vf_set(-INFINITY);
    for (int64_t t = 0; t < terms; t++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            best[v] = vf_max(best[v], lanes_load(x[t] + i + v * LANES, n));
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        lanes_store(y + i + v * LANES, n, best[v]);
}

static void row_maxima(float *y, const float *const *x, int64_t terms,
                       int64_t n, bool accumulates)
{
    int64_t i = 0;
    for (; i + MAX_VECTORS * LANES <= n; i += MAX_VECTORS * LANES)
        vectors_max(y, x, terms, i, LANES, accumulates, MAX_VECTORS);
    for (; i < n; i += LANES)
        vectors_max(y, x, terms, i, n - i, accumulates, 1);
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
    table->weighted_sums = weighted_sums;
    table->sums_are_fast = true;
    table->row_maxima = row_maxima;
    table->copy_rows = copy_rows;
    table->deinterleave = deinterleave;
}
