/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions, arg reductions and dot: drawn masks of axes, special values,
 * values of all magnitudes, and examples from bug reports.
 */
#include "element_value.h"
#include "row_case.h"
#include "slots.h"
#include "tolerance.h"

#include <math.h>

static const struct shape scalar = S0;

/* Examples from bug reports. */
static const struct example {
    uint32_t op;
    int64_t n;
    float values[6];
} examples[] = {
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

/* ---- reference ---- */

/* Returns true if a partial product may leave the normal range of f32. */
static bool prod_is_unspecified(const struct slot *slot)
{
    return slot->log2_above > 127.0 || slot->log2_below < -125.0;
}

static double log_sum(const struct slot *slot)
{
    if (slot->nan)
        return (double)NAN;
    if (slot->count == 0)
        return (double)-INFINITY;
    if (isinf(slot->max))
        return slot->max;
    return (double)(slot->max + logl(slot->exponentials));
}

static double slot_prod(const struct slot *slot)
{
    int64_t exponent = slot->exponent > 4096    ? 4096
                       : slot->exponent < -4096 ? -4096
                                                : slot->exponent;

    return (double)ldexpl(slot->product, (int)exponent);
}

static double slot_value(uint32_t id, const struct slot *slot,
                         double *out_scale)
{
    long double n = slot->count;

    *out_scale = (double)slot->magnitude;
    switch (id) {
    case TANDEM_OP_MEAN:
        *out_scale = (double)(slot->magnitude / n);
        return (double)(slot->sum / n);
    case TANDEM_OP_PROD:
        return slot_prod(slot);
    case TANDEM_OP_REDUCE_MAX:
        return slot->nan ? (double)NAN : slot->max;
    case TANDEM_OP_REDUCE_MIN:
        return slot->nan ? (double)NAN : slot->min;
    case TANDEM_OP_L2:
        *out_scale = (double)sqrtl(slot->magnitude);
        return (double)sqrtl(slot->sum);
    case TANDEM_OP_LOG_SUM_EXP:
        return log_sum(slot);
    default:
        return (double)slot->sum;
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct op_row *row = call->row;
    const uint32_t axes =
        row->id == TANDEM_OP_DOT ? 1u : (uint32_t)call->ints[0];
    struct slots slots;

    slots_init(&slots, call, in, axes, row->id == TANDEM_OP_LOG_SUM_EXP);
    expected_init(out, EXPECTED_REAL, slots.count);
    out->exact = row->metric == TANDEM_METRIC_EXACT;
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    if (row->metric == TANDEM_METRIC_PROD)
        expected_allow_unspecified(out);
    for (int64_t i = 0; i < slots.count; i++) {
        const struct slot *slot = &slots.all[i];
        double scale;

        out->real[i] = slot_value(row->id, slot, &scale);
        out->tolerance[i] = tolerance_reduction(row, slot, out->real[i], scale);
        if (out->unspecified != NULL && prod_is_unspecified(slot))
            out->unspecified[i] = UNSPECIFIED_UNLESS_NAN;
    }
    slots_finish(&slots);
}

static void reference_arg(const struct call *call, const struct dense *in,
                          struct expected *out)
{
    struct slots slots;

    slots_init(&slots, call, in, (uint32_t)call->ints[0], false);
    expected_init(out, EXPECTED_INTEGER, slots.count);
    for (int64_t i = 0; i < slots.count; i++)
        out->integer[i] = call->row->id == TANDEM_OP_ARGMAX
                              ? slots.all[i].max_at
                              : slots.all[i].min_at;
    slots_finish(&slots);
}

/* ---- reductions ---- */

static uint32_t output_dtype(const struct op_row *row)
{
    return row->op_class == TANDEM_CLASS_ARG_REDUCE ? TANDEM_I64 : TANDEM_F32;
}

/* Other cases test that max, min and the arg reductions reject empty rows. */
static bool empty_allowed(const struct op_row *row)
{
    return row->op_class == TANDEM_CLASS_REDUCE &&
           row->id != TANDEM_OP_REDUCE_MAX && row->id != TANDEM_OP_REDUCE_MIN;
}

static void ordinary_fill(struct operand *operand, struct random *random,
                          const struct op_row *row, int64_t n)
{
    if (row->id != TANDEM_OP_PROD) {
        operand_fill_normal(operand, random, 1, 0);
        return;
    }
    for (int64_t i = 0; i < operand->elements; i++)
        element_set(operand, i, input_factor(random, n));
}

/* ---- magnitudes: [outer, n, inner] over the middle axis ---- */

enum balance {
    PLAIN,    /* Any signs. */
    BALANCED, /* The second half cancels the first. */
    BALANCES
};

static const struct {
    struct shape shape;
    enum operand_layout layout;
} magnitude_forms[] = {
    {S(5, 512, 1), DENSE},   {S(1, 300, 20), DENSE}, {S(40, 4, 1), DENSE},
    {S(1, 70001, 1), DENSE}, {S(3, 1021, 1), DENSE}, {S(3, 37, 5), ANY},
    {S(1, 9001, 4), DENSE},
};

static void magnitude_fill(struct operand *operand, struct random *random,
                           int64_t n, int64_t inner,
                           const struct magnitude *size, enum balance balance)
{
    int64_t half = balance == BALANCED ? n / 2 : 0;

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t at = i / inner % n;
        double x = input_of_magnitude(random, size);

        if (at >= half && at < 2 * half)
            x = -bits_real(TANDEM_F32, operand_get(operand, i - half * inner));
        operand_set(operand, i, bits_from_float((float)x));
    }
}

static void magnitude_run(struct suite *suite, const struct op_row *row,
                          uint32_t form, const struct magnitude *size,
                          enum balance balance)
{
    const struct shape *in = &magnitude_forms[form].shape;
    const struct shape out = S(in->at[0], in->at[2]);
    struct call *call =
        call_begin(suite, row, "magnitude %s%s [%d,%d,%d]", size->name,
                   balance == BALANCED ? " balanced" : "", (int)in->at[0],
                   (int)in->at[1], (int)in->at[2]);

    if (call == NULL)
        return;
    call->ints[0] = 2;
    magnitude_fill(
        call_operand(call, 0, TANDEM_F32, in, magnitude_forms[form].layout),
        call->random, in->at[1], in->at[2], size, balance);
    call_operand(call, 1, output_dtype(row), &out, DENSE);
    call_end(suite, call);
}

/* At the full level, each magnitude is tested with all shapes. */
static void magnitudes_run(struct suite *suite, const struct op_row *row)
{
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++)
        for (uint32_t balance = 0; balance < BALANCES; balance++, next++)
            for (uint32_t k = 0; k < COUNT_OF(magnitude_forms); k++)
                if (suite->options->full ||
                    k == next % COUNT_OF(magnitude_forms))
                    magnitude_run(suite, row, k, &magnitudes[i],
                                  (enum balance)balance);
}

