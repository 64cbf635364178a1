/* SPDX-License-Identifier: Apache-2.0 */
/* SIMD kernels of the optimizers SGD (with momentum) and Adam.
 * kernels/elementwise.c sets the attributes in params->f. */
#include "config.h"

#include <float.h>
#include <string.h>

#include "cpu/simd/simd_kernels.h"

static void row_sgd(const struct row *row)
{
    const float *w = row->in[0], *g = row->in[1], *m = row->in[2];
    const float *f = row->params->f;
    float *out_w = row->out[0], *out_m = row->out[1];
    vf rate = vf_set(-f[0]), momentum = vf_set(f[1]), rest = vf_set(f[2]),
       decay = vf_set(f[3]);
    bool nesterov = row->params->flag;
    for (int64_t i = 0; i < row->n; i += LANES) {
        int64_t n = row->n - i;
        vf weight = lanes_load(w + i, n);
        vf d = vf_fma(decay, weight, lanes_load(g + i, n));
        vf velocity = vf_fma(momentum, lanes_load(m + i, n), rest * d);
        vf step = nesterov ? vf_fma(momentum, velocity, d) : velocity;
        lanes_store(out_m + i, n, velocity);
        lanes_store(out_w + i, n, vf_fma(rate, step, weight));
    }
}

/* Limits for Adam's mean square of gradients.  Within these limits, its terms
 * keep full f32 precision, and Adam's bias correction cannot overflow. */
#define MIN_SQUARE 0x1p-100f
#define MAX_SQUARE 0x1p60f

/* Returns false if any lane is NaN or outside MIN_SQUARE to MAX_SQUARE. */
static inline bool squares_ordinary(vf square)
{
    vf within =
        vf_min_raw(vf_max_raw(square, vf_set(MIN_SQUARE)), vf_set(MAX_SQUARE));
    return vm_bits(vf_compare(within, square, NEQ_UQ)) == 0;
}

/* Returns Adam's updated mean square of gradients. f is params->f. */
static inline vf mean_square(const float *f, vf v, vf gradient)
{
    return vf_fma(vf_set(f[3]), v, vf_set(f[4]) * gradient * gradient);
}

static inline vf mean_root(const float *f, vf square)
{
    return vf_sqrt(square * vf_set(f[8]));
}

/* Returns a scale factor per lane: `large` if the mean square exceeds
 * MAX_SQUARE, `small` if it is below MIN_SQUARE, otherwise 1. */
static inline vf unit_of(vf square, float large, float small)
{
    return vf_select(vf_compare(square, vf_set(MAX_SQUARE), GT_OQ),
                     vf_set(large),
                     vf_select(vf_compare(square, vf_set(MIN_SQUARE), LT_OQ),
                               vf_set(small), vf_set(1)));
}

/* Returns Adam's quotient mean / (root + eps) for any mean square.  In lanes
 * whose mean square is outside its limits, computes the root from scaled
 * inputs, and multiplies both numerator and denominator by `wide`. */
static inline vf quotient_any(const float *f, vf v, vf gradient, vf mean,
                              vf square)
{
    vf unit = unit_of(square, 0x1p-70f, 0x1p96f);
    vf wide = unit_of(square, 0x1p-1f, 0x1p24f);
    vf scaled = mean_square(f, v * unit * unit, gradient * unit);
    return mean * wide /
           vf_fma(mean_root(f, scaled), unit_of(square, 0x1p69f, 0x1p-72f),
                  vf_set(f[5]) * wide);
}

/* Returns the mean square, limited to FLT_MAX in lanes where both v and the
 * gradient are finite. */
static inline vf square_store(vf square, vf v, vf gradient)
{
    vf largest = vf_set(FLT_MAX);
    vf larger = vf_max_raw(v, vf_abs(gradient));
    return vf_select(vf_compare(larger, largest, LE_OQ),
                     vf_min_raw(largest, square), square);
}

static void row_adam(const struct row *row)
{
    const float *w = row->in[0], *g = row->in[1], *m = row->in[2],
                *v = row->in[3];
    float *out_w = row->out[0], *out_m = row->out[1], *out_v = row->out[2];
    float f[9]; /* copy of params->f that cannot overlap outputs */
    memcpy(f, row->params->f, sizeof(f));
    bool decoupled = row->params->flag;
    vf rate = vf_set(-f[7]), eps = vf_set(f[5]);
    vf shrink = vf_set(decoupled ? -f[0] * f[6] : 0.0f);
    vf decay = vf_set(decoupled ? 0.0f : f[6]);
    for (int64_t i = 0; i < row->n; i += LANES) {
        int64_t n = row->n - i;
        vf weight = lanes_load(w + i, n), gradient = lanes_load(g + i, n);
        /* Unused lanes are 1, so that their mean square is within limits. */
        vf old =
            n >= LANES ? vf_load(v + i) : vf_load_part(v + i, n, vf_set(1));
        if (decoupled)
            weight = vf_fma(shrink, weight, weight);
        else
            gradient = vf_fma(decay, weight, gradient);
        vf mean =
            vf_fma(vf_set(f[1]), lanes_load(m + i, n), vf_set(f[2]) * gradient);
        vf square = mean_square(f, old, gradient), quotient;
        if (__builtin_expect(squares_ordinary(square), 1)) {
            quotient = mean / (mean_root(f, square) + eps);
        } else {
            quotient = quotient_any(f, old, gradient, mean, square);
            square = square_store(square, old, gradient);
        }
        lanes_store(out_m + i, n, mean);
        lanes_store(out_v + i, n, square);
        lanes_store(out_w + i, n, vf_fma(rate, quotient, weight));
    }
}

void ISA(optimizer_kernels)(struct kernels *table)
{
    table->rows[TANDEM_OP_SGD] = row_sgd;
    table->rows[TANDEM_OP_ADAM] = row_adam;
}
