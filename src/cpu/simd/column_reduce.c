/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD column reductions, which combine the rows of each column.  A sum adds
 * each block of COLUMN_ROWS rows in f32, and adds the block sums in f64.  If a
 * block sum overflows f32, it is recomputed in f64. */
#include "config.h"

#include <math.h>

#include "cpu/simd/simd_kernels.h"

static inline void lanes_add(double *accumulators, int64_t n, vf x)
{
    if (n >= LANES) {
        vd_store(accumulators, vd_load(accumulators) + vd_low(x));
        accumulators += LANES / 2;
        vd_store(accumulators, vd_load(accumulators) + vd_high(x));
        return;
    }
    float lanes[LANES];
    vf_store(lanes, x);
    for (int64_t i = 0; i < n; i++)
        accumulators[i] += lanes[i];
}

/* Returns the end of the block of up to COLUMN_ROWS rows that begins at row
 * `first`. */
static inline int64_t block_end(int64_t first, int64_t rows)
{
    return rows - first < COLUMN_ROWS ? rows : first + COLUMN_ROWS;
}

#define EXTREME(name, raw)                                                     \
    static void column_##name(const float *x, int64_t rows, int64_t stride,    \
                              int64_t columns, float *accumulators)            \
    {                                                                          \
        for (int64_t done = 0; done < rows; done += COLUMN_ROWS) {             \
            int64_t end = block_end(done, rows);                               \
            for (int64_t i = 0; i < columns; i += LANES) {                     \
                int64_t n = columns - i;                                       \
                vf a = lanes_load(accumulators + i, n), nan = a;               \
                for (int64_t row = done; row < end; row++) {                   \
                    vf p = lanes_load(x + row * stride + i, n);                \
                    nan = vf_select(vf_nan(p), p, nan);                        \
                    a = raw(a, p);                                             \
                }                                                              \
                a = vf_select(vf_nan(nan), nan, a);                            \
                lanes_store(accumulators + i, n, a);                           \
            }                                                                  \
        }                                                                      \
    }

EXTREME(max, vf_max_raw)
EXTREME(min, vf_min_raw)

/* Multiplies four rows at a time.  The accumulators are loaded and stored once
 * for four rows, and memory is read in order. */
static void column_product(const float *x, int64_t rows, int64_t stride,
                           int64_t columns, float *accumulators)
{
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4, x += 4 * stride)
        for (int64_t i = 0; i < columns; i += LANES) {
            int64_t n = columns - i;
            vf a = lanes_load(x + i, n) * lanes_load(x + stride + i, n);
            vf b = lanes_load(x + 2 * stride + i, n) *
                   lanes_load(x + 3 * stride + i, n);
            vf old = lanes_load(accumulators + i, n);
            lanes_store(accumulators + i, n, old * (a * b));
        }
    for (; row < rows; row++, x += stride)
        for (int64_t i = 0; i < columns; i += LANES) {
            int64_t n = columns - i;
            vf old = lanes_load(accumulators + i, n);
            lanes_store(accumulators + i, n, old * lanes_load(x + i, n));
        }
}

/* Searches two vectors of columns at a time, to hide the latency of the
 * dependency between rows.  The last two vectors can overlap, because searching
 * a column twice gives the same result. */
#define FIND(name, beats)                                                      \
    static void column_##name(const float *x, int64_t rows, int64_t stride,    \
                              int64_t columns, float *best, float *found)      \
    {                                                                          \
        int64_t n = columns < LANES ? columns : LANES, last = columns - n;     \
        for (int64_t done = 0; done < rows; done += COLUMN_ROWS) {             \
            int64_t end = block_end(done, rows);                               \
            for (int64_t next = 0; next < columns; next += 2 * LANES) {        \
                int64_t i = next < last ? next : last;                         \
                int64_t j = next + LANES < last ? next + LANES : last;         \
                vf a = lanes_load(best + i, n), b = lanes_load(best + j, n);   \
                vf a_row = lanes_load(found + i, n);                           \
                vf b_row = lanes_load(found + j, n);                           \
                for (int64_t row = done; row < end; row++) {                   \
                    vf number = vf_set((float)row);                            \
                    vf p = lanes_load(x + row * stride + i, n);                \
                    vf q = lanes_load(x + row * stride + j, n);                \
                    vm p_wins = beats(p, a), q_wins = beats(q, b);             \
                    if (vm_bits(vm_or(p_wins, q_wins)) == 0)                   \
                        continue;                                              \
                    p_wins = vm_and(p_wins, vf_compare(a, a, EQ_OQ));          \
                    q_wins = vm_and(q_wins, vf_compare(b, b, EQ_OQ));          \
                    a = vf_select(p_wins, p, a);                               \
                    b = vf_select(q_wins, q, b);                               \
                    a_row = vf_select(p_wins, number, a_row);                  \
                    b_row = vf_select(q_wins, number, b_row);                  \
                }                                                              \
                lanes_store(best + i, n, a);                                   \
                lanes_store(best + j, n, b);                                   \
                lanes_store(found + i, n, a_row);                              \
                lanes_store(found + j, n, b_row);                              \
            }                                                                  \
        }                                                                      \
    }