static void examples_run(struct suite *suite, const struct op_row *row)
{
    for (uint32_t i = 0; i < COUNT_OF(examples); i++) {
        const struct shape shape = S(examples[i].n);
        struct call *call = NULL;

        if (examples[i].op == row->id)
            call = call_begin(suite, row, "magnitude known %u [%d]", i,
                              (int)examples[i].n);
        if (call == NULL)
            continue;
        call->ints[0] = 1;
        call_operand(call, 0, TANDEM_F32, &shape, DENSE);
        for (int64_t e = 0; e < examples[i].n; e++)
            element_set(&call->operands[0], e, (double)examples[i].values[e]);
        call_operand(call, 1, TANDEM_F32, &scalar, DENSE);
        call_end(suite, call);
    }
}

static void reduce_cases(struct suite *suite, const struct op_row *row)
{
    const struct single_special special = {.out_dtype = output_dtype(row),
                                           .fill = ordinary_fill};

    single_specials_run(suite, row, &special);
    if (row->op_class == TANDEM_CLASS_ARG_REDUCE)
        return;
    examples_run(suite, row);
    if (row->id != TANDEM_OP_PROD)
        magnitudes_run(suite, row);
}

/* ---- dot ---- */

static void dot_magnitude_run(struct suite *suite, const struct op_row *row,
                              int64_t n, const struct magnitude *a,
                              const struct magnitude *b, enum balance balance)
{
    const struct shape shape = S(n);
    struct call *call =
        call_begin(suite, row, "magnitude %s by %s%s [%d]", a->name, b->name,
                   balance == BALANCED ? " balanced" : "", (int)n);

    if (call == NULL)
        return;
    for (uint32_t i = 0; i < 2; i++)
        magnitude_fill(call_operand(call, i, TANDEM_F32, &shape, DENSE),
                       call->random, n, 1, i == 0 ? a : b,
                       i == 0 ? balance : PLAIN);
    /* The same factor for the value that cancels another one. */
    for (int64_t i = 0; balance == BALANCED && i < n / 2; i++)
        operand_set(&call->operands[1], i + n / 2,
                    operand_get(&call->operands[1], i));
    call_operand(call, 2, TANDEM_F32, &scalar, DENSE);
    call_end(suite, call);
}

