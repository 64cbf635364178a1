/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizers: one drawn step, several steps in sequence on the device's own
 * state, and gradients and attributes that leave the range of f32.
 */
#include "element_value.h"
#include "suite_class.h"
#include "tolerance.h"

#include <float.h>
#include <math.h>

/* Magnitudes of a gradient and a state of adam. */
static const struct extreme {
    const char *name;
    double g, m, v; /* m and v of 0 stand for the initial state. */
    int64_t step;
    double eps;
} extremes[] = {
    {"1e-25", 1e-25, 0, 0, 1, 0},
    {"1e-25 epsilon 1e-46", 1e-25, 0, 0, 1, 1e-46},
    {"1e-25 epsilon 1e-8", 1e-25, 0, 0, 1, 1e-8},
    {"1e-36", 1e-36, 0, 0, 1, 0},
    {"1e-16", 1e-16, 0, 0, 1, 0},
    {"1e19", 1e19, 0, 0, 1, 1e-8},
    {"1e30", 1e30, 0, 0, 1, 1e-8},
    {"1e30 epsilon 1e300", 1e30, 0, 0, 1, 1e300},
    {"3e38", 3.4e38, 0, 0, 1, 1e-8},
    {"1e30 after 1e20", 1e30, 1e20, 3.4e38, 2, 1e-8},
    {"1 after 1e30", 1, 1e30, 3.4e38, 3, 1e-8},
    {"1e-25 after 1e-19", 1e-25, 1e-19, 1e-37, 2, 0},
    {"1e-12 after 1e-15", 1e-12, 1e-15, 1e-30, 1000, 0},
    {"1e-3 after 1e-20", 1e-3, 1e-20, 1e-38, 1000, 1e-30},
    {"0 epsilon 1e-46", 0, 0, 0, 1, 1e-46},
    {"0 epsilon 1e-40", 0, 0, 0, 1, 1e-40},
};

/* ---- reference: the scale of an output is the sum of the magnitudes of its
 * terms, added over the terms that are sums themselves ---- */

struct step {
    long double value, scale;
    long double flushed; /* The error if subnormal terms are flushed. */
    /* The largest intermediate result, from the magnitudes of finite terms. */
    long double range;
};

/* Returns |x|, or 0 if x is not finite. */
static long double size_if_finite(long double x)
{
    return isfinite((double)x) ? fabsl(x) : 0;
}

static void step_store(const struct call *call, struct expected *out, int64_t i,
                       struct step step)
{
    out->real[i] = (double)step.value;
    out->tolerance[i] =
        call->row->tolerance * TOLERANCE_2EPS * (double)step.scale +
        (double)step.flushed;
    if (step.range > FLT_MAX && isfinite((double)step.range))
        out->unspecified[i] = UNSPECIFIED;
}

static void sgd(const struct call *call, const struct dense *in, int64_t i,
                struct step *w, struct step *m)
{
    const double *f = call->floats;
    long double lr = reference_attribute(f[0]), momentum = f[1];
    long double rest = 1.0L - f[2], decay = reference_attribute(f[3]);
    long double g = dense_real(&in[1], i);
    long double old_m = dense_real(&in[2], i), d_range, update_range;
    struct step d, u;

    w->value = dense_real(&in[0], i);
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
    w->flushed = m->flushed = 0;
    d_range = size_if_finite(g) + fabsl(decay) * size_if_finite(w->value);
    m->range = size_if_finite(momentum * old_m) + fabsl(rest) * d_range;
    update_range = m->range;
    if (call->ints[0] == 1)
        update_range = d_range + fabsl(momentum) * m->range;
    m->range = fmaxl(m->range, d_range);
    w->range = size_if_finite(w->value) + fabsl(lr) * update_range;
    w->range = fmaxl(w->range, fmaxl(m->range, update_range));
    w->value -= lr * u.value;
}

static void adam(const struct call *call, const struct dense *in, int64_t i,
                 struct step *w, struct step *m, struct step *v)
{
    const double *f = call->floats;
    long double lr = reference_attribute(f[0]), beta1 = f[1], beta2 = f[2];
    long double eps = reference_epsilon(f[3]);
    long double decay = reference_attribute(f[4]), step = call->ints[0];
    long double correct1 = 1.0L - powl(beta1, step);
    long double correct2 = 1.0L - powl(beta2, step);
    long double g = dense_real(&in[1], i);
    long double old_m = dense_real(&in[2], i);
    long double old_v = dense_real(&in[3], i);
    long double magnitude = fabsl(g), below, update, ratio;

