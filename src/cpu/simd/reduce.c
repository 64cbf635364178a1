/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIMD reductions of contiguous rows.  A block of 64 vectors is summed in f32,
 * in four accumulators.  Block sums are added in f64, so that the error does
 * not grow with the length of the row.  If a block's sum overflows f32, the
 * block is recomputed in f64.
 */
#include "config.h"

#include <math.h>

#include "cpu/simd/simd_kernels.h"

#define BLOCK (64 * LANES)

static inline double vf_total(vf x)
{
    return vd_sum(vd_low(x) + vd_high(x));
}

/* ---- extremes ----------------------------------------------------------- */

#define EXTREME(name, raw, scalar_less)                                        \
    static float row_##name(const float *x, int64_t n)                         \
    {                                                                          \
        vf first = vf_set(x[0]), a = first, b = first;                         \
        vm nan = vf_nan(first);                                                \
        int64_t i = 0;                                                         \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                           \
            vf p = vf_load(x + i), q = vf_load(x + i + LANES);                 \
            nan = vm_or(nan, vf_compare(p, q, UNORD_Q));                       \
            a = raw(a, p);                                                     \
            b = raw(b, q);                                                     \
        }                                                                      \
        for (; i < n; i += LANES) {                                            \
            vf p = n - i >= LANES ? vf_load(x + i)                             \
                                  : vf_load_part(x + i, n - i, first);         \
            nan = vm_or(nan, vf_nan(p));                                       \
            a = raw(a, p);                                                     \
        }                                                                      \
        if (vm_bits(nan) != 0)                                                 \
            return NAN;                                                        \
        float lanes[LANES];                                                    \
        vf_store(lanes, raw(a, b));                                            \
        for (int m = LANES / 2; m > 0; m /= 2)                                 \
            for (int j = 0; j < m; j++)                                        \
                lanes[j] = lanes[j + m] scalar_less lanes[j] ? lanes[j + m]    \
                                                             : lanes[j];       \
        return lanes[0];                                                       \
    }

EXTREME(max, vf_max_raw, >)
EXTREME(min, vf_min_raw, <)

static int64_t row_find(const float *x, int64_t n, float value)
{
    vf wanted = vf_set(value);
    bool wants_nan = isnan(value);
    int64_t i = 0;
    for (; i < n; i += LANES) {
        vf p = lanes_load(x + i, n - i);
        uint32_t bits = wants_nan ? vm_bits(vf_nan(p))
                                  : vm_bits(vf_compare(p, wanted, EQ_OQ));
        if (bits != 0) {
            int64_t at = i + __builtin_ctz(bits);
            return at < n ? at : n;
        }
    }
    return n;
}

/* ---- sums --------------------------------------------------------------- */

static inline double block_sum(const float *x, int64_t n)
{
    vf zero = vf_set(0), a = zero, b = zero, c = zero, d = zero;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a += vf_load(x + i);
        b += vf_load(x + i + LANES);
        c += vf_load(x + i + 2 * LANES);
        d += vf_load(x + i + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES)
        a += vf_load(x + i);
    if (i < n)
        b += vf_load_part(x + i, n - i, zero);
    return vf_total((a + b) + (c + d));
}

static double row_sum(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t length = n - i < BLOCK ? n - i : BLOCK;
        double block = block_sum(x + i, length);
        if (!isfinite(block)) {
            block = 0;
            for (int64_t j = 0; j < length; j++)
                block += x[i + j];
        }
        sum += block;
    }
    return sum;
}

static inline double block_dot(const float *x, const float *y, int64_t n)
{
    vf zero = vf_set(0), a = zero, b = zero, c = zero, d = zero;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = vf_fma(vf_load(x + i), vf_load(y + i), a);
        b = vf_fma(vf_load(x + i + LANES), vf_load(y + i + LANES), b);
        c = vf_fma(vf_load(x + i + 2 * LANES), vf_load(y + i + 2 * LANES), c);
        d = vf_fma(vf_load(x + i + 3 * LANES), vf_load(y + i + 3 * LANES), d);
    }
    for (; i + LANES <= n; i += LANES)
        a = vf_fma(vf_load(x + i), vf_load(y + i), a);
    if (i < n)
        b = vf_fma(vf_load_part(x + i, n - i, zero),
                   vf_load_part(y + i, n - i, zero), b);
    return vf_total((a + b) + (c + d));
}

/* Computes a dot product.  Recomputes a block of elements in f64 if its sum
 * overflows or is tiny.  If the sum is tiny, its products can be subnormal in
 * f32 and lose bits. */
static double row_dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t length = n - i < BLOCK ? n - i : BLOCK;
        double block = block_dot(x + i, y + i, length);
        if (!isfinite(block) || fabs(block) < 0x1p-90) {
            block = 0;
            for (int64_t j = 0; j < length; j++)
                block += (double)x[i + j] * y[i + j];
        }
        sum += block;
    }
    return sum;
}

static inline vf centered(const float *x, vf mean)
{
    return vf_load(x) - mean;
}

static inline double block_square(const float *x, int64_t n, vf mean)
{
    vf zero = vf_set(0), a = zero, b = zero, c = zero, d = zero;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        vf p = centered(x + i, mean), q = centered(x + i + LANES, mean);
        vf r = centered(x + i + 2 * LANES, mean);
        vf s = centered(x + i + 3 * LANES, mean);
        a = vf_fma(p, p, a);
        b = vf_fma(q, q, b);
        c = vf_fma(r, r, c);
        d = vf_fma(s, s, d);
    }
    for (; i + LANES <= n; i += LANES) {
        vf p = centered(x + i, mean);
        a = vf_fma(p, p, a);
    }
    if (i < n) {
        vf p = vf_load_part(x + i, n - i, mean) - mean;
        b = vf_fma(p, p, b);
    }
    return vf_total((a + b) + (c + d));
}

