/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The element-wise classes: unary, binary, comparisons, logical, ternary and
 * gradients. The draws cover shapes, broadcasting, scalars and strides.
 */
#include "element_value.h"
#include "elementwise_reference.h"

#include <float.h>
#include <math.h>

static const struct domain domains[] = {
    {TANDEM_OP_FLOOR, -9, 9, 5, {0, 0.5, -0.5, 8388608, -8388608}},
    {TANDEM_OP_CEIL, -9, 9, 5, {0, 0.5, -0.5, 8388608, -8388608}},
    {TANDEM_OP_ROUND, -9, 9, 6, {0.5, -0.5, 1.5, 2.5, 8388607.5, -3.5}},
    {TANDEM_OP_SQRT, 0, 100, 2, {0, 1}},
    {TANDEM_OP_RSQRT, 0, 100, 2, {1, 4}},
    {TANDEM_OP_RECIPROCAL, -10, 10, 4, {1, -1, 0x1p126, 0x1p-126}},
    {TANDEM_OP_EXP, -105, 90, 5, {0, 88.7228, -87.3365, -103.97, 1}},
    {TANDEM_OP_EXPM1, -20, 90, 4, {0, 88.7228, -17.4, 0.5}},
    {TANDEM_OP_LOG, 0, 10, 3, {1, 0, 0x1p-126}},
    {TANDEM_OP_LOG1P, -1, 10, 3, {-1, 0, 0.5}},
    {TANDEM_OP_SIN, -20, 20, 5, {0, 3.14159265, 1.57079633, 1e5, 6.2831853}},
    {TANDEM_OP_COS, -20, 20, 5, {0, 3.14159265, 1.57079633, 1e5, 4.712389}},
    {TANDEM_OP_TANH, -12, 12, 4, {0, 9.0109, -9.0109, 0.55}},
    {TANDEM_OP_ERF, -5, 5, 5, {0, 0.84375, 1.25, 3.92, -0.84375}},
    {TANDEM_OP_SIGMOID, -110, 30, 4, {0, -88.7228, -103.97, 17}},
    {TANDEM_OP_ELU, -20, 5, 2, {0, -17.4}},
    {TANDEM_OP_CLIP, -3, 3, 2, {-0.75, 1.25}},
    {TANDEM_OP_SWISH, -110, 30, 4, {0, -88.7228, -1.2785, 17}},
    {TANDEM_OP_GELU, -14, 10, 4, {0, -0.7518, -5.5, -13}},
    {TANDEM_OP_SOFTPLUS, -110, 40, 5, {0, -88.7228, 88.7228, 20, -16.6}},
    {TANDEM_OP_MISH, -110, 40, 4, {0, -88.7228, -1.1924, 20}},
    {TANDEM_OP_HARDSWISH, -5, 5, 3, {-3, 3, 0}},
    {TANDEM_OP_HARDSIGMOID, -5, 5, 3, {-2.5, 2.5, 0}},
    {TANDEM_OP_SOFTSIGN, -9, 9, 3, {0, 1, 0x1p127}},
    {TANDEM_OP_SELU, -20, 5, 2, {0, -17.4}},
    {TANDEM_OP_CELU, -20, 5, 3, {0, -17.4, -1e-8}},
    {TANDEM_OP_THRESHOLDED_RELU, -3, 3, 2, {0, 1}},
    {TANDEM_OP_TAN, -20, 20, 5, {0, 1.57079633, 0.785398163, 1e5, 3.14159265}},
    {TANDEM_OP_ASIN, -1, 1, 4, {0, 1, -1, 0.5}},
    {TANDEM_OP_ACOS, -1, 1, 4, {0, 1, -1, 0.5}},
    {TANDEM_OP_ATAN, -10, 10, 3, {0, 1, -1}},
    {TANDEM_OP_SINH, -95, 95, 5, {0, 88.7228, 89.4159, -89.4159, 1}},
    {TANDEM_OP_COSH, -95, 95, 5, {0, 88.7228, 89.4159, -89.4159, 1}},
    {TANDEM_OP_ASINH, -10, 10, 4, {0, 1, 1e18, -1e19}},
    {TANDEM_OP_ACOSH, 1, 100, 3, {1, 1e18, 1e19}},
    {TANDEM_OP_ATANH, -1, 1, 4, {0, 1, -1, 0.5}},
    {TANDEM_OP_EXP2, -155, 130, 5, {0, 128, -126, -149, 1}},
    {TANDEM_OP_LOG2, 0, 10, 3, {1, 0, 0x1p-126}},
    {TANDEM_OP_MOD, -10, 10, 4, {0, 1, -3, 0.5}},
    {TANDEM_OP_FMOD, -10, 10, 4, {0, 1, -3, 0.5}},
    {TANDEM_OP_POW, -5, 10, 5, {0, 1, -1, 2, 0.5}},
};