    w->value = dense_real(&in[0], i);
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
    ratio = v->value > 0.0L && isfinite((double)v->value) ? v->scale / v->value
                                                          : 1.0L;
    w->scale += fabsl(lr) * (m->scale / correct1) / below * ratio;
    w->value -= update;
    v->range = size_if_finite(dense_real(&in[1], i));
    w->range = size_if_finite(dense_real(&in[0], i));
    if (call->ints[1] == 1)
        w->range += fabsl(lr * decay) * w->range;
    else
        v->range += fabsl(decay) * w->range;
    m->range = size_if_finite(beta1 * old_m) + (1.0L - beta1) * v->range;
    w->range += m->range / correct1 / fminl(1, below) * fmaxl(1, fabsl(lr));
    m->range = fmaxl(m->range, v->range);
    w->range = fmaxl(m->range, w->range);
    m->flushed = v->flushed = 0;
    w->flushed = reference_flushed((double)(beta1 * old_m)) +
                 reference_flushed((double)((1.0L - beta1) * g)) +
                 reference_flushed((double)m->value);
    if (w->flushed > 0)
        w->flushed *= fabsl(lr) / correct1 / below;
}

/*
 * A finite v remains finite. The test for a finite v uses double, because
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

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    int64_t n = in[0].elements;

    for (uint32_t k = 0; k < call->outputs; k++) {
        expected_init(&out[k], EXPECTED_REAL, n);
        expected_allow_unspecified(&out[k]);
        out[k].subnormal_tolerance = TOLERANCE_SUBNORMAL;
    }
    for (int64_t i = 0; i < n; i++) {
        struct step w, m, v;

        if (call->row->id == TANDEM_OP_SGD) {
            sgd(call, in, i, &w, &m);
        } else {
            adam(call, in, i, &w, &m, &v);
            saturate(&v);
            step_store(call, &out[2], i, v);
        }
        step_store(call, &out[0], i, w);
        step_store(call, &out[1], i, m);
    }
}

/* ---- cases ---- */

/* Returns the input that output k updates: w is 0, m is 2, v is 3. */
static uint32_t updated_input(uint32_t output)
{
    return output == 0 ? 0 : output + 1;
}

static void sgd_attributes(struct call *call, uint32_t variant)
{
    call->ints[0] = variant & 1u;
    call->floats[0] = 0.05;
    call->floats[1] = variant & 2u ? 0.9 : 0.0;
    call->floats[2] = variant & 4u ? 0.25 : 0.0;
    call->floats[3] = variant & 8u ? 0.01 : 0.0;
}

static void adam_attributes(struct call *call, uint32_t variant)
{
    call->ints[0] = variant & 4u ? 1000 : 1 + (variant & 3u);
    call->ints[1] = variant >> 3 & 1u;
    call->floats[0] = 0.001;
    call->floats[1] = 0.9;
    call->floats[2] = 0.999;
    call->floats[3] = 1e-8;
    call->floats[4] = variant & 1u ? 0.01 : 0.0;
}

static void attributes_fill(struct call *call, uint32_t variant)
{
    if (call->row->id == TANDEM_OP_SGD)
        sgd_attributes(call, variant);
    else
        adam_attributes(call, variant);
}

/* Makes the outputs exactly their inputs. */
static void outputs_make(struct call *call)
{
    for (uint32_t k = 0; k < call->outputs; k++)
        call_in_place(call, k, updated_input(k));
}

/* The layout is valid for an output: no two elements share an address. */
static void input_make(struct call *call, uint32_t i, const struct shape *shape,
                       enum operand_layout layout)
{
    operand_init(&call->operands[i], call->random, TANDEM_F32, shape->rank,
                 shape->at, layout, true);
}

/* Elements of w are about 1, of g 0.1, of m 0.05, and of v a small square. */
static void inputs_make(struct call *call, const struct shape *shape,
                        enum operand_layout layout)
{
    static const double scales[] = {1.0, 0.1, 0.05, 0.03};

