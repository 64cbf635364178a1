/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizers: one step over shapes, strides and attributes, in place and out
 * of place, and several steps in sequence on the device's own state.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"

#include <float.h>
#include <math.h>

/* Which outputs share the memory of the corresponding inputs. */
enum placement {
    PLACE_APART,
    PLACE_ALL,   /* All: w, m and v in place. */
    PLACE_WEIGHT /* Only w. */
};

struct optimizer_form {
    const char *name;
    bool always;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    enum operand_layout layout;
    enum placement placement;
};

#define D LAYOUT_DENSE

static const struct optimizer_form forms[] = {
    {"rank 0", false, 0, {0}, D, PLACE_APART},
    {"[0]", false, 1, {0}, D, PLACE_ALL},
    {"[1]", false, 1, {1}, D, PLACE_ALL},
    {"[1021]", true, 1, {1021}, D, PLACE_APART},
    {"[1021] in place", true, 1, {1021}, D, PLACE_ALL},
    {"[513] weight in place", false, 1, {513}, D, PLACE_WEIGHT},
    {"[64,256] in place", true, 2, {64, 256}, D, PLACE_ALL},
    {"[70001] in place", false, 1, {70001}, D, PLACE_ALL},
    {"offset [519] in place", true, 1, {519}, LAYOUT_OFFSET, PLACE_ALL},
    {"offset [333]", false, 1, {333}, LAYOUT_OFFSET, PLACE_APART},
    {"strided [9,17]", true, 2, {9, 17}, LAYOUT_RANDOM, PLACE_APART},
    {"strided [9,17] in place", false, 2, {9, 17}, LAYOUT_RANDOM, PLACE_ALL},
    {"transposed [31,33]", false, 2, {31, 33}, LAYOUT_REVERSED, PLACE_ALL},
};