/* Returns true if the operator also computes i32 and i64. */
static bool supports_integers(const struct op_row *row)
{
    switch (row->id) {
    case TANDEM_OP_NEG:
    case TANDEM_OP_ABS:
    case TANDEM_OP_SIGN:
    case TANDEM_OP_WHERE:
        return true;
    case TANDEM_OP_POW:
    case TANDEM_OP_PRELU:
        return false;
    default:
        return (row->op_class == TANDEM_CLASS_BINARY ||
                row->op_class == TANDEM_CLASS_COMPARE) &&
               row->inputs == 2;
    }
}

/* In these functions, dtype is that of the operands that are not BOOL. */
static uint32_t input_dtype(const struct op_row *row, uint32_t i,
                            uint32_t dtype)
{
    return row->op_class == TANDEM_CLASS_LOGICAL ||
                   (row->id == TANDEM_OP_WHERE && i == 0)
               ? TANDEM_BOOL
               : dtype;
}

static uint32_t output_dtype(const struct op_row *row, uint32_t dtype)
{
    return row->op_class == TANDEM_CLASS_COMPARE ||
                   row->op_class == TANDEM_CLASS_LOGICAL
               ? TANDEM_BOOL
               : dtype;
}

/* ---- cases ---- */

/*
 * Input i takes the i-th digit of the element's number as the index of its
 * value. The index after the special values stands for values near the
 * operator's special points.
 */
static void special_integers_fill(struct operand *operand, int64_t period)
{
    static const int64_t values[] = {0, 1, -1, 2, -2, 3, -7, 255, 1 << 30};
    const int64_t radix = COUNT_OF(values) + 4;
    const int64_t largest =
        operand->desc.dtype == TANDEM_I32 ? INT32_MAX : INT64_MAX;

    for (int64_t e = 0; e < operand->elements; e++) {
        int64_t digit = e / period % radix;

        operand_set(operand, e,
                    (uint64_t)(digit >= 4       ? values[digit - 4]
                               : digit % 2 == 0 ? largest - digit / 2
                                                : -largest - digit / 2));
    }
}

static void specials_fill(struct call *call)
{
    int64_t radix = input_special_count() + 4;

    for (uint32_t i = 0; i < call->inputs; i++) {
        struct operand *operand = &call->operands[i];

        if (!operand->present || operand->desc.dtype == TANDEM_BOOL)
            continue;
        if (operand->desc.dtype != TANDEM_F32) {
            special_integers_fill(operand, i == call->inputs - 1 ? 1 : 13);
            continue;
        }
        for (int64_t e = 0; e < operand->elements; e++) {
            int64_t digit = i == 0 ? e % radix : e / radix % radix;
            float value = digit < input_special_count()
                              ? input_special((uint32_t)digit)
                              : input_near(call->random, call->row);

            if (call->inputs == 3 && i == 2)
                value = input_special((uint32_t)random_u64(call->random));
            operand_set(operand, e, bits_from_float(value));
        }
    }
}

