/* SPDX-License-Identifier: Apache-2.0 */
/* SGD with momentum and Adam in vectors; attributes as in ../reference.c. */
#include "config.h"

#include "cpu/simd/room.h"
#include "cpu/simd/vector.h"

static inline vf part(const float *p, int64_t n)
{
    return n >= LANES ? vf_load(p) : vf_load_part(p, n, vf_set(0));
}

static inline void part_store(float *p, int64_t n, vf x)
{
    if (n >= LANES)
        vf_store(p, x);
    else
        vf_store_part(p, n, x);
}

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
        vf weight = part(w + i, n);
        vf d = vf_fma(decay, weight, part(g + i, n));
        vf velocity = vf_fma(momentum, part(m + i, n), vf_mul(rest, d));
        vf step = nesterov ? vf_fma(momentum, velocity, d) : velocity;
        part_store(out_m + i, n, velocity);
        part_store(out_w + i, n, vf_fma(rate, step, weight));
    }
}

static void row_adam(const struct row *row)
{
    const float *w = row->in[0], *g = row->in[1], *m = row->in[2],
                *v = row->in[3];
    const float *f = row->params->f;
    float *out_w = row->out[0], *out_m = row->out[1], *out_v = row->out[2];
    bool decoupled = row->params->flag;
    vf rate = vf_set(-f[0]), eps = vf_set(f[5]);
    vf shrink = vf_set(decoupled ? -f[0] * f[6] : 0.0f);
    vf decay = vf_set(decoupled ? 0.0f : f[6]);
    for (int64_t i = 0; i < row->n; i += LANES) {
        int64_t n = row->n - i;
        vf weight = part(w + i, n), gradient = part(g + i, n);
        if (decoupled)
            weight = vf_fma(shrink, weight, weight);
        else
            gradient = vf_fma(decay, weight, gradient);
        vf mean = vf_fma(vf_set(f[1]), part(m + i, n),
                         vf_mul(vf_set(f[2]), gradient));
        vf square = vf_fma(vf_set(f[3]), part(v + i, n),
                           vf_mul(vf_mul(vf_set(f[4]), gradient), gradient));
        vf root = vf_sqrt(vf_mul(square, vf_set(f[8])));
        vf step = vf_div(vf_mul(mean, vf_set(f[7])), vf_add(root, eps));
        part_store(out_m + i, n, mean);
        part_store(out_v + i, n, square);
        part_store(out_w + i, n, vf_fma(rate, step, weight));
    }
}

void ISA(optimizer_rows)(row_fn *rows)
{
    rows[TANDEM_OP_SGD] = row_sgd;
    rows[TANDEM_OP_ADAM] = row_adam;
}
