/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The element-wise operators (unary, binary, comparisons, logical, ternary and
 * gradients) over one table of forms: shapes, broadcasting, scalars, strides,
 * in place, special values.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define D LAYOUT_DENSE
#define IN(layout)                                                             \
    {                                                                          \
        layout, 0, 0                                                           \
    }

/*
 * How an input differs from the output: its layout, the number of leading axes
 * that it lacks, and a mask of the remaining axes in which it has size 1.
 */
struct form_input {
    enum operand_layout layout;
    uint32_t drop, ones;
};

enum form_level {
    CORE, /* Runs at every level. */
    /* Runs at every level, but a smoke run selects some by the seed. */
    ALWAYS,
    SOME, /* A standard run selects some for each operator by the seed. */
    FULL  /* Runs with --level full. */
};

enum form_kind {
    PLAIN,
    BROADCAST, /* Not for UNARY and GRADIENT. */
    /*
     * Not for UNARY and GRADIENT; scalars is a mask of inputs that are NULL.
     */
    SCALARS,
    /* The output is input number in_place; not if their dtypes differ. */
    IN_PLACE,
    SPECIALS /* Each combination of special values. */
};

struct form {
    const char *name;
    enum form_level level;
    enum form_kind kind;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    enum operand_layout out;
    struct form_input in[3];
    uint32_t scalars, in_place;
};