/* Sums the squares of x - m. Recomputes blocks in f64 like row_dot. */
static double row_square_about(const float *x, int64_t n, float m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t length = n - i < BLOCK ? n - i : BLOCK;
        double block = block_square(x + i, length, vf_set(m));
        if (!isfinite(block) || block < 0x1p-90) {
            block = 0;
            for (int64_t j = 0; j < length; j++) {
                float d = x[i + j] - m;
                block += (double)d * d;
            }
        }
        sum += block;
    }
    return sum;
}

/* Sums squares in f64, because squares can exceed the range of f32 even if the
 * square root of their sum does not. */
static double row_sum_square(const float *x, int64_t n)
{
    vd a = {0}, b = {0}, c = {0}, d = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vf p = vf_load(x + i), q = vf_load(x + i + LANES);
        vd p0 = vd_low(p), p1 = vd_high(p), q0 = vd_low(q), q1 = vd_high(q);
        a = vd_fma(p0, p0, a);
        b = vd_fma(p1, p1, b);
        c = vd_fma(q0, q0, c);
        d = vd_fma(q1, q1, d);
    }
    for (; i < n; i += LANES) {
        vf p = lanes_load(x + i, n - i);
        vd p0 = vd_low(p), p1 = vd_high(p);
        a = vd_fma(p0, p0, a);
        b = vd_fma(p1, p1, b);
    }
    return vd_sum((a + b) + (c + d));
}

/* Multiplies in four accumulators, to hide the latency of multiplications. */
static float row_product(const float *x, int64_t n)
{
    vf one = vf_set(1), a = one, b = one, c = one, d = one;
    float lanes[LANES], product = 1;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a *= vf_load(x + i);
        b *= vf_load(x + i + LANES);
        c *= vf_load(x + i + 2 * LANES);
        d *= vf_load(x + i + 3 * LANES);
    }
    for (; i + LANES <= n; i += LANES)
        a *= vf_load(x + i);
    if (i < n)
        b *= vf_load_part(x + i, n - i, one);
    vf_store(lanes, a * b * (c * d));
    for (i = 0; i < LANES; i++)
        product *= lanes[i];
    return product;
}

/* ---- softmax rows ------------------------------------------------------- */

/* Returns the sum of e^(x - m), and stores the exponentials in y if `store` is
 * true.  Unused lanes of a partial vector are -infinity and add 0. */
static inline double exp_sum(float *y, const float *x, int64_t n, float m,
                             bool store)
{
    vf shift = vf_set(m), rest = vf_set(-INFINITY);
    double sum = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = n - i < BLOCK ? n : i + BLOCK;
        vf total = vf_set(0);
        for (; i + LANES <= end; i += LANES) {
            vf e = vf_exp(vf_load(x + i) - shift);
            if (store)
                vf_store(y + i, e);
            total += e;
        }
        if (i < end) {
            vf p = vf_load_part(x + i, end - i, rest);
            vf e = vf_exp(p - shift);
            if (store)
                vf_store_part(y + i, end - i, e);
            total += e;
            i = end;
        }
        sum += vf_total(total);
    }
    return sum;
}

static double row_exp(float *y, const float *x, int64_t n, float m)
{
    return exp_sum(y, x, n, m, true);
}

static double row_sum_exp(const float *x, int64_t n, float m)
{
    return exp_sum(NULL, x, n, m, false);
}

static void row_scale(float *y, const float *x, int64_t n, float scale)
{
    vf factor = vf_set(scale);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(y + i, vf_load(x + i) * factor);
    if (i < n)
        vf_store_part(y + i, n - i,
                      vf_load_part(x + i, n - i, factor) * factor);
}

static void row_shift(float *y, const float *x, int64_t n, float m, float l)
{
    vf first = vf_set(m), second = vf_set(l);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(y + i, vf_load(x + i) - first - second);
    if (i < n) {
        vf p = vf_load_part(x + i, n - i, first);
        vf_store_part(y + i, n - i, p - first - second);
    }
}

static void row_norm(float *y, const float *x, int64_t n, float m, float factor,
                     const float *scale, const float *bias)
{
    vf mean = vf_set(m), f = vf_set(factor), zero = vf_set(0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf h = (vf_load(x + i) - mean) * f;
        vf s = vf_load(scale + i), z = h * s;
        if (bias != NULL)
            z = vf_fma(h, s, vf_load(bias + i));
        vf_store(y + i, z);
    }
    if (i < n) {
        vf h = (vf_load_part(x + i, n - i, zero) - mean) * f;
        vf s = vf_load_part(scale + i, n - i, zero), z = h * s;
        if (bias != NULL)
            z = vf_fma(h, s, vf_load_part(bias + i, n - i, zero));
        vf_store_part(y + i, n - i, z);
    }
}

void ISA(reduce_kernels)(struct kernels *table)
{
    table->square_about = row_square_about;
    table->norm_row = row_norm;
    table->max = row_max;
    table->min = row_min;
    table->find = row_find;
    table->sum = row_sum;
    table->dot = row_dot;
    table->sum_square = row_sum_square;
    table->product = row_product;
    table->sum_exp = row_sum_exp;
    table->exp_row = row_exp;
    table->scale_row = row_scale;
    table->shift_row = row_shift;
}
