/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected values of the optimizers' steps; see reference.h. The scale of an
 * output is the sum of the magnitudes of its terms. If a term is a sum itself,
 * the magnitudes of that sum's terms are added.
 */
#include "reference.h"

#include <float.h>
#include <math.h>

struct step {
    long double value, scale;
};

static void step_store(const struct reference *call, struct expected *out,
                       int64_t i, struct step step)
{
    out->real[i] = (double)step.value;
    out->tolerance[i] =
        call->row->tolerance * REFERENCE_2EPS * (double)step.scale;
}

static void sgd(const struct reference *call, int64_t i, struct step *w,
                struct step *m)
{
    const double *f = call->floats;
    long double lr = reference_attribute(f[0]), momentum = f[1];
    long double rest = 1.0L - f[2], decay = reference_attribute(f[3]);
    long double g = dense_real(&call->inputs[1], i);
    long double old_m = dense_real(&call->inputs[2], i);
    struct step d, u;

    w->value = dense_real(&call->inputs[0], i);
    d.value = g + decay * w->value;
    d.scale = fabsl(g) + fabsl(decay * w->value);
    m->value = momentum * old_m + rest * d.value;
    m->scale = fabsl(momentum * old_m) + fabsl(rest) * d.scale;
    u = *m;
    if (call->ints[0] == 1) {
        u.value = d.value + momentum * m->value;
        u.scale = d.scale + fabsl(momentum) * m->scale;
    }
    w->scale = fabsl(w->value) + fabsl(lr) * u.scale;
    w->value -= lr * u.value;
}

static void adam(const struct reference *call, int64_t i, struct step *w,
                 struct step *m, struct step *v)
{
    const double *f = call->floats;
    long double lr = reference_attribute(f[0]), beta1 = f[1], beta2 = f[2];
    long double eps = reference_epsilon(f[3]);
    long double decay = reference_attribute(f[4]), step = call->ints[0];
    long double correct1 = 1.0L - powl(beta1, step);
    long double correct2 = 1.0L - powl(beta2, step);
    long double g = dense_real(&call->inputs[1], i);
    long double old_m = dense_real(&call->inputs[2], i);
    long double old_v = dense_real(&call->inputs[3], i);
    long double magnitude = fabsl(g), below, update, ratio;

    w->value = dense_real(&call->inputs[0], i);
    w->scale = fabsl(w->value);
    if (call->ints[1] == 1) {
        w->scale += fabsl(lr * decay * w->value);
        w->value -= lr * decay * w->value;
    } else {
        magnitude += fabsl(decay * w->value);
        g += decay * w->value;
    }
    m->value = beta1 * old_m + (1.0L - beta1) * g;
    m->scale = fabsl(beta1 * old_m) + (1.0L - beta1) * magnitude;
    v->value = beta2 * old_v + (1.0L - beta2) * g * g;
    v->scale = beta2 * old_v + (1.0L - beta2) * magnitude * magnitude;
    below = sqrtl(v->value / correct2) + eps;
    update = lr * (m->value / correct1) / below;
    ratio = v->value > 0.0L ? v->scale / v->value : 1.0L;
    w->scale += fabsl(lr) * (m->scale / correct1) / below * ratio;
    w->value -= update;
}

/*
 * A finite v remains finite. Whether v is finite is decided in double, because
 * valgrind has no long double: there LDBL_MAX is infinite.
 */
static void saturate(struct step *v)
{
    const long double most = FLT_MAX;

    if (v->value > most && isfinite((double)v->value)) {
        v->scale = v->value > 2 * most ? 0 : most;
        v->value = most;
    }
}

void reference_optimizer(const struct reference *call, struct expected *out)
{
    int64_t n = call->inputs[0].elements;

    for (uint32_t k = 0; k < call->row->outputs; k++) {
        expected_init(&out[k], EXPECTED_REAL, n);
        out[k].subnormal_tolerance = REFERENCE_SUBNORMAL;
    }
    for (int64_t i = 0; i < n; i++) {
        struct step w, m, v;

        if (call->row->id == TANDEM_OP_SGD) {
            sgd(call, i, &w, &m);
        } else {
            adam(call, i, &w, &m, &v);
            saturate(&v);
            step_store(call, &out[2], i, v);
        }
        step_store(call, &out[0], i, w);
        step_store(call, &out[1], i, m);
    }
}
