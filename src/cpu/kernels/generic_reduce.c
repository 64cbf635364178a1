/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in plain C, which run on every machine: reductions, softmax and norms
 * with sums in f64, transposes, and conversions of 16-bit types. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "common/float16.h"
#include "cpu/kernels/kernel_table.h"
#include "cpu/kernels/vectorized_loops.h"

/* `larger` and `smaller` propagate NaN.  They have no branches, so that the
 * compiler can vectorize loops with them. */
static inline float larger(float a, float b)
{
    return ((a > b) | (a != a)) ? a : b;
}

static inline float smaller(float a, float b)
{
    return ((a < b) | (a != a)) ? a : b;
}

static double row_sum(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static double row_sum_square(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static double row_dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double row_sum_exp(const float *x, int64_t n, float m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - m);
    return sum;
}

static int64_t row_find(const float *x, int64_t n, float value)
{
    int64_t i = 0;
    if (isnan(value))
        while (i < n && !isnan(x[i]))
            i++;
    else
        while (i < n && x[i] != value)
            i++;
    return i;
}

static double row_exp(float *y, const float *x, int64_t n, float m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = exp((double)x[i] - m);
        sum += e;
        y[i] = (float)e;
    }
    return sum;
}

static void row_scale(float *y, const float *x, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * scale;
}

static void row_shift(float *y, const float *x, int64_t n, float m, float l)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - m) - l;
}

static double row_square_about(const float *x, int64_t n, float m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float d = x[i] - m;
        sum += (double)d * d;
    }
    return sum;
}

static void row_norm(float *y, const float *x, int64_t n, float m, float factor,
                     const float *scale, const float *bias)
{
    for (int64_t i = 0; i < n; i++) {
        float h = (x[i] - m) * factor;
        y[i] = bias != NULL ? fmaf(h, scale[i], bias[i]) : h * scale[i];
    }
}

#define COLUMN(name, type, expression)                                         \
    static void column_##name(const float *x, int64_t rows, int64_t stride,    \
                              int64_t columns, type *accumulators)             \
    {                                                                          \
        for (int64_t row = 0; row < rows; row++, x += stride)                  \
            for (int64_t i = 0; i < columns; i++) {                            \
                type a = accumulators[i];                                      \
                accumulators[i] = expression;                                  \
            }                                                                  \
    }

COLUMN(max, float, larger(a, x[i]))
COLUMN(min, float, smaller(a, x[i]))
COLUMN(product, float, a *x[i])
COLUMN(sum, double, a + x[i])
COLUMN(sum_square, double, a + (double)x[i] * x[i])

/* Treats a row as WIDTH columns: reduces each column, then the results. */
#define WIDTH 64
#define ROW_EXTREME(name, better)                                              \
    static float row_##name(const float *x, int64_t n)                         \
    {                                                                          \
        float values[WIDTH], value = x[0];                                     \
        int64_t rows = n / WIDTH;                                              \
        for (int64_t i = rows * WIDTH; i < n; i++)                             \
            value = better(value, x[i]);                                       \
        if (rows == 0)                                                         \
            return value;                                                      \
        memcpy(values, x, sizeof values);                                      \
        column_##name(x + WIDTH, rows - 1, WIDTH, WIDTH, values);              \
        for (int64_t i = 0; i < WIDTH; i++)                                    \
            value = better(value, values[i]);                                  \
        return value;                                                          \
    }

/* Multiplies the elements of a row into WIDTH partial products, so that the
 * compiler can vectorize the loop. */
static float row_product(const float *x, int64_t n)
{
    float values[WIDTH], product = 1.0f;
    int64_t rows = n / WIDTH;
    for (int64_t i = 0; i < WIDTH; i++)
        values[i] = 1.0f;
    column_product(x, rows, WIDTH, WIDTH, values);
    for (int64_t i = rows * WIDTH; i < n; i++)
        product *= x[i];
    if (rows == 0)
        return product;
    for (int64_t i = 0; i < WIDTH; i++)
        product *= values[i];
    return product;
}

ROW_EXTREME(max, larger)
ROW_EXTREME(min, smaller)

#define COLUMN_FIND(name, at_least)                                            \
    static void column_##name(const float *x, int64_t rows, int64_t stride,    \
                              int64_t columns, float *restrict best,           \
                              float *restrict found)                           \
    {                                                                          \
        for (int64_t row = 0; row < rows; row++, x += stride) {                \
            float number = (float)row;                                         \
            for (int64_t i = 0; i < columns; i++) {                            \
                float value = x[i], old = best[i], last = found[i];            \
                bool wins = (old == old) & !(old at_least value);              \
                best[i] = wins ? value : old;                                  \
                found[i] = wins ? number : last;                               \
            }                                                                  \
        }                                                                      \
    }

