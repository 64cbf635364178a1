/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions, norms, softmax, cross-entropy and GEMM of values from 1e-38 to
 * 3e38: all of one magnitude, of mixed magnitudes, and such that an
 * intermediate value leaves the range of f32 while the result does not.
 */
#include "launch_check.h"
#include "gemm_case.h"
#include "element_value.h"
#include "row_case.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Range of binary exponents of the values. */
struct magnitude {
    const char *name;
    int low, high;
};

static const struct magnitude magnitudes[] = {
    {"1e-38", -127, -126}, {"1e-25", -84, -83}, {"1e-22", -74, -73},
    {"1e-19", -64, -62},   {"1e-9", -32, -29},  {"1e19", 62, 64},
    {"1e20", 66, 67},      {"1e30", 99, 100},   {"3e38", 127, 127},
    {"small", -126, -20},  {"large", 20, 127},  {"all", -126, 127},
};
#define MAGNITUDES (sizeof(magnitudes) / sizeof(magnitudes[0]))
static const struct magnitude one = {"1", -1, 0}, all = {"all", -126, 127};

static double value_of(struct random *random, const struct magnitude *size)
{
    double x = ldexp(random_uniform(random, 1.0, 2.0),
                     (int)random_between(random, size->low, size->high));

    x = x > (double)FLT_MAX ? (double)FLT_MAX : x;
    return random_once_in(random, 2) ? -x : x;
}

static void set(struct operand *operand, int64_t i, double x)
{
    operand_set(operand, i, bits_from_float((float)x));
}

static void fill(struct operand *operand, struct random *random,
                 const struct magnitude *size, bool positive)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        double x = value_of(random, size);

        set(operand, i, positive ? fabs(x) : x);
    }
}

/* ---- reductions: [outer, n, inner] over the middle axis ---- */

enum balance {
    PLAIN,    /* Any signs. */
    BALANCED, /* The second half cancels the first. */
    BALANCES
};

struct shape {
    int64_t outer, n, inner;
    enum operand_layout layout;
};

static const struct shape shapes[] = {
    {5, 512, 1, D},  {1, 300, 20, D}, {40, 4, 1, D},   {1, 70001, 1, D},
    {3, 1021, 1, D}, {3, 37, 5, ANY}, {1, 9001, 4, D},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void reduce_fill(struct operand *operand, struct random *random,
                        const struct shape *shape, const struct magnitude *size,
                        enum balance balance)
{
    int64_t half = balance == BALANCED ? shape->n / 2 : 0;

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t at = i / shape->inner % shape->n;
        double x = value_of(random, size);

        if (at >= half && at < 2 * half)
            x = -bits_real(TANDEM_F32,
                           operand_get(operand, i - half * shape->inner));
        set(operand, i, x);
    }
}

static void reduce_run(struct suite *suite, const struct op_row *row,
                       const struct shape *shape, const struct magnitude *size,
                       enum balance balance)
{
    const int64_t in[3] = {shape->outer, shape->n, shape->inner};
    const int64_t out[2] = {shape->outer, shape->inner};
    struct call call;

    if (!case_begin(suite, row->name, "magnitude %s%s [%d,%d,%d]", size->name,
                    balance == BALANCED ? " balanced" : "", (int)in[0],
                    (int)in[1], (int)in[2]))
        return;
    call_init(&call, row);
    call.ints[0] = 2;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 3, in,
                 shape->layout, false);
    reduce_fill(&call.inputs[0], &suite->random, shape, size, balance);
    operand_init(&call.outputs[0], &suite->random, call_out_dtype(row), 2, out,
                 D, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * At the full level each magnitude is tested with all shapes, otherwise with
 * the next shape.
 */
static void reductions_run(struct suite *suite, const struct op_row *row)
{
    bool full = suite->options->full;
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++)
        for (uint32_t balance = 0; balance < BALANCES; balance++, next++)
            for (uint32_t k = 0; k < SHAPES; k++)
                if (full || k == next % SHAPES)
                    reduce_run(suite, row, &shapes[k], &magnitudes[i],
                               (enum balance)balance);
}

/* ---- examples from bug reports ---- */

struct example {
    uint32_t op;
    int64_t n;
    float values[6];
};