/* Returns the input that output k updates: w is 0, m is 2, v is 3. */
static int32_t updated_input(uint32_t output)
{
    return output == 0 ? 0 : (int32_t)output + 1;
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

/* Elements of w are about 1, of g 0.1, of m 0.05, and of v a small square. */
static void inputs_fill(struct suite *suite, struct call *call,
                        const struct optimizer_form *form)
{
    static const double scales[] = {1.0, 0.1, 0.05, 0.03};

    for (uint32_t i = 0; i < call->row->inputs; i++) {
        struct operand *operand = &call->inputs[i];

        /*
         * The layout is valid for an output: no two elements share an address.
         */
        operand_init(operand, &suite->random, TANDEM_F32, form->rank,
                     form->shape, form->layout, true);
        operand_fill_normal(operand, &suite->random, scales[i], 0.0);
        for (int64_t e = 0; i == 3 && e < operand->elements; e++) {
            float x = (float)bits_real(TANDEM_F32, operand_get(operand, e));

            operand_set(operand, e, bits_from_float(x * x));
        }
    }
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct optimizer_form *form, uint32_t variant)
{
    struct call call;

    if (!case_begin(suite, row->name, "%s, variant %u", form->name, variant))
        return;
    call_init(&call, row);
    attributes_fill(&call, variant);
    inputs_fill(suite, &call, form);
    for (uint32_t k = 0; k < row->outputs; k++) {
        bool over = form->placement == PLACE_ALL ||
                    (form->placement == PLACE_WEIGHT && k == 0);

        if (over)
            call.alias[k] = updated_input(k);
        else
            operand_init(&call.outputs[k], &suite->random, TANDEM_F32,
                         form->rank, form->shape, form->layout, true);
    }
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * Prepares the next step of a case: the inputs become what the reference
 * expects as the result of the previous step.
 */
static void state_advance(struct call *call)
{
    struct dense dense[TANDEM_MAX_OPERANDS];
    struct expected expected[TANDEM_MAX_OPERANDS];
    const struct operand *w = &call->inputs[0];
    struct reference reference = {.row = call->row,
                                  .ints = call->ints,
                                  .floats = call->floats,
                                  .inputs = dense,
                                  .out_dtype = TANDEM_F32,
                                  .out_rank = w->desc.rank,
                                  .out_shape = w->desc.shape};

    for (uint32_t i = 0; i < call->row->inputs; i++)
        dense_load(&dense[i], &call->inputs[i], TANDEM_F32, w->desc.rank,
                   w->desc.shape);
    reference_compute(&reference, expected);
    for (uint32_t k = 0; k < call->row->outputs; k++) {
        struct operand *input = &call->inputs[updated_input(k)];

        for (int64_t e = 0; e < input->elements; e++)
            operand_set(input, e, bits_from_float((float)expected[k].real[e]));
        expected_finish(&expected[k]);
    }
    for (uint32_t i = 0; i < call->row->inputs; i++)
        dense_finish(&dense[i]);
}

static void steps_run(struct suite *suite, const struct op_row *row)
{
    static const struct optimizer_form form = {
        .rank = 1, .shape = {129}, .layout = D};
    struct call call;

    if (!case_begin(suite, row->name, "six steps in place"))
        return;
    call_init(&call, row);
    sgd_attributes(&call, 15);
    if (row->id == TANDEM_OP_ADAM)
        adam_attributes(&call, 9);
    inputs_fill(suite, &call, &form);
    for (int64_t e = 0; e < call.inputs[0].elements; e++) {
        for (uint32_t k = 1; k < row->outputs; k++)
            operand_set(&call.inputs[updated_input(k)], e,
                        0); /* The initial state. */
    }
    for (uint32_t k = 0; k < row->outputs; k++)
        call.alias[k] = updated_input(k);
    for (int64_t step = 1; step <= 6 && !suite->case_failed; step++) {
        if (row->id == TANDEM_OP_ADAM)
            call.ints[0] = step;
        call_run(suite, &call);
        state_advance(&call);
        operand_fill_normal(&call.inputs[1], &suite->random, 0.1, 0.0);
    }
    call_finish(&call);
    case_end(suite);
}

/*
 * ---- gradients whose squares and attributes that leave the range of f32 ----
 */

/* Magnitudes of a gradient and a state. */
struct extreme {
    const char *name;
    double g, m, v; /* m and v of 0 stand for the initial state. */
    int64_t step;
    double eps;
};

static const struct extreme extremes[] = {
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
static void extreme_fill(struct call *call, struct random *random,
                         const struct extreme *extreme)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    struct operand *inputs = call->inputs;

    for (int64_t i = 0; i < inputs[0].elements; i++) {
        bool usual = i % 37 == 36;
        double g = value_near(random, usual ? 0.1 : extreme->g);
        double m = value_near(random, usual ? 0.1 : extreme->m);
        double v = fabs(value_near(random, usual ? 0.01 : extreme->v));

        if (i % 41 == 40)
            g = specials[i % 3];
        double w = i % 2 ? 0.0 : random_normal(random);
        const double values[] = {w, g, m, v};

        for (uint32_t k = 0; k < 4; k++)
            operand_set(&inputs[k], i, bits_from_float((float)values[k]));
    }
}

static void extreme_run(struct suite *suite, const struct op_row *row,
                        const struct extreme *extreme,
                        enum operand_layout layout)
{
    static const int64_t shape[2] = {9, 119};
    struct call call;

    if (!case_begin(suite, row->name, "gradient %s%s", extreme->name,
                    layout == D ? "" : " strided"))
        return;
    call_init(&call, row);
    adam_attributes(&call, 0);
    call.ints[0] = extreme->step;
    call.floats[3] = extreme->eps;
    for (uint32_t i = 0; i < row->inputs; i++)
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 2, shape,
                     layout, true);
    extreme_fill(&call, &suite->random, extreme);
    for (uint32_t k = 0; k < row->outputs; k++)
        call.alias[k] = updated_input(k);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/* Factors too large for f32, applied to elements that are 0. */
static void factor_run(struct suite *suite, const struct op_row *row,
                       uint32_t place, double factor)
{
    static const int64_t shape[1] = {37};
    struct call call;

    if (!case_begin(suite, row->name, "attribute %u of %g", place, factor))
        return;
    call_init(&call, row);
    attributes_fill(&call, 0);
    call.floats[place] = factor;
    for (uint32_t i = 0; i < row->inputs; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 1, shape, D,
                     true);
        for (int64_t e = 0; e < shape[0]; e++)
            operand_set(&call.inputs[i], e, 0);
    }
    for (uint32_t k = 0; k < row->outputs; k++)
        operand_init(&call.outputs[k], &suite->random, TANDEM_F32, 1, shape, D,
                     true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void extremes_run(struct suite *suite, const struct op_row *row)
{
    bool adam = row->id == TANDEM_OP_ADAM;

    for (uint32_t i = 0; adam && i < sizeof(extremes) / sizeof(*extremes);
         i++) {
        extreme_run(suite, row, &extremes[i], D);
        if (!suite->options->smoke || i % 4 == 0)
            extreme_run(suite, row, &extremes[i], LAYOUT_RANDOM);
    }
    factor_run(suite, row, 0, 1e39);
    factor_run(suite, row, adam ? 4 : 3, -1e300);
}

static void operator_run(struct suite *suite, const struct op_row *row)
{
    bool full = suite->options->full || suite->options->filter != NULL;
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        for (uint32_t variant = 0; variant < 16; variant++) {
            bool first = variant == i % 16;

            if (full || (forms[i].always && first) ||
                random_once_in(&choice, 12))
                form_run(suite, row, &forms[i], variant);
        }
    steps_run(suite, row);
    extremes_run(suite, row);
}

void cases_optimizer(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++)
        if (op_table[i].op_class == TANDEM_CLASS_OPTIMIZER &&
            group_selected(suite, op_table[i].name))
            operator_run(suite, &op_table[i]);
}