static void dot_cases(struct suite *suite, const struct op_row *row)
{
    static const int64_t magnitude_lengths[] = {5, 777, 40001};
    uint32_t step = suite->options->full ? 1 : 3;
    uint32_t next = (uint32_t)suite->options->seed;

    for (uint32_t i = 0; i < MAGNITUDES; i++)
        for (uint32_t k = 0; k < MAGNITUDES; k += step, next++)
            dot_magnitude_run(suite, row, magnitude_lengths[next % 3],
                              &magnitudes[i], &magnitudes[(k + i) % MAGNITUDES],
                              (enum balance)(next / 3 % BALANCES));
    /* Many subnormal products. */
    dot_magnitude_run(suite, row, 300007, &magnitudes[2], &magnitudes[2],
                      PLAIN);
}

/* ---- random calls ---- */

/* Returns true if rows are empty and the result is not. */
static bool empty_is_wrong(const struct op_row *row, const struct shape *in,
                           uint32_t axes)
{
    bool row_is_empty = false, result_is_empty = false;

    for (uint32_t i = 0; i < in->rank; i++)
        *(axes >> i & 1u ? &row_is_empty : &result_is_empty) |= in->at[i] == 0;
    return row_is_empty && !result_is_empty && !empty_allowed(row);
}

static void draw_reduction(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    struct shape in, out;
    uint32_t all, axes;

    (void)block;
    shape_draw(&in, random, 0, TANDEM_MAX_RANK);
    all = (1u << in.rank) - 1u;
    axes = in.rank == 0 || random_once_in(random, 4)
               ? all
               : (uint32_t)random_between(random, 1, all);
    if (in.rank > 0 &&
        (random_once_in(random, 3) ||
         (call->row->op_class == TANDEM_CLASS_ARG_REDUCE && axes != all)))
        axes = 1u << random_below(random, in.rank);
    call->ints[0] = axes;
    call->ints[1] = random_between(random, 0, 1);
    out.rank = 0;
    for (uint32_t i = 0; i < in.rank; i++)
        if (!(axes >> i & 1u) || call->ints[1] == 1)
            out.at[out.rank++] = axes >> i & 1u ? 1 : in.at[i];
    operand_draw(call, 0, TANDEM_F32, &in);
    operand_draw(call, 1, output_dtype(call->row), &out);
    if (empty_is_wrong(call->row, &in, axes)) {
        call->expected_status = EXPECT_INVALID_ARGUMENT;
        call->what = "a reduction of nothing";
    }
}

/* Half of the products are specified: no partial product is out of range. */
static bool fill_factors(struct call *call, uint32_t input,
                         const struct spread *spread)
{
    struct operand *operand = &call->operands[input];
    const int64_t results = call->operands[1].elements;

    (void)spread;
    if (call->row->id != TANDEM_OP_PROD || random_once_in(call->random, 2))
        return false;
    if (results > 0)
        ordinary_fill(operand, call->random, call->row,
                      operand->elements / results);
    return true;
}

static void draw_dot(struct call *call, const struct block *block)
{
    struct shape in;

    (void)block;
    shape_draw(&in, call->random, 1, 1);
    operand_draw(call, 0, TANDEM_F32, &in);
    operand_draw(call, 1, TANDEM_F32, &in);
    operand_draw(call, 2, TANDEM_F32, &scalar);
}