/* ABOVE (x > y) and BELOW (x < y) are also true if x or y is NaN. */
#define ABOVE(x, y) vf_compare(x, y, NLE_UQ)
#define BELOW(x, y) vf_compare(y, x, NLE_UQ)

FIND(argmax, ABOVE)
FIND(argmin, BELOW)

/* Sums up to COLUMN_ROWS rows of up to LANES columns in f32. */
static inline vf lanes_sum(const float *x, int64_t rows, int64_t stride,
                           int64_t n)
{
    vf a = vf_set(0), b = a;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) {
        a += lanes_load(x + row * stride, n);
        b += lanes_load(x + (row + 1) * stride, n);
    }
    if (row < rows)
        a += lanes_load(x + row * stride, n);
    return a + b;
}

/* Sums a block of rows in f64, because its sum in f32 overflows. */
static void lanes_sum_wide(const float *x, int64_t rows, int64_t stride,
                           int64_t n, double *accumulators)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < n; i++)
            accumulators[i] += x[row * stride + i];
}

static void column_sum(const float *x, int64_t rows, int64_t stride,
                       int64_t columns, double *accumulators)
{
    vf largest = vf_set(3.402823466e38f);
    for (int64_t done = 0; done < rows; done += COLUMN_ROWS) {
        int64_t height = block_end(done, rows) - done;
        const float *block = x + done * stride;
        for (int64_t i = 0; i < columns; i += LANES) {
            int64_t n = columns - i < LANES ? columns - i : LANES;
            vf sum = lanes_sum(block + i, height, stride, n);
            vm wild = vf_compare(vf_abs(sum), largest, NLE_UQ);
            if (vm_bits(wild) == 0)
                lanes_add(accumulators + i, n, sum);
            else
                lanes_sum_wide(block + i, height, stride, n, accumulators + i);
        }
    }
}

static void column_sum_square(const float *x, int64_t rows, int64_t stride,
                              int64_t columns, double *accumulators)
{
    for (int64_t done = 0; done < rows; done += COLUMN_ROWS) {
        int64_t end = block_end(done, rows), i = 0;
        for (; i + LANES <= columns; i += LANES) {
            vd a = vd_load(accumulators + i);
            vd b = vd_load(accumulators + i + LANES / 2);
            for (int64_t row = done; row < end; row++) {
                vf p = vf_load(x + row * stride + i);
                vd low = vd_low(p), high = vd_high(p);
                a = vd_fma(low, low, a);
                b = vd_fma(high, high, b);
            }
            vd_store(accumulators + i, a);
            vd_store(accumulators + i + LANES / 2, b);
        }
        for (; i < columns; i++)
            for (int64_t row = done; row < end; row++) {
                double p = x[row * stride + i];
                accumulators[i] = fma(p, p, accumulators[i]);
            }
    }
}

static void column_exp(float *y, int64_t y_stride, const float *x, int64_t rows,
                       int64_t stride, int64_t columns, const float *m,
                       double *accumulators)
{
    for (int64_t done = 0; done < rows; done += COLUMN_ROWS) {
        int64_t end = block_end(done, rows);
        for (int64_t i = 0; i < columns; i += LANES) {
            int64_t n = columns - i;
            vf shift = lanes_load(m + i, n), sum = vf_set(0);
            for (int64_t row = done; row < end; row++) {
                vf p = lanes_load(x + row * stride + i, n);
                vf e = vf_exp(p - shift);
                sum += e;
                if (y != NULL)
                    lanes_store(y + row * y_stride + i, n, e);
            }
            lanes_add(accumulators + i, n, sum);
        }
    }
}

void ISA(column_kernels)(struct kernels *table)
{
    table->column_max = column_max;
    table->column_min = column_min;
    table->column_argmax = column_argmax;
    table->column_argmin = column_argmin;
    table->column_sum = column_sum;
    table->column_sum_square = column_sum_square;
    table->column_product = column_product;
    table->column_exp = column_exp;
}