static const struct form forms[] = {
    {"rank 0", ALWAYS, PLAIN, 0, {0}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"empty [0]", SOME, PLAIN, 1, {0}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"empty [3,0]", SOME, PLAIN, 2, {3, 0}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"empty [0,3]", FULL, PLAIN, 2, {0, 3}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"empty [2,0,4]", SOME, PLAIN, 3, {2, 0, 4}, D, {IN(D), IN(D), IN(D)}, 0,
     0},
    {"one [1]", SOME, PLAIN, 1, {1}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"one [1,1,1]", FULL, PLAIN, 3, {1, 1, 1}, LAYOUT_RANDOM,
     {IN(D), IN(LAYOUT_RANDOM), IN(D)}, 0, 0},
    {"specials", CORE, SPECIALS, 1, {1024}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [17]", SOME, PLAIN, 1, {17}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [31]", SOME, PLAIN, 1, {31}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [127]", FULL, PLAIN, 1, {127}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [1021]", CORE, PLAIN, 1, {1021}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [33,31]", SOME, PLAIN, 2, {33, 31}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [4096]", SOME, PLAIN, 1, {4096}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [65537]", SOME, PLAIN, 1, {65537}, D, {IN(D), IN(D), IN(D)}, 0, 0},
    {"dense [263,1021]", SOME, PLAIN, 2, {263, 1021}, D, {IN(D), IN(D), IN(D)},
     0, 0},
    {"dense [1048583]", FULL, PLAIN, 1, {1048583}, D, {IN(D), IN(D), IN(D)}, 0,
     0},
    {"dense [4,1021,1031]", FULL, PLAIN, 3, {4, 1021, 1031}, D,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"offset [1019]", ALWAYS, PLAIN, 1, {1019}, LAYOUT_OFFSET,
     {IN(LAYOUT_OFFSET), IN(LAYOUT_OFFSET), IN(LAYOUT_OFFSET)}, 0, 0},
    {"offset output [515]", SOME, PLAIN, 1, {515}, LAYOUT_OFFSET,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"offset input [517]", SOME, PLAIN, 1, {517}, D,
     {IN(LAYOUT_OFFSET), IN(D), IN(D)}, 0, 0},
    {"padded rows [29,37]", SOME, PLAIN, 2, {29, 37}, LAYOUT_PADDED,
     {IN(LAYOUT_PADDED), IN(LAYOUT_PADDED), IN(LAYOUT_PADDED)}, 0, 0},
    {"padded rows in [64,64]", SOME, PLAIN, 2, {64, 64}, D,
     {IN(LAYOUT_PADDED), IN(D), IN(D)}, 0, 0},
    {"padded rows out [61,67]", SOME, PLAIN, 2, {61, 67}, LAYOUT_PADDED,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"step [257]", SOME, PLAIN, 1, {257}, LAYOUT_STEP,
     {IN(LAYOUT_STEP), IN(LAYOUT_STEP), IN(LAYOUT_STEP)}, 0, 0},
    {"step out [301]", SOME, PLAIN, 1, {301}, LAYOUT_STEP,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"transposed in [35,67]", ALWAYS, PLAIN, 2, {35, 67}, D,
     {IN(LAYOUT_REVERSED), IN(D), IN(LAYOUT_REVERSED)}, 0, 0},
    {"crossing in tiles [64,96]", SOME, PLAIN, 2, {64, 96}, D,
     {IN(LAYOUT_REVERSED), IN(D), IN(LAYOUT_REVERSED)}, 0, 0},
    {"crossing in tiles [3,32,64]", SOME, PLAIN, 3, {3, 32, 64}, D,
     {IN(D), IN(LAYOUT_REVERSED), IN(D)}, 0, 0},
    {"long rows padded [5,301]", SOME, PLAIN, 2, {5, 301}, LAYOUT_PADDED,
     {IN(LAYOUT_PADDED), IN(LAYOUT_PADDED), IN(D)}, 0, 0},
    {"transposed out [41,23]", SOME, PLAIN, 2, {41, 23}, LAYOUT_REVERSED,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"transposed all [19,43]", SOME, PLAIN, 2, {19, 43}, LAYOUT_REVERSED,
     {IN(LAYOUT_REVERSED), IN(LAYOUT_REVERSED), IN(LAYOUT_REVERSED)}, 0, 0},
    {"permuted [3,5,7,11]", SOME, PLAIN, 4, {3, 5, 7, 11}, LAYOUT_PERMUTED,
     {IN(LAYOUT_PERMUTED), IN(LAYOUT_PERMUTED), IN(LAYOUT_PERMUTED)}, 0, 0},
    {"negative [101]", SOME, PLAIN, 1, {101}, D,
     {IN(LAYOUT_NEGATIVE), IN(LAYOUT_NEGATIVE), IN(D)}, 0, 0},
    {"negative [9,13,3]", ALWAYS, PLAIN, 3, {9, 13, 3}, LAYOUT_NEGATIVE,
     {IN(LAYOUT_NEGATIVE), IN(LAYOUT_NEGATIVE), IN(LAYOUT_NEGATIVE)}, 0, 0},
    {"zero strides [12,15]", SOME, PLAIN, 2, {12, 15}, D,
     {IN(LAYOUT_ZERO), IN(LAYOUT_ZERO), IN(LAYOUT_ZERO)}, 0, 0},
    {"zero stride [200]", SOME, PLAIN, 1, {200}, D,
     {IN(LAYOUT_ZERO), IN(D), IN(D)}, 0, 0},
    {"rank 8", SOME, PLAIN, 8, {2, 1, 3, 2, 1, 2, 2, 3}, LAYOUT_RANDOM,
     {IN(LAYOUT_RANDOM), IN(LAYOUT_RANDOM), IN(LAYOUT_RANDOM)}, 0, 0},
    {"rank 8 dense", SOME, PLAIN, 8, {2, 2, 2, 2, 3, 1, 2, 3}, D,
     {IN(D), IN(D), IN(D)}, 0, 0},
    {"large transposed [1031,1021]", FULL, PLAIN, 2, {1031, 1021}, D,
     {IN(LAYOUT_REVERSED), IN(D), IN(D)}, 0, 0},
    {"large padded [1021,1031]", FULL, PLAIN, 2, {1021, 1031}, LAYOUT_PADDED,
     {IN(LAYOUT_PADDED), IN(LAYOUT_PADDED), IN(D)}, 0, 0},
    {"broadcast [4,5] with [5]", ALWAYS, BROADCAST, 2, {4, 5}, D,
     {IN(D), {D, 1, 0}, IN(D)}, 0, 0},
    {"broadcast [5] with [4,5]", SOME, BROADCAST, 2, {4, 5}, D,
     {{D, 1, 0}, IN(D), {D, 1, 0}}, 0, 0},
    {"broadcast [4,1] with [1,5]", SOME, BROADCAST, 2, {4, 5}, D,
     {{D, 0, 2}, {D, 0, 1}, IN(D)}, 0, 0},
    {"broadcast [3,1,5] with [7,1]", SOME, BROADCAST, 3, {3, 7, 5}, D,
     {{D, 0, 2}, {D, 1, 4}, IN(D)}, 0, 0},
    {"broadcast [] with [61]", SOME, BROADCAST, 1, {61}, D,
     {{D, 1, 0}, IN(D), IN(D)}, 0, 0},
    {"broadcast [61] with []", SOME, BROADCAST, 1, {61}, D,
     {IN(D), {D, 1, 0}, {D, 1, 0}}, 0, 0},
    {"broadcast [2,3,4,5] with [3,1,5]", SOME, BROADCAST, 4, {2, 3, 4, 5}, D,
     {IN(D), {D, 1, 4}, {D, 0, 7}}, 0, 0},
    {"broadcast rows [301,257]", SOME, BROADCAST, 2, {301, 257}, D,
     {IN(D), {D, 1, 0}, IN(D)}, 0, 0},
    {"broadcast columns [301,257]", SOME, BROADCAST, 2, {301, 257}, D,
     {IN(D), {D, 0, 2}, IN(D)}, 0, 0},
    {"broadcast strided [6,1,9] with [8,1]", SOME, BROADCAST, 3, {6, 8, 9},
     LAYOUT_RANDOM,
     {{LAYOUT_RANDOM, 0, 2}, {LAYOUT_RANDOM, 1, 4}, IN(LAYOUT_RANDOM)}, 0, 0},
    {"broadcast empty [0,1] with [3]", SOME, BROADCAST, 2, {0, 3}, D,
     {{D, 0, 2}, {D, 1, 0}, IN(D)}, 0, 0},
    {"broadcast both rows [1,7] [1,7]", SOME, BROADCAST, 2, {1, 7}, D,
     {IN(D), IN(D), {D, 2, 0}}, 0, 0},
    {"scalar second [1023]", ALWAYS, SCALARS, 1, {1023}, D,
     {IN(D), IN(D), IN(D)}, 2, 0},
    {"scalar first [517]", ALWAYS, SCALARS, 1, {517}, D, {IN(D), IN(D), IN(D)},
     1, 0},
    {"scalar second strided [13,9]", SOME, SCALARS, 2, {13, 9}, LAYOUT_RANDOM,
     {IN(LAYOUT_RANDOM), IN(D), IN(LAYOUT_RANDOM)}, 2, 0},
    {"scalar third [99]", SOME, SCALARS, 1, {99}, D, {IN(D), IN(D), IN(D)}, 4,
     0},
    {"scalars second and third [99]", SOME, SCALARS, 1, {99}, D,
     {IN(D), IN(D), IN(D)}, 6, 0},
    {"scalars first and third [77]", SOME, SCALARS, 1, {77}, D,
     {IN(D), IN(D), IN(D)}, 5, 0},
    {"scalars first and second [55]", SOME, SCALARS, 1, {55}, D,
     {IN(D), IN(D), IN(D)}, 3, 0},
    {"scalar second, rank 0", SOME, SCALARS, 0, {0}, D, {IN(D), IN(D), IN(D)},
     2, 0},
    {"in place [1021]", ALWAYS, IN_PLACE, 1, {1021}, D, {IN(D), IN(D), IN(D)},
     0, 0},
    {"in place second [1021]", SOME, IN_PLACE, 1, {1021}, D,
     {IN(D), IN(D), IN(D)}, 0, 1},
    {"in place third [511]", SOME, IN_PLACE, 1, {511}, D,
     {IN(D), IN(D), IN(D)}, 0, 2},
    {"in place strided [15,21]", SOME, IN_PLACE, 2, {15, 21}, LAYOUT_RANDOM,
     {IN(LAYOUT_RANDOM), IN(LAYOUT_RANDOM), IN(D)}, 0, 0},
    {"in place offset [777]", SOME, IN_PLACE, 1, {777}, LAYOUT_OFFSET,
     {IN(LAYOUT_OFFSET), IN(LAYOUT_OFFSET), IN(D)}, 0, 0},
};

#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

static bool class_broadcasts(uint32_t op_class)
{
    return op_class == TANDEM_CLASS_BINARY ||
           op_class == TANDEM_CLASS_COMPARE ||
           op_class == TANDEM_CLASS_LOGICAL || op_class == TANDEM_CLASS_TERNARY;
}

static uint32_t input_dtype(const struct op_row *row, uint32_t i)
{
    if (row->op_class == TANDEM_CLASS_LOGICAL ||
        (row->id == TANDEM_OP_WHERE && i == 0))
        return TANDEM_BOOL;
    return TANDEM_F32;
}

static bool form_supports_operator(const struct form *form,
                                   const struct op_row *row)
{
    uint32_t all = (1u << row->inputs) - 1u;

    if (form->kind == BROADCAST)
        return class_broadcasts(row->op_class) && row->inputs > 1;
    if (form->kind == SCALARS)
        return class_broadcasts(row->op_class) && row->inputs > 1 &&
               (form->scalars & ~all) == 0 && form->scalars != all;
    if (form->kind == IN_PLACE)
        return form->in_place < row->inputs &&
               input_dtype(row, form->in_place) == call_out_dtype(row);
    return true;
}

/* Sets the attributes: alpha of leaky_relu and elu, bounds of clip. */
static void attributes_fill(struct suite *suite, struct call *call)
{
    struct random *random = &suite->random;

    if (call->row->id == TANDEM_OP_GELU)
        call->ints[0] = random_between(random, 0, 1);
    call->floats[0] = (double)(float)random_uniform(random, 0.01, 1.5);
    if (call->row->id == TANDEM_OP_CLIP) {
        call->floats[0] = -0.75;
        call->floats[1] = random_once_in(random, 4) ? (double)INFINITY : 1.25;
    }
}

/* Returns the k-th scalar, in the order of the NULL inputs. */
static double scalar_value(struct random *random, const struct op_row *row,
                           uint32_t i)
{
    if (input_dtype(row, i) == TANDEM_BOOL)
        return (double)random_below(random, 2);
    return (double)input_value(random, row->id);
}

static void input_build(struct suite *suite, struct call *call,
                        const struct form *form, uint32_t i)
{
    int64_t shape[TANDEM_MAX_RANK];
    const struct form_input *how = &form->in[i];
    uint32_t rank = form->rank, drop = 0;

    if (form->kind == SCALARS && (form->scalars & (1u << i))) {
        double value = scalar_value(&suite->random, call->row, i);

        operand_scalar(&call->inputs[i], value);
        call->floats[call->float_count++] = value;
        return;
    }
    if (form->kind == BROADCAST)
        drop = how->drop;
    for (uint32_t axis = drop; axis < rank; axis++) {
        bool one = form->kind == BROADCAST && (how->ones & (1u << axis)) != 0;

        shape[axis - drop] = one ? 1 : form->shape[axis];
    }
    operand_init(&call->inputs[i], &suite->random, input_dtype(call->row, i),
                 rank - drop, shape, how->layout, false);
    operand_fill(&call->inputs[i], &suite->random, call->row->id);
}

/* Creates equal elements, which comparisons, min and max need to be tested. */
static void ties_make(struct suite *suite, struct call *call)
{
    struct operand *a = &call->inputs[0], *b = &call->inputs[1];

    if (call->row->inputs < 2 || !a->present || !b->present ||
        a->desc.dtype != b->desc.dtype)
        return;
    for (int64_t i = 0; i < a->elements && i < b->elements; i++)
        if (random_once_in(&suite->random, 4))
            operand_set(b, i, operand_get(a, i));
}

/*
 * Input i takes the i-th digit of the element's number as the index of its
 * value. The index after the special values stands for values near the
 * operator's special points.
 */
static void specials_fill(struct suite *suite, struct call *call)
{
    int64_t radix = input_special_count() + 4;

    for (uint32_t i = 0; i < call->row->inputs; i++) {
        struct operand *operand = &call->inputs[i];

        if (operand->desc.dtype != TANDEM_F32)
            continue;
        for (int64_t e = 0; e < operand->elements; e++) {
            int64_t digit = i == 0 ? e % radix : e / radix % radix;
            float value = digit < input_special_count()
                              ? input_special((uint32_t)digit)
                              : input_near(&suite->random, call->row->id);

            if (call->row->inputs == 3 && i == 2)
                value = input_special((uint32_t)random_u64(&suite->random));
            operand_set(operand, e, bits_from_float(value));
        }
    }
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct form *form)
{
    struct call call;

    if (!case_begin(suite, row->name, "%s", form->name))
        return;
    call_init(&call, row);
    attributes_fill(suite, &call);
    for (uint32_t i = 0; i < row->inputs; i++)
        input_build(suite, &call, form, i);
    ties_make(suite, &call);
    if (form->kind == SPECIALS)
        specials_fill(suite, &call);
    if (form->kind == IN_PLACE) {
        operand_finish(&call.inputs[form->in_place]);
        operand_init(&call.inputs[form->in_place], &suite->random,
                     input_dtype(row, form->in_place), form->rank, form->shape,
                     form->out, true);
        operand_fill(&call.inputs[form->in_place], &suite->random, row->id);
        call.alias[0] = (int32_t)form->in_place;
    } else {
        operand_init(&call.outputs[0], &suite->random, call_out_dtype(row),
                     form->rank, form->shape, form->out, true);
    }
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * Powers with a single exponent, because implementations compute some
 * exponents separately.
 */
static void powers_run(struct suite *suite, const struct op_row *row)
{
    static const double powers[] = {0.5, -0.5, 2, 3, 4, -2};
    static const int64_t shape[1] = {1023};

    for (size_t i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
        struct call call;
        if (!case_begin(suite, row->name, "by %g", powers[i]))
            continue;
        call_init(&call, row);
        operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     false);
        operand_fill(&call.inputs[0], &suite->random, row->id);
        specials_fill(suite, &call);
        operand_scalar(&call.inputs[1], powers[i]);
        call.floats[call.float_count++] = powers[i];
        operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     true);
        call_run(suite, &call);
        call_finish(&call);
        case_end(suite);
    }
}