    for (uint32_t i = 0; i < call->inputs; i++) {
        struct operand *operand = &call->operands[i];

        input_make(call, i, shape, layout);
        operand_fill_normal(operand, call->random, scales[i], 0.0);
        for (int64_t e = 0; i == 3 && e < operand->elements; e++) {
            double x = bits_real(TANDEM_F32, operand_get(operand, e));

            element_set(operand, e, x * x);
        }
    }
}

/*
 * Prepares the next step of a case: the inputs become what the reference
 * expects as the result of the previous step.
 */
static void state_advance(struct call *call)
{
    struct dense dense[CALL_OPERANDS];
    struct expected expected[CALL_OPERANDS];
    const struct tandem_tensor_desc *w = &call->operands[0].desc;

    for (uint32_t i = 0; i < call->inputs; i++)
        dense_load(&dense[i], &call->operands[i], w->rank, w->shape);
    reference(call, dense, expected);
    for (uint32_t k = 0; k < call->outputs; k++) {
        struct operand *input = &call->operands[updated_input(k)];

        for (int64_t e = 0; e < input->elements; e++)
            operand_set(input, e, bits_from_float((float)expected[k].real[e]));
        expected_finish(&expected[k]);
    }
    for (uint32_t i = 0; i < call->inputs; i++)
        dense_finish(&dense[i]);
}

static void steps_run(struct suite *suite, const struct op_row *row)
{
    static const struct shape shape = S(129);
    struct call *call = call_begin(suite, row, "six steps in place");

    if (call == NULL)
        return;
    attributes_fill(call, row->id == TANDEM_OP_ADAM ? 9 : 15);
    inputs_make(call, &shape, DENSE);
    for (int64_t e = 0; e < shape.at[0]; e++)
        for (uint32_t k = 1; k < row->outputs; k++)
            operand_set(&call->operands[updated_input(k)], e,
                        0); /* The initial state. */
    outputs_make(call);
    for (int64_t step = 1; step <= 6 && !suite->case_failed; step++) {
        if (row->id == TANDEM_OP_ADAM)
            call->ints[0] = step;
        call_run(suite, call);
        state_advance(call);
        operand_fill_normal(&call->operands[1], call->random, 0.1, 0.0);
    }
    call_finish(call);
    case_end(suite);
}

/* Returns a value of about this size, of either sign. */
static double value_near(struct random *random, double size)
{
    double x = fmin(size * random_uniform(random, 1.0, 1.1), FLT_MAX);

    return random_once_in(random, 2) ? -x : x;
}

/*
 * Every 37th element is ordinary, and every 41st has a gradient that is NaN or
 * infinite. Every second weight is 0, so that the result is the step itself.
 */
static void extreme_fill(struct call *call, const struct extreme *extreme)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    struct random *random = call->random;

    for (int64_t i = 0; i < call->operands[0].elements; i++) {
        bool usual = i % 37 == 36;
        double g = value_near(random, usual ? 0.1 : extreme->g);
        double m = value_near(random, usual ? 0.1 : extreme->m);
        double v = fabs(value_near(random, usual ? 0.01 : extreme->v));

        if (i % 41 == 40)
            g = specials[i % 3];
        double w = i % 2 ? 0.0 : random_normal(random);
        const double values[] = {w, g, m, v};

        for (uint32_t k = 0; k < 4; k++)
            element_set(&call->operands[k], i, values[k]);
    }
}

static void extreme_run(struct suite *suite, const struct op_row *row,
                        const struct extreme *extreme,
                        enum operand_layout layout)
{
    static const struct shape shape = S(9, 119);
    struct call *call = call_begin(suite, row, "gradient %s%s", extreme->name,
                                   layout == DENSE ? "" : " strided");

    if (call == NULL)
        return;
    adam_attributes(call, 0);
    call->ints[0] = extreme->step;
    call->floats[3] = extreme->eps;
    for (uint32_t i = 0; i < call->inputs; i++)
        input_make(call, i, &shape, layout);
    extreme_fill(call, extreme);
    outputs_make(call);
    call_end(suite, call);
}