/*
 * Attributes and scalars that implementations treat separately: exponents of
 * pow, bounds of clip that are NaN or out of order, and slopes that f32 cannot
 * represent, none of which may become 0 or infinite.
 */
static const struct {
    uint32_t op;
    const char *name;
    double value, second;
} attribute_cases[] = {
    {TANDEM_OP_POW, "by 0.5", 0.5, 0},
    {TANDEM_OP_POW, "by -0.5", -0.5, 0},
    {TANDEM_OP_POW, "by 2", 2, 0},
    {TANDEM_OP_POW, "by 3", 3, 0},
    {TANDEM_OP_POW, "by 4", 4, 0},
    {TANDEM_OP_POW, "by -2", -2, 0},
    {TANDEM_OP_CLIP, "bounds nan 1", (double)NAN, 1},
    {TANDEM_OP_CLIP, "bounds -1 nan", -1, (double)NAN},
    {TANDEM_OP_CLIP, "bounds nan nan", (double)NAN, (double)NAN},
    {TANDEM_OP_CLIP, "bounds -inf inf", (double)-INFINITY, (double)INFINITY},
    {TANDEM_OP_CLIP, "bounds 1 -1", 1, -1},
    {TANDEM_OP_CLIP, "bounds inf -inf", (double)INFINITY, (double)-INFINITY},
    {TANDEM_OP_LEAKY_RELU, "slope 1e-46", 1e-46, 0},
    {TANDEM_OP_LEAKY_RELU, "slope -1e-46", -1e-46, 0},
    {TANDEM_OP_LEAKY_RELU, "slope 9.99989e-321", 1e-320, 0},
    {TANDEM_OP_LEAKY_RELU, "slope 1e+39", 1e39, 0},
    {TANDEM_OP_LEAKY_RELU, "slope -1e+300", -1e300, 0},
    {TANDEM_OP_ELU, "slope 1e-46", 1e-46, 0},
    {TANDEM_OP_ELU, "slope -1e-46", -1e-46, 0},
    {TANDEM_OP_ELU, "slope 9.99989e-321", 1e-320, 0},
    {TANDEM_OP_ELU, "slope 1e+39", 1e39, 0},
    {TANDEM_OP_ELU, "slope -1e+300", -1e300, 0},
    {TANDEM_OP_SELU, "factor 1e-46", 1e-46, 1},
    {TANDEM_OP_SELU, "factor 1e+39", 1e39, 1},
    {TANDEM_OP_SELU, "alpha 1e+30, gamma 1e-30", 1e30, 1e-30},
    {TANDEM_OP_SELU, "alpha 1, gamma -1e+300", 1, -1e300},
    {TANDEM_OP_CELU, "alpha 1e-46", 1e-46, 0},
    {TANDEM_OP_CELU, "alpha 1e-30", 1e-30, 0},
    {TANDEM_OP_CELU, "alpha 1e+39", 1e39, 0},
    {TANDEM_OP_HARDSIGMOID, "alpha 0", 0, 0.5},
    {TANDEM_OP_HARDSIGMOID, "alpha 1e+39", 1e39, -1},
    {TANDEM_OP_HARDSIGMOID, "alpha -2, beta -1e+39", -2, -1e39},
    {TANDEM_OP_THRESHOLDED_RELU, "alpha -1", -1, 0},
    {TANDEM_OP_THRESHOLDED_RELU, "alpha 0", 0, 0},
    {TANDEM_OP_THRESHOLDED_RELU, "alpha -1e+39", -1e39, 0},
};

/*
 * Inputs of slopes are not subnormal, because the largest slopes would scale
 * their rounding errors into the normal range.
 */
static void slope_input_fill(struct call *call)
{
    static const float values[] = {-INFINITY, INFINITY, NAN,
                                   -0.0f,     -FLT_MAX, -1e-30f};

    operand_fill_normal(&call->operands[0], call->random, 1.0, 0.0);
    for (int64_t i = 0; i < COUNT_OF(values); i++)
        operand_set(&call->operands[0], i, bits_from_float(values[i]));
}