/* Bounds of clip that are NaN or out of order. */
static void bounds_run(struct suite *suite, const struct op_row *row)
{
    static const double nan = (double)NAN, infinite = (double)INFINITY;
    const double bounds[][2] = {{nan, 1},  {-1, nan},
                                {nan, nan}, {-infinite, infinite},
                                {1, -1},   {infinite, -infinite}};
    static const int64_t shape[1] = {1023};

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        struct call call;
        if (!case_begin(suite, row->name, "bounds %g %g", bounds[i][0],
                        bounds[i][1]))
            continue;
        call_init(&call, row);
        memcpy(call.floats, bounds[i], sizeof(bounds[i]));
        operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     false);
        operand_fill(&call.inputs[0], &suite->random, row->id);
        specials_fill(suite, &call);
        operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     true);
        call_run(suite, &call);
        call_finish(&call);
        case_end(suite);
    }
}

/*
 * Slopes that f32 cannot represent: none may become 0 or infinite. Inputs are
 * not subnormal, because the largest slopes would scale their rounding errors
 * into the normal range.
 */
static void slopes_run(struct suite *suite, const struct op_row *row)
{
    static const double slopes[] = {1e-46, -1e-46, 1e-320, 1e39, -1e300};
    static const float specials[] = {-INFINITY, INFINITY, NAN, -0.0f, -FLT_MAX,
                                     -1e-30f};
    static const int64_t shape[1] = {1023};

    for (size_t i = 0; i < sizeof(slopes) / sizeof(slopes[0]); i++) {
        struct call call;
        if (!case_begin(suite, row->name, "slope %g", slopes[i]))
            continue;
        call_init(&call, row);
        call.floats[0] = slopes[i];
        operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     false);
        operand_fill_normal(&call.inputs[0], &suite->random, 1.0, 0.0);
        for (int64_t k = 0; k < 6; k++)
            operand_set(&call.inputs[0], k, bits_from_float(specials[k]));
        operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 1, shape, D,
                     true);
        call_run(suite, &call);
        call_finish(&call);
        case_end(suite);
    }
}