COLUMN_FIND(argmax, >=)
COLUMN_FIND(argmin, <=)

static void column_exp(float *y, int64_t y_stride, const float *x, int64_t rows,
                       int64_t stride, int64_t columns, const float *m,
                       double *accumulators)
{
    for (int64_t row = 0; row < rows; row++, x += stride)
        for (int64_t i = 0; i < columns; i++) {
            double e = exp((double)x[i] - m[i]);
            accumulators[i] += e;
            if (y != NULL)
                y[row * y_stride + i] = (float)e;
        }
}

static void transpose4(uint32_t *y, int64_t y_stride, const uint32_t *x,
                       int64_t x_stride, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * y_stride + i] = x[i * x_stride + j];
}

/* ---- windows ------------------------------------------------------------ */

/* Computes `lanes` elements of weighted_sums from row r and element i on.
 * Inlined for constant numbers of lanes, so that the compiler can use vectors.
 */
static inline __attribute__((always_inline)) void
lanes_sum(const struct weighted_sums *sums, int64_t r, int64_t i,
          const int lanes)
{
    float *y = sums->y + r * sums->y_stride + i, sum[32] = {0};
    const float *w = sums->w + r * sums->w_stride;
    for (int64_t t = 0; t < sums->terms; t++)
        for (int j = 0; j < lanes; j++)
            sum[j] += w[t] * sums->x[t][i + j];
    for (int j = 0; j < lanes; j++)
        y[j] =
            sum[j] +
            (sums->start != NULL ? sums->start[r * sums->start_stride] : y[j]);
}

static void weighted_sums(const struct weighted_sums *sums)
{
    for (int64_t r = 0; r < sums->rows; r++) {
        int64_t i = 0;
        for (; i + 32 <= sums->n; i += 32)
            lanes_sum(sums, r, i, 32);
        for (; i + 8 <= sums->n; i += 8)
            lanes_sum(sums, r, i, 8);
        for (; i < sums->n; i++)
            lanes_sum(sums, r, i, 1);
    }
}

static void row_maxima(float *y, const float *const *x, int64_t terms,
                       int64_t n, bool accumulates)
{
    for (int64_t i = 0; i < n; i++) {
        float best = accumulates ? y[i] : -INFINITY;
        for (int64_t t = 0; t < terms; t++)
            best = !(x[t][i] <= best) && best == best ? x[t][i] : best;
        y[i] = best;
    }
}

static void copy_rows(float *y, int64_t y_stride, const float *x,
                      int64_t x_stride, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++)
        memmove(y + i * y_stride, x + i * x_stride, (size_t)n * sizeof *y);
}

static void deinterleave(float *even, float *odd, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        even[i] = x[2 * i];
        odd[i] = x[2 * i + 1];
    }
}

/* ---- 16 bits ------------------------------------------------------------ */

#define ROW16(name, to_type, from_type, convert)                               \
    static void name(to_type *y, const from_type *x, int64_t n)                \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            y[i] = convert(x[i]);                                              \
    }

ROW16(f16_widen, float, uint16_t, f16_value)
ROW16(bf16_widen, float, uint16_t, bf16_value)
ROW16(f16_narrow, uint16_t, float, f16_round)
ROW16(bf16_narrow, uint16_t, float, bf16_round)

void kernels_generic(struct kernels *table)
{
    *table = (struct kernels){
        .name = "generic",
        .max = row_max,
        .min = row_min,
        .sum = row_sum,
        .sum_square = row_sum_square,
        .product = row_product,
        .dot = row_dot,
        .sum_exp = row_sum_exp,
        .find = row_find,
        .exp_row = row_exp,
        .scale_row = row_scale,
        .shift_row = row_shift,
        .square_about = row_square_about,
        .norm_row = row_norm,
        .weighted_sums = weighted_sums,
        .row_maxima = row_maxima,
        .copy_rows = copy_rows,
        .deinterleave = deinterleave,
        .column_max = column_max,
        .column_min = column_min,
        .column_argmax = column_argmax,
        .column_argmin = column_argmin,
        .column_sum = column_sum,
        .column_sum_square = column_sum_square,
        .column_product = column_product,
        .column_exp = column_exp,
        .transpose4 = transpose4,
        .f16_widen = f16_widen,
        .bf16_widen = bf16_widen,
        .f16_narrow = f16_narrow,
        .bf16_narrow = bf16_narrow,
    };
    generic_elementwise_kernels(table->rows);
    loop_kernels(table);
}