static void attribute_case_run(struct suite *suite, const struct op_row *row,
                               uint32_t number)
{
    static const struct shape shape = S(1023);
    const double value = attribute_cases[number].value;
    struct call *call =
        call_begin(suite, row, "%s", attribute_cases[number].name);

    if (call == NULL)
        return;
    call->floats[0] = value;
    call->floats[1] = attribute_cases[number].second;
    call_operand(call, 0, TANDEM_F32, &shape, DENSE);
    if (row->id == TANDEM_OP_LEAKY_RELU || row->id == TANDEM_OP_ELU ||
        row->id == TANDEM_OP_SELU || row->id == TANDEM_OP_CELU) {
        slope_input_fill(call);
    } else {
        operand_fill(&call->operands[0], call->random, row);
        specials_fill(call);
    }
    if (row->id == TANDEM_OP_POW)
        call_scalar(call, 1, TANDEM_F32, value);
    call_operand(call, call->inputs, TANDEM_F32, &shape, DENSE);
    call_end(suite, call);
}

/* Each combination of special values. */
static void specials_run(struct suite *suite, const struct op_row *row,
                         uint32_t dtype)
{
    static const struct shape shape = S(1024);
    struct call *call =
        call_begin(suite, row, "specials %s", dtype_text(dtype));

    if (call == NULL)
        return;
    call->floats[0] = row->id == TANDEM_OP_CLIP ? -0.75 : 0.5;
    call->floats[1] = 1.25;
    for (uint32_t i = 0; i < row->inputs; i++)
        operand_fill(
            call_operand(call, i, input_dtype(row, i, dtype), &shape, DENSE),
            call->random, row);
    specials_fill(call);
    call_operand(call, row->inputs, output_dtype(row, dtype), &shape, DENSE);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    specials_run(suite, row, TANDEM_F32);
    if (supports_integers(row) && !suite->options->smoke) {
        specials_run(suite, row, TANDEM_I32);
        specials_run(suite, row, TANDEM_I64);
    }
    for (uint32_t i = 0; i < COUNT_OF(attribute_cases); i++)
        if (attribute_cases[i].op == row->id)
            attribute_case_run(suite, row, i);
}

/* ---- random calls ---- */

/* Selects the axes that each input has in full. Each axis is in one of them. */
static void axes_share(struct random *random, uint32_t rank, uint32_t inputs,
                       uint32_t scalars, uint32_t *full)
{
    uint32_t all = (1u << rank) - 1u, last = 0;

    for (uint32_t i = 0; i < inputs; i++) {
        full[i] = all;
        if (random_once_in(random, 3))
            full[i] = (uint32_t)random_u64(random) & all;
        if (!(scalars >> i & 1u))
            last = i;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool found = false;

        for (uint32_t i = 0; i < inputs; i++)
            found |= !(scalars >> i & 1u) && (full[i] >> axis & 1u) != 0;
        if (!found)
            full[last] |= 1u << axis;
    }
}

/* Returns the dtype of the operands that are not BOOL. */
static uint32_t dtype_draw(const struct call *call, const struct block *block)
{
    static const uint32_t dtypes[] = {TANDEM_F32, TANDEM_F32, TANDEM_I32,
                                      TANDEM_I64};

    return supports_integers(call->row)
               ? dtypes[(block->numbers[0] + call->row->id) % COUNT_OF(dtypes)]
               : TANDEM_F32;
}