/* Runs a random form. */
static void random_form_run(struct suite *suite, const struct op_row *row,
                            uint32_t number, struct random *random)
{
    char name[40];
    struct form form = {.kind = PLAIN, .out = LAYOUT_RANDOM};
    int64_t room = 3000;

    snprintf(name, sizeof(name), "random %u", number);
    form.name = name;
    form.rank = (uint32_t)random_below(random, 7);
    for (uint32_t i = 0; i < form.rank; i++) {
        form.shape[i] = random_between(random, 1, room < 40 ? room : 40);
        room /= form.shape[i];
    }
    if (class_broadcasts(row->op_class) && row->inputs > 1)
        form.kind = BROADCAST;
    /* One input has the shape of the output. */
    for (uint32_t i = 0; i < 3; i++) {
        form.in[i].layout = LAYOUT_RANDOM;
        if (i == number % row->inputs)
            continue;
        form.in[i].drop = (uint32_t)random_below(random, form.rank + 1u);
        form.in[i].ones =
            (uint32_t)random_u64(random) & (uint32_t)random_u64(random);
    }
    form_run(suite, row, &form);
}

/*
 * Returns the number of smoke runs in which a form runs once. Operators with
 * more inputs run their forms more often, because there are fewer of these
 * operators.
 */
static uint32_t form_smoke_period(const struct op_row *row,
                                  enum form_level level)
{
    if (row->inputs == 1)
        return level == ALWAYS ? 8 : 24;
    if (row->inputs == 2)
        return level == ALWAYS ? 5 : 12;
    return level == ALWAYS ? 1 : 2;
}