static const struct example knowns[] = {
    {TANDEM_OP_L2, 2, {1e20f, 1e20f}},
    {TANDEM_OP_L2, 2, {1e-25f, 1e-25f}},
    {TANDEM_OP_L2, 1, {1e-22f}},
    {TANDEM_OP_L2, 3, {1e20f, 1e-25f, -3e38f}},
    {TANDEM_OP_MEAN, 2, {3e38f, 3e38f}},
    {TANDEM_OP_MEAN, 6, {3e38f, 3e38f, 3e38f, 3e38f, 3e38f, 1e-38f}},
    {TANDEM_OP_SUM, 4, {3e38f, 3e38f, -3e38f, -3e38f}},
    {TANDEM_OP_SUM, 5, {3e38f, 3e38f, -3e38f, -3e38f, 1e38f}},
    {TANDEM_OP_SUM, 3, {3e38f, 3e38f, -INFINITY}},
    {TANDEM_OP_PROD, 4, {1e20f, -1e18f, 1e-20f, 1e-17f}},
    {TANDEM_OP_PROD, 3, {0x1p127f, 0x1p-125f, -1.0f}},
    {TANDEM_OP_PROD, 3, {1e30f, 0.0f, 1e-30f}},
    {TANDEM_OP_PROD, 4, {1e30f, 1e-30f, -INFINITY, INFINITY}},
    {TANDEM_OP_PROD, 4, {1e30f, 1e30f, 0.0f, INFINITY}},
    {TANDEM_OP_PROD, 4, {1e-30f, 1e-30f, NAN, 1e-30f}},
    /* The values are unspecified, but must be the same in both runs. */
    {TANDEM_OP_PROD, 4, {1e30f, 1e30f, 1e-30f, 1e-30f}},
    {TANDEM_OP_PROD, 3, {0x1p-140f, 1e38f, 3.0f}},
};

static void example_run(struct suite *suite, const struct op_row *row,
                        const struct example *example, uint32_t number)
{
    struct call call;

    if (!case_begin(suite, row->name, "magnitude known %u [%d]", number,
                    (int)example->n))
        return;
    call_init(&call, row);
    call.ints[0] = 1;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 1, &example->n, D,
                 false);
    for (int64_t i = 0; i < example->n; i++)
        set(&call.inputs[0], i, (double)example->values[i]);
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 0, NULL, D,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void examples_run(struct suite *suite, const struct op_row *row)
{
    for (uint32_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++)
        if (knowns[i].op == row->id)
            example_run(suite, row, &knowns[i], i);
}

/* ---- dot ---- */

static void dot_run(struct suite *suite, const struct op_row *row, int64_t n,
                    const struct magnitude *a, const struct magnitude *b,
                    enum balance balance)
{
    struct shape line = {1, n, 1, D};
    struct call call;

    if (!case_begin(suite, row->name, "magnitude %s by %s%s [%d]", a->name,
                    b->name, balance == BALANCED ? " balanced" : "", (int)n))
        return;
    call_init(&call, row);
    for (uint32_t i = 0; i < 2; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 1, &n, D,
                     false);
        reduce_fill(&call.inputs[i], &suite->random, &line, i == 0 ? a : b,
                    i == 0 ? balance : PLAIN);
    }
    /* The same factor for the value that cancels another one. */
    for (int64_t i = 0; balance == BALANCED && i < n / 2; i++)
        operand_set(&call.inputs[1], i + n / 2,
                    operand_get(&call.inputs[1], i));
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 0, NULL, D,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void dots_run(struct suite *suite, const struct op_row *row)
{
    static const int64_t lengths[] = {5, 777, 40001};
    uint32_t step = suite->options->full ? 1 : 3;
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++)
        for (uint32_t k = 0; k < MAGNITUDES; k += step, next++)
            dot_run(suite, row, lengths[next % 3], &magnitudes[i],
                    &magnitudes[(k + i) % MAGNITUDES],
                    (enum balance)(next / 3 % BALANCES));
    /* Many subnormal products. */
    dot_run(suite, row, 300007, &magnitudes[2], &magnitudes[2], PLAIN);
}

/* ---- norms ---- */

struct norm_form {
    uint32_t rank;
    int64_t shape[3], axis;
    enum operand_layout layout;
};

static const struct norm_form norm_forms[] = {
    {2, {6, 10}, -1, D},    {2, {4, 768}, 1, D},   {2, {3, 1021}, 1, D},
    {2, {2, 33333}, -1, D}, {2, {2, 40004}, 1, D}, {2, {64, 7}, 1, D},
    {3, {5, 6, 7}, 1, ANY},
};
#define NORM_FORMS (sizeof(norm_forms) / sizeof(norm_forms[0]))

static void norm_run(struct suite *suite, const struct op_row *row,
                     const struct norm_form *form, const struct magnitude *size,
                     const struct magnitude *scale, double epsilon,
                     bool positive)
{
    uint32_t first =
        (uint32_t)(form->axis < 0 ? form->axis + form->rank : form->axis);
    struct call call;
    char shape[64];

    shape_text(form->rank, form->shape, shape, sizeof(shape));
    if (!case_begin(suite, row->name, "magnitude %s%s by %s epsilon %g %s",
                    positive ? "+" : "", size->name, scale->name, epsilon,
                    shape))
        return;
    call_init(&call, row);
    call.ints[0] = form->axis;
    call.floats[0] = epsilon;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, form->rank,
                 form->shape, form->layout, false);
    fill(&call.inputs[0], &suite->random, size, positive);
    for (uint32_t i = 1; i < row->inputs; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32,
                     form->rank - first, form->shape + first, form->layout,
                     false);
        fill(&call.inputs[i], &suite->random, scale, false);
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, form->rank,
                 form->shape, form->layout, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void norms_run(struct suite *suite, const struct op_row *row)
{
    static const double epsilons[] = {0, 1e-5, 0, 1e-30, 0, 1e30, 0};
    bool full = suite->options->full;
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++) {
        const struct magnitude *scales[] = {
            &one, &all, &magnitudes[(i * 5 + 3) % MAGNITUDES]};

        for (uint32_t turn = 0; turn < 3; turn++, next++)
            for (uint32_t k = 0; k < NORM_FORMS; k++)
                if (full || k == next % NORM_FORMS)
                    norm_run(suite, row, &norm_forms[k], &magnitudes[i],
                             scales[turn], epsilons[(next * 3 + i) % 7],
                             (i + next) % 3 == 0);
    }
}