static void limit_exponents(const struct op_row *row, double *low, double *high)
{
    if (row->id == TANDEM_OP_L2 || row->id == TANDEM_OP_SUM_SQUARE) {
        *low = -16.0;
        *high = 16.0;
    }
    if (row->id == TANDEM_OP_MEAN)
        *high = 33.0;
}

static bool draw_invalid_attribute(struct call *call)
{
    const int64_t rank = call->operands[0].desc.rank;

    if (random_once_in(call->random, 2))
        call->ints[1] = invalid_number_draw(call->random, 0, 1);
    else
        call->ints[0] |=
            random_once_in(call->random, 2) ? INT64_C(1) << rank : INT64_MIN;
    return true;
}

/* ---- invalid calls ---- */

static void make_valid_reduction(struct mistaken_call *p)
{
    p->ints[0] = 2; /* The columns. */
    mistaken_tensor_set(&p->outs[0], output_dtype(p->row), 1, 3, 0);
}

static void make_valid_dot(struct mistaken_call *p)
{
    mistaken_tensor_set(&p->ins[0], TANDEM_F32, 1, 5, 0);
    mistaken_tensor_set(&p->ins[1], TANDEM_F32, 1, 5, 0);
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 0, 0, 0);
}

#define REDUCE_MISTAKES(X)                                                     \
    X(sum_axes_large, SUM, "an axis too large", 0, p->ints[0] = 4)             \
    X(sum_axes_none, SUM, "no axes", 0, p->ints[0] = 0)                        \
    X(sum_axes_negative, SUM, "negative axes", 0, p->ints[0] = -1)             \
    X(sum_second_two, SUM, "keepdims 2", 0, p->ints[1] = 2)                    \
    X(sum_ints_few, SUM, "an attribute too few", 0, p->op.int_count--)         \
    X(sum_output_differs, SUM, "another output shape", 0,                      \
      p->outs[0].shape[0] = 2)                                                 \
    X(reduce_max_reduce_of_none, REDUCE_MAX, "the maximum of nothing", 0,      \
      p->ins[0].shape[1] = 0)
MISTAKE_TABLE(reduce_mistakes, REDUCE_MISTAKES)

#define ARG_REDUCE_MISTAKES(X)                                                 \
    X(argmin_ints_null, ARGMIN, "attributes at NULL", ALWAYS_INVALID,          \
      p->op.ints = NULL)                                                       \
    X(argmax_second_minus, ARGMAX, "keepdims -1", 0, p->ints[1] = -1)          \
    X(argmax_dtype_output_f, ARGMAX, "an output of f32", MAYBE_LATER,          \
      p->outs[0].dtype = TANDEM_F32)                                           \
    X(argmax_axes_two_of_three, ARGMAX, "two of three axes", 0,                \
      (p->ins[0].rank = 3, p->ins[0].shape[2] = 1, p->ins[0].strides[2] = 1,   \
       p->ints[0] = 3))                                                        \
    X(argmax_reduce_of_none, ARGMAX, "the first of nothing", 0,                \
      p->ins[0].shape[1] = 0)
MISTAKE_TABLE(arg_reduce_mistakes, ARG_REDUCE_MISTAKES)

#define DOT_MISTAKES(X)                                                        \
    X(dot_output_rank, DOT, "lengths that differ", 0, p->outs[0].rank = 1)
MISTAKE_TABLE(dot_mistakes, DOT_MISTAKES)

/* ---- the classes ---- */

const struct suite_class suite_reduce = {
    .cases = reduce_cases,
    .reference = reference,
    .draw = draw_reduction,
    .fill = fill_factors,
    .limit_exponents = limit_exponents,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid_reduction,
    CLASS_MISTAKES(reduce_mistakes),
};

const struct suite_class suite_arg_reduce = {
    .cases = reduce_cases,
    .reference = reference_arg,
    .draw = draw_reduction,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid_reduction,
    CLASS_MISTAKES(arg_reduce_mistakes),
};

const struct suite_class suite_dot = {
    .cases = dot_cases,
    .reference = reference,
    .draw = draw_dot,
    .weight = 2,
    .make_valid = make_valid_dot,
    CLASS_MISTAKES(dot_mistakes),
};