static void draw_broadcast(struct call *call, const struct block *block)
{
    const uint32_t dtype = dtype_draw(call, block);
    struct random *random = call->random;
    struct shape whole, own;
    uint32_t full[4], scalars = 0, all = (1u << call->inputs) - 1u;

    shape_draw(&whole, random, 0, TANDEM_MAX_RANK);
    if (call->inputs > 1 && random_once_in(random, 3))
        scalars = (uint32_t)random_below(random, all);
    axes_share(random, whole.rank, call->inputs, scalars, full);
    for (uint32_t i = 0; i < call->inputs; i++) {
        if (scalars >> i & 1u) {
            operand_scalar(&call->operands[i], input_dtype(call->row, i, dtype),
                           0.0);
            continue;
        }
        shape_narrow(&own, random, &whole, full[i]);
        operand_draw(call, i, input_dtype(call->row, i, dtype), &own);
    }
    operand_draw(call, call->inputs, output_dtype(call->row, dtype), &whole);
}

static void draw_equal_shapes(struct call *call, const struct block *block)
{
    const uint32_t dtype = dtype_draw(call, block);
    struct shape shape;

    shape_draw(&shape, call->random, 0, TANDEM_MAX_RANK);
    for (uint32_t i = 0; i <= call->inputs; i++)
        operand_draw(call, i, dtype, &shape);
    if (call->row->id == TANDEM_OP_GELU)
        call->ints[0] = random_between(call->random, 0, 1);
}

static void draw_attributes(struct call *call, const struct spread *spread)
{
    double *floats = call->floats;

    if (call->row->op_class == TANDEM_CLASS_UNARY)
        for (uint32_t i = 0; i < 2; i++)
            floats[i] = (double)(float)random_normal(call->random);
    if (call->row->id == TANDEM_OP_HARDSIGMOID &&
        random_once_in(call->random, 3))
        for (uint32_t i = 0; i < 2; i++)
            floats[i] = (double)random_wide(call->random);
    if (call->row->id == TANDEM_OP_CELU)
        floats[0] = fabs(floats[0]) + 0.0625;
    if (call->row->id == TANDEM_OP_IS_INF)
        for (uint32_t i = 0; i < 2; i++)
            call->ints[i] = random_between(call->random, 0, 1);
    if (call->row->id != TANDEM_OP_CLIP)
        return;
    floats[0] = (double)(float)value_draw(spread, call->random);
    floats[1] = (double)(float)value_draw(spread, call->random);
    if (isnan(floats[0]) || isnan(floats[1]))
        floats[0] = floats[1] = 1.0;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    for (uint32_t i = 0; i < p->row->inputs; i++)
        p->ins[i].dtype = input_dtype(p->row, i, TANDEM_F32);
    p->outs[0].dtype = output_dtype(p->row, TANDEM_F32);
}

#define UNARY_MISTAKES(X)                                                      \
    X(sqrt_i32, SQRT, "operands of i32", MAYBE_LATER,                          \
      p->ins[0].dtype = p->outs[0].dtype = TANDEM_I32)                         \
    X(slope_missing, LEAKY_RELU, "an attribute too few", 0,                    \
      p->op.float_count--)                                                     \
    X(floats_null, ELU, "attributes at NULL", ALWAYS_INVALID,                  \
      p->op.floats = NULL)                                                     \
    X(alpha_0, CELU, "alpha 0", 0, p->floats[0] = 0)                           \
    X(alpha_negative, CELU, "a negative alpha", 0, p->floats[0] = -1)          \
    X(alpha_nan, CELU, "alpha NaN", 0, p->floats[0] = (double)NAN)             \
    X(beta_missing, HARDSIGMOID, "an attribute too few", 0,                    \
      p->op.float_count--)                                                     \
    X(bound_missing, CLIP, "an attribute too few", 0, p->op.float_count--)     \
    X(form_missing, GELU, "an attribute too few", 0, p->op.int_count--)        \
    X(form_2, GELU, "form 2", 0, p->ints[0] = 2)                               \
    X(form_minus_1, GELU, "form -1", 0, p->ints[0] = -1)                       \
    X(form_large, GELU, "form 2^32", 0, p->ints[0] = INT64_C(1) << 32)
