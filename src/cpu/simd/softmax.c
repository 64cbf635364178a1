/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD softmax of short rows, whose elements stay in registers. */
#include "config.h"

#include <math.h>

#include "cpu/simd/simd_kernels.h"

/* Maximum number of vectors of a row. */
#define VECTORS 8

/* Loads n elements.  The other lanes are -infinity, which changes neither the
 * maximum nor the sum of the exponentials. */
static inline vf elements_load(const float *x, int64_t n)
{
    return n >= LANES ? vf_load(x) : vf_load_part(x, n, vf_set(-INFINITY));
}

/* Returns the maximum of a row in all lanes.  If the row contains NaN, the
 * result is unspecified, but the sum of the exponentials is NaN. */
static inline vf maximum(const float *x, int64_t n)
{
    vf m = elements_load(x, n);
    for (int64_t i = LANES; i < n; i += LANES)
        m = vf_max_raw(m, elements_load(x + i, n - i));
    return vf_all_max(m);
}

/* Stores e^(x - m) in `e`.  Returns the sum in all lanes. */
static inline vf exponentials(vf *e, const float *x, int64_t n, vf m)
{
    vf sum = vf_set(0);
    for (int64_t i = 0; i < n; i += LANES) {
        *e = vf_exp(elements_load(x + i, n - i) - m);
        sum += *e++;
    }
    return vf_all_sum(sum);
}

static void short_softmax(float *y, int64_t y_stride, const float *x,
                          int64_t x_stride, int64_t rows, int64_t n)
{
    vf e[VECTORS];
    for (; rows > 0; rows--, x += x_stride, y += y_stride) {
        vf sum = exponentials(e, x, n, maximum(x, n));
        vf factor = vf_set(1) / sum;
        for (int64_t i = 0; i < n; i += LANES)
            lanes_store(y + i, n - i, e[i / LANES] * factor);
    }
}

/* Computes the logarithms of the sums of LANES rows at once. */
static void short_log_softmax(float *y, int64_t y_stride, const float *x,
                              int64_t x_stride, int64_t rows, int64_t n)
{
    vf e[VECTORS], maxima[LANES], sums[LANES];
    float logs[LANES];
    for (; rows > 0; rows -= LANES) {
        int64_t count = rows < LANES ? rows : LANES;
        for (int64_t row = 0; row < count; row++) {
            const float *from = x + row * x_stride;
            maxima[row] = maximum(from, n);
            sums[row] = exponentials(e, from, n, maxima[row]);
        }
        for (int64_t row = 0; row < LANES; row++)
            logs[row] = row < count ? sums[row][0] : 1;
        vf_store(logs, SLEEF1(log)(vf_load(logs)));
        for (int64_t row = 0; row < count; row++) {
            vf m = maxima[row], l = vf_set(logs[row]);
            for (int64_t i = 0; i < n; i += LANES) {
                vf p = elements_load(x + i, n - i);
                lanes_store(y + i, n - i, p - m - l);
            }
            x += x_stride;
            y += y_stride;
        }
    }
}

void ISA(softmax_kernels)(struct kernels *table)
{
    table->short_row = VECTORS * LANES;
    table->short_softmax = short_softmax;
    table->short_log_softmax = short_log_softmax;
}