static bool form_is_selected(const struct suite *suite,
                             const struct op_row *row, uint32_t number,
                             bool chosen)
{
    enum form_level level = forms[number].level;
    uint64_t turn = suite->options->seed + row->id + number;

    if (suite->options->full || level == CORE)
        return true;
    if (level == FULL || suite->options->filter != NULL)
        return level != FULL;
    /*
     * Some compilers need half a minute for each kernel of these two
     * operators.
     */
    if (suite->options->smoke &&
        (row->id == TANDEM_OP_SIN || row->id == TANDEM_OP_COS))
        return false;
    if (suite->options->smoke)
        return turn % form_smoke_period(row, level) == 0;
    return level == ALWAYS || chosen;
}

static void operator_run(struct suite *suite, const struct op_row *row)
{
    uint32_t randoms = suite->options->full ? 60 : 3;
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    if (suite->options->smoke)
        randoms = row->inputs > 1 && random_once_in(&choice, 4);
    for (uint32_t i = 0; i < FORM_COUNT; i++) {
        bool chosen = random_once_in(&choice, 3);

        if (form_is_selected(suite, row, i, chosen) &&
            form_supports_operator(&forms[i], row))
            form_run(suite, row, &forms[i]);
    }
    for (uint32_t i = 0; i < randoms; i++)
        random_form_run(suite, row, i, &choice);
    if (row->id == TANDEM_OP_POW)
        powers_run(suite, row);
    if (row->id == TANDEM_OP_CLIP)
        bounds_run(suite, row);
    if (row->id == TANDEM_OP_LEAKY_RELU || row->id == TANDEM_OP_ELU)
        slopes_run(suite, row);
}

void cases_elementwise(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        switch (row->op_class) {
        case TANDEM_CLASS_UNARY:
        case TANDEM_CLASS_BINARY:
        case TANDEM_CLASS_COMPARE:
        case TANDEM_CLASS_LOGICAL:
        case TANDEM_CLASS_TERNARY:
        case TANDEM_CLASS_GRADIENT:
            operator_run(suite, row);
            break;
        default:
            break;
        }
    }
}