#define BINARY_MISTAKES(X)                                                     \
    X(no_broadcast, ADD, "shapes that do not broadcast", 0,                    \
      p->ins[0].shape[1] = 3)                                                  \
    X(other_output, ADD, "an output that is not the broadcast", 0,             \
      p->outs[0].shape[0] = 2)                                                 \
    X(scalar_missing, ADD, "a scalar without a value", 0,                      \
      p->in_pointers[0] = NULL)                                                \
    X(all_scalars, ADD, "scalars alone", 0,                                    \
      p->in_pointers[0] = p->in_pointers[1] = NULL)                            \
    X(add_u8, ADD, "operands of u8", MAYBE_LATER,                              \
      p->ins[0].dtype = p->ins[1].dtype = p->outs[0].dtype = TANDEM_U8)        \
    X(pow_i32, POW, "operands of i32", MAYBE_LATER,                            \
      p->ins[0].dtype = p->ins[1].dtype = p->outs[0].dtype = TANDEM_I32)       \
    X(add_i32_f32, ADD, "inputs of i32 and an output of f32", 0,               \
      p->ins[0].dtype = p->ins[1].dtype = TANDEM_I32)                          \
    X(dtypes_differ, ADD, "dtypes that differ", MAYBE_LATER,                   \
      p->ins[0].dtype = TANDEM_I32)
#define COMPARE_MISTAKES(X)                                                    \
    X(detect_2, IS_INF, "detect_negative 2", 0, p->ints[0] = 2)                \
    X(detect_minus_1, IS_INF, "detect_positive -1", 0, p->ints[1] = -1)        \
    X(detect_missing, IS_INF, "an attribute too few", 0, p->op.int_count--)    \
    X(less_f32, LESS, "an output of f32", MAYBE_LATER,                         \
      p->outs[0].dtype = TANDEM_F32)
#define LOGICAL_MISTAKES(X)                                                    \
    X(and_i32, AND, "an input of i32", MAYBE_LATER,                            \
      p->ins[0].dtype = TANDEM_I32)
#define TERNARY_MISTAKES(X)                                                    \
    X(where_differ, WHERE, "inputs of f32 and i32", 0,                         \
      p->ins[1].dtype = TANDEM_I32)                                            \
    X(where_i32, WHERE, "a condition of i32", MAYBE_LATER,                     \
      p->ins[0].dtype = TANDEM_I32)
#define GRADIENT_MISTAKES(X)                                                   \
    X(shapes_differ, RELU_GRAD, "shapes that differ", 0, p->ins[0].shape[1] = 3)

/* ---- the classes ---- */

#define CLASS(class, MISTAKES, class_rules, draw_function, weight_of_class)    \
    MISTAKE_TABLE(class##_mistakes, MISTAKES)                                  \
    const struct suite_class suite_##class = {                                 \
        .rules = class_rules,                                                  \
        .cases = cases,                                                        \
        .reference = elementwise_reference,                                    \
        .domains = domains,                                                    \
        .domain_count = COUNT_OF(domains),                                     \
        .draw = draw_function,                                                 \
        .draw_attributes = draw_attributes,                                    \
        .weight = weight_of_class,                                             \
        .make_valid = make_valid,                                              \
        CLASS_MISTAKES(class##_mistakes)};

CLASS(unary, UNARY_MISTAKES, IN_PLACE, draw_equal_shapes, 1)
CLASS(binary, BINARY_MISTAKES, BROADCASTS | IN_PLACE, draw_broadcast, 1)
CLASS(compare, COMPARE_MISTAKES, BROADCASTS | IN_PLACE, draw_broadcast, 1)
CLASS(logical, LOGICAL_MISTAKES, BROADCASTS | IN_PLACE, draw_broadcast, 1)
CLASS(ternary, TERNARY_MISTAKES, BROADCASTS | IN_PLACE, draw_broadcast, 2)
CLASS(gradient, GRADIENT_MISTAKES, IN_PLACE, draw_equal_shapes, 1)