/* ---- softmax and cross-entropy ---- */

static void softmax_run(struct suite *suite, const struct op_row *row,
                        const struct magnitude *size, int64_t n)
{
    const int64_t shape[2] = {7, n};
    struct call call;

    if (!case_begin(suite, row->name, "magnitude %s [7,%d]", size->name,
                    (int)n))
        return;
    call_init(&call, row);
    call.ints[0] = -1;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 2, shape, D,
                 false);
    fill(&call.inputs[0], &suite->random, size, false);
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 2, shape, D,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * Logits down to -width: most probabilities are below the range of f32, and
 * the scale brings the results back into the range.
 */
static void loss_run(struct suite *suite, const struct op_row *row,
                     double scale, double width, int64_t n)
{
    const int64_t shape[2] = {5, n};
    bool gradient = row->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    struct call call;

    if (!case_begin(suite, row->name, "magnitude %g, width %g [5,%d]", scale,
                    width, (int)n))
        return;
    call_init(&call, row);
    call.floats[0] = scale;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 2, shape, D,
                 false);
    for (int64_t i = 0; i < call.inputs[0].elements; i++)
        set(&call.inputs[0], i,
            i % n == 0 ? 0.0 : random_uniform(&suite->random, -width, 0.0));
    operand_init(&call.inputs[1], &suite->random, TANDEM_I32, 1, shape, D,
                 false);
    for (int64_t i = 0; i < shape[0]; i++)
        operand_set(&call.inputs[1], i,
                    (uint64_t)random_between(&suite->random, 0, n - 1));
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, gradient ? 2 : 1,
                 shape, D, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void losses_run(struct suite *suite, const struct op_row *row)
{
    static const double scales[] = {1, 1e10, -1e30, 3e38, 1e-30, 1e39, 1e-46};
    static const double widths[] = {100, 170, 250};
    static const int64_t classes[] = {10, 100, 1021, 40004};
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++)
        for (uint32_t k = 0; k < 3; k++, next++)
            for (uint32_t c = 0; c < 4; c++)
                if (suite->options->full || c == next % 4)
                    loss_run(suite, row, scales[i], widths[k], classes[c]);
}

/* ---- GEMM ---- */

/*
 * Products of a and b are in the range of f32, but products of alpha and a or
 * b are not.
 */
static void gemms_run(struct suite *suite)
{
    static const struct gemm_form forms[] = {
        {SIZES(1, 40, 12)},
        {SIZES(1, 16, 4), .flags = TB, .batch = 2},
        {SIZES(3, 1, 7), .flags = TA, .beta = -0.5},
        {SIZES(41, 1, 12), .bias = ROW},
        {SIZES(20, 24, 28), .flags = TB},
        {SIZES(1, 40, 12), .dtype = TANDEM_BF16},
    };
    static const struct {
        double alpha, tilt;
    } scales[] = {{1e10, 0x1p100}, {1e10, 0x1p-100}, {0x1p-80, 0x1p-80}};

    for (uint32_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        for (uint32_t k = 0; k < sizeof(scales) / sizeof(scales[0]); k++) {
            struct gemm_form form = forms[i];

            form.alpha = scales[k].alpha;
            form.tilt = scales[k].tilt;
            gemm_form_run(suite, &form);
        }
}

void cases_magnitude(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        switch (row->op_class) {
        case TANDEM_CLASS_REDUCE:
            examples_run(suite, row);
            if (row->id != TANDEM_OP_PROD)
                reductions_run(suite, row);
            break;
        case TANDEM_CLASS_DOT:
            dots_run(suite, row);
            break;
        case TANDEM_CLASS_NORM:
            norms_run(suite, row);
            break;
        case TANDEM_CLASS_SOFTMAX:
            for (uint32_t k = 0; k < MAGNITUDES; k++)
                softmax_run(suite, row, &magnitudes[k], k % 2 != 0 ? 100 : 10);
            break;
        case TANDEM_CLASS_CROSS_ENTROPY:
            losses_run(suite, row);
            break;
        case TANDEM_CLASS_GEMM:
            gemms_run(suite);
            break;
        default:
            break;
        }
    }
}