/* Factors too large for f32, applied to elements that are 0. */
static void factor_run(struct suite *suite, const struct op_row *row,
                       uint32_t place, double factor)
{
    static const struct shape shape = S(37);
    struct call *call =
        call_begin(suite, row, "attribute %u of %g", place, factor);

    if (call == NULL)
        return;
    attributes_fill(call, 0);
    call->floats[place] = factor;
    for (uint32_t i = 0; i < call->inputs; i++) {
        input_make(call, i, &shape, DENSE);
        for (int64_t e = 0; e < shape.at[0]; e++)
            operand_set(&call->operands[i], e, 0);
    }
    for (uint32_t k = 0; k < call->outputs; k++)
        call_operand(call, call->inputs + k, TANDEM_F32, &shape, DENSE);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    bool adam = row->id == TANDEM_OP_ADAM;

    steps_run(suite, row);
    for (uint32_t i = 0; adam && i < COUNT_OF(extremes); i++) {
        extreme_run(suite, row, &extremes[i], DENSE);
        if (!suite->options->smoke || i % 4 == 0)
            extreme_run(suite, row, &extremes[i], ANY);
    }
    factor_run(suite, row, 0, 1e39);
    factor_run(suite, row, adam ? 4 : 3, -1e300);
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape shape;

    (void)block;
    shape_draw(&shape, random, 0, TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < call->inputs + call->outputs; i++)
        operand_draw(call, i, TANDEM_F32, &shape);
    call->ints[0] = random_between(random, 0, 1);
    if (call->row->id == TANDEM_OP_ADAM) {
        call->ints[0] = random_once_in(random, 2)
                            ? random_between(random, 1, 5)
                            : random_between(random, 1, 100000);
        call->ints[1] = random_between(random, 0, 1);
    }
}

/* Second moments are squares. */
static bool fill_squares(struct call *call, uint32_t input,
                         const struct spread *spread)
{
    if (input != 3)
        return false;
    for (int64_t i = 0; i < call->operands[3].elements; i++) {
        double value = value_draw(spread, call->random);

        element_set(&call->operands[3], i, value * value);
    }
    return true;
}

static void draw_attributes(struct call *call, const struct spread *spread)
{
    struct random *random = call->random;
    double *floats = call->floats;

    (void)spread;
    floats[0] = pow(10.0, random_uniform(random, -5.0, 0.0));
    floats[1] = random_uniform(random, 0.0, 0.99);
    if (call->row->id == TANDEM_OP_SGD) {
        floats[2] = random_once_in(random, 2) ? 0.0 : 0.25;
        floats[3] = random_once_in(random, 2) ? 0.0 : 0.01;
        return;
    }
    floats[2] = random_uniform(random, 0.9, 0.9999);
    floats[3] = 1e-8;
    floats[4] = random_once_in(random, 2) ? 0.0 : 0.01;
}

static bool draw_invalid_attribute(struct call *call)
{
    if (call->row->id != TANDEM_OP_ADAM)
        return false;
    call->ints[0] = -random_between(call->random, 0, 3);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    p->ints[0] = 1; /* The step of adam, or nesterov. */
}

#define OPTIMIZER_MISTAKES(X)                                                  \
    X(adam_step_zero, ADAM, "step 0", 0, p->ints[0] = 0)                       \
    X(adam_floats_few, ADAM, "an attribute too few", 0, p->op.float_count--)   \
    X(adam_inputs_few, ADAM, "too few inputs", 0, p->in_count--)               \
    X(adam_outputs_few, ADAM, "too few outputs", 0, p->out_count--)            \
    X(adam_second_two, ADAM, "decoupled_weight_decay 2", 0, p->ints[1] = 2)    \
    X(adam_second_minus, ADAM, "decoupled_weight_decay -1", 0,                 \
      p->ints[1] = -1)                                                         \
    X(sgd_shape_differs, SGD, "shapes that differ", 0, p->ins[0].shape[1] = 3) \
    X(sgd_first_two, SGD, "nesterov 2", 0, p->ints[0] = 2)                     \
    X(sgd_first_minus, SGD, "nesterov -1", 0, p->ints[0] = -1)
MISTAKE_TABLE(optimizer_mistakes, OPTIMIZER_MISTAKES)

const struct suite_class suite_optimizer = {
    .rules = IN_PLACE,
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = fill_squares,
    .draw_attributes = draw_attributes,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 2,
    .make_valid = make_valid,
    CLASS_MISTAKES(optimizer_mistakes),
};
