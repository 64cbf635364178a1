/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose outputs depend on positions: one_hot, range and trilu. */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"

#include <math.h>

static const struct one_hot_form {
    enum level level;
    struct shape indices;
    int64_t axis, depth;
    enum operand_layout in, out;
} one_hot_forms[] = {
    {ALWAYS, S(37), -1, 10, DENSE, DENSE},
    {ALWAYS, S(5, 7), 1, 33, DENSE, DENSE},
    {ALWAYS, S(300), 0, 12, DENSE, DENSE},
    {SOME, S0, 0, 5, DENSE, DENSE},
    {SOME, S(4), -2, 1, DENSE, DENSE},
    {SOME, S(3, 0), 2, 4, DENSE, DENSE},
    {SOME, S(2), 1, 30001, DENSE, DENSE},
    {SOME, S(2049), -1, 3, OFFSET, OFFSET},
    {SOME, S(9, 11), 0, 6, REVERSED, PADDED},
    {ALWAYS, S(6, 5, 4), 2, 7, ANY, ANY},
    {SOME, S(2, 3, 1, 2, 2, 3, 2), -4, 3, ANY, ANY},
};

static const struct trilu_form {
    enum level level;
    struct shape shape;
    int64_t diagonal;
    enum operand_layout in, out;
} trilu_forms[] = {
    {ALWAYS, S(33, 33), 0, DENSE, DENSE},
    {ALWAYS, S(3, 17, 40), -2, DENSE, DENSE},
    {SOME, S(40, 17), 3, DENSE, DENSE},
    {SOME, S(5, 6), 100, DENSE, DENSE},
    {SOME, S(5, 6), -100, DENSE, DENSE},
    {SOME, S(5, 6), INT64_MAX, DENSE, DENSE},
    {SOME, S(5, 6), INT64_MIN, DENSE, DENSE},
    {SOME, S(1, 9), 4, DENSE, DENSE},
    {SOME, S(9, 1), -4, DENSE, DENSE},
    {SOME, S(0, 4), 0, DENSE, DENSE},
    {SOME, S(300, 301), 1, OFFSET, OFFSET},
    {SOME, S(19, 21), 1, REVERSED, PADDED},
    {ALWAYS, S(4, 7, 8), 1, ANY, ANY},
    {SOME, S(2, 1, 2, 1, 2, 1, 5, 4), -1, ANY, ANY},
};

/* ---- references ---- */

static void reference_one_hot(const struct call *call, const struct dense *in,
                              struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[2].desc;
    const int64_t axis = axis_from_start(call->ints[0], desc->rank);
    const int64_t depth = call->ints[1];
    const int64_t inner =
        shape_count(desc->rank - (uint32_t)axis - 1, &desc->shape[axis + 1]);

    expected_init(out, EXPECTED_BITS, call->operands[2].elements);
    for (int64_t i = 0; i < out->elements; i++) {
        const int64_t position = i / inner % depth;
        int64_t index =
            dense_integer(&in[0], i / (inner * depth) * inner + i % inner);

        if (index < 0)
            index += depth;
        out->integer[i] = (int64_t)in[1].bits[index == position];
    }
}

static void reference_range(const struct call *call, const struct dense *in,
                            struct expected *out)
{
    const uint32_t dtype = call->operands[0].desc.dtype;
    const int64_t n = call->operands[0].elements;
    const double start = reference_attribute(call->floats[0]);
    const double delta = reference_attribute(call->floats[1]);

    (void)in;
    if (dtype != TANDEM_F32) {
        expected_init(out, EXPECTED_INTEGER, n);
        out->exact = true;
        for (int64_t i = 0; i < n; i++) {
            uint64_t x = (uint64_t)call->ints[0];

            x += (uint64_t)i * (uint64_t)call->ints[1];
            out->integer[i] =
                dtype == TANDEM_I32 ? (int32_t)(uint32_t)x : (int64_t)x;
        }
        return;
    }
    expected_init(out, EXPECTED_REAL, n);
    out->subnormal_tolerance = REFERENCE_SUBNORMAL;
    for (int64_t i = 0; i < n; i++) {
        out->real[i] = start + (double)i * delta;
        out->tolerance[i] = call->row->tolerance * REFERENCE_2EPS *
                            (fabs(start) + fabs((double)i * delta));
    }
}

static void reference_trilu(const struct call *call, const struct dense *in,
                            struct expected *out)
{
    const int64_t columns = in->shape[in->rank - 1];
    const int64_t rows = in->shape[in->rank - 2];

    expected_init(out, EXPECTED_BITS, in->elements);
    for (int64_t i = 0; i < in->elements; i++) {
        const int64_t distance = i % columns - i / columns % rows;
        const bool keeps = call->ints[0] != 0 ? distance >= call->ints[1]
                                              : distance <= call->ints[1];

        out->integer[i] = keeps ? (int64_t)in->bits[i] : 0;
    }
}

/* ---- cases ---- */

static struct shape with_axis(const struct shape *shape, int64_t axis,
                              int64_t length)
{
    struct shape out = {shape->rank + 1, {0}};

    axis = axis_from_start(axis, out.rank);
    for (uint32_t i = 0; i < out.rank; i++)
        out.at[i] = i < axis    ? shape->at[i]
                    : i == axis ? length
                                : shape->at[i - 1];
    return out;
}

/* Fills the indices; some calls have a few that are out of range. */
static void one_hot_indices_fill(struct call *call)
{
    struct operand *operand = &call->operands[0];
    const bool outside = random_once_in(call->random, 3);

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t index = index_draw(call->random, call->ints[1], true, outside);

        operand_set(operand, i, bits_from_integer(operand->desc.dtype, index));
    }
}

static void one_hot_run(struct suite *suite, const struct op_row *row,
                        uint32_t dtype, uint32_t index_dtype,
                        const struct one_hot_form *form)
{
    static const struct shape two = S(2);
    const struct shape out = with_axis(&form->indices, form->axis, form->depth);
    struct call *call =
        call_begin(suite, row, "%s by %s %s depth %d axis %d",
                   dtype_text(dtype), dtype_text(index_dtype),
                   shape_text(form->indices.rank, form->indices.at),
                   (int)form->depth, (int)form->axis);

    if (call == NULL)
        return;
    moved_require(call, dtype);
    call->ints[0] = form->axis;
    call->ints[1] = form->depth;
    call_operand(call, 0, index_dtype, &form->indices, form->in);
    one_hot_indices_fill(call);
    operand_fill_bits(call_operand(call, 1, dtype, &two, form->in),
                      call->random);
    call_operand(call, 2, dtype, &out, form->out);
    call_end(suite, call);
}

static void one_hot_cases(struct suite *suite, const struct op_row *row)
{
    static const uint32_t index_dtypes[] = {TANDEM_I64, TANDEM_I32};
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < 2 * MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < COUNT_OF(one_hot_forms); f++)
            if (form_chosen(suite, &choice,
                            one_hot_forms[f].level == ALWAYS && i < 1, 6))
                one_hot_run(suite, row, moved_dtypes[i / 2],
                            index_dtypes[i % 2], &one_hot_forms[f]);
}

static void range_run(struct suite *suite, const struct op_row *row,
                      uint32_t dtype, int64_t n, enum operand_layout layout)
{
    const struct shape shape = S(n);
    struct call *call = call_begin(suite, row, "%s %d, layout %d",
                                   dtype_text(dtype), (int)n, (int)layout);

    if (call == NULL)
        return;
    moved_require(call, dtype);
    call->ints[0] = random_between(call->random, -1000, 1000);
    call->ints[1] = random_between(call->random, -3, 3);
    if (random_once_in(call->random, 3))
        call->ints[1] = (int64_t)random_u64(call->random);
    call->floats[0] = random_uniform(call->random, -100, 100);
    call->floats[1] = random_uniform(call->random, -2, 2);
    call_operand(call, 0, dtype, &shape, layout);
    call_end(suite, call);
}

static void range_cases(struct suite *suite, const struct op_row *row)
{
    static const uint32_t range_dtypes[] = {TANDEM_F32, TANDEM_I64, TANDEM_I32};

    for (uint32_t i = 0; i < COUNT_OF(range_dtypes); i++) {
        range_run(suite, row, range_dtypes[i], 0, DENSE);
        range_run(suite, row, range_dtypes[i], 1, OFFSET);
        range_run(suite, row, range_dtypes[i], 1021, STEP);
        range_run(suite, row, range_dtypes[i], 70001, NEGATIVE);
    }
}

static void trilu_run(struct suite *suite, const struct op_row *row,
                      uint32_t dtype, const struct trilu_form *form, bool upper,
                      bool in_place)
{
    struct call *call = call_begin(
        suite, row, "%s %s %s %lld%s", dtype_text(dtype),
        shape_text(form->shape.rank, form->shape.at), upper ? "upper" : "lower",
        (long long)form->diagonal, in_place ? ", in place" : "");

    if (call == NULL)
        return;
    moved_require(call, dtype);
    call->ints[0] = upper;
    call->ints[1] = form->diagonal;
    operand_fill_bits(call_operand(call, 0, dtype, &form->shape,
                                   in_place ? PADDED : form->in),
                      call->random);
    if (in_place)
        call_in_place(call, 0, 0);
    else
        call_operand(call, 1, dtype, &form->shape, form->out);
    call_end(suite, call);
}

static void trilu_cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < 4 * MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < COUNT_OF(trilu_forms); f++)
            if (form_chosen(suite, &choice,
                            trilu_forms[f].level == ALWAYS && i < 4, 6))
                trilu_run(suite, row, moved_dtypes[i / 4], &trilu_forms[f],
                          (i & 1) != 0, (i & 2) != 0);
}

/* ---- random calls ---- */

static void draw_one_hot(struct call *call, const struct block *block)
{
    static const struct shape two = S(2);
    const uint32_t dtype = moved_dtype(block);
    struct shape indices, out;

    shape_draw(&indices, call->random, 0, TANDEM_MAX_RANK - 1);
    call->ints[0] = axis_draw(call->random, indices.rank + 1);
    call->ints[1] = random_between(call->random, 1, 20);
    out = with_axis(&indices, call->ints[0], call->ints[1]);
    operand_draw(call, 0, index_dtype_draw(call->random), &indices);
    operand_draw(call, 1, dtype, &two);
    operand_draw(call, 2, dtype, &out);
}

static bool fill_one_hot(struct call *call, uint32_t input,
                         const struct spread *spread)
{
    (void)spread;
    if (input == 0)
        one_hot_indices_fill(call);
    else
        operand_fill_bits(&call->operands[1], call->random);
    return true;
}

static bool draw_invalid_depth(struct call *call)
{
    call->ints[1] = random_once_in(call->random, 2) ? 0 : INT64_MIN;
    return true;
}

static void draw_range(struct call *call, const struct block *block)
{
    static const uint32_t range_dtypes[] = {TANDEM_F32, TANDEM_I64, TANDEM_I32};
    struct shape shape;

    shape_draw(&shape, call->random, 1, 1);
    call->ints[0] = (int64_t)random_u64(call->random);
    call->ints[1] = random_between(call->random, -9, 9);
    call->floats[0] = random_uniform(call->random, -100, 100);
    call->floats[1] = random_uniform(call->random, -2, 2);
    for (uint32_t i = 0; i < 2; i++)
        if (random_once_in(call->random, 3))
            call->floats[i] = (double)random_wide(call->random);
    operand_draw(call, 0, range_dtypes[block->numbers[2] % 3], &shape);
}

static void draw_trilu(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(block);
    struct shape shape;

    shape_draw(&shape, call->random, 2, TANDEM_MAX_RANK);
    call->ints[0] = random_between(call->random, 0, 1);
    call->ints[1] = random_between(call->random, -6, 6);
    operand_draw(call, 0, dtype, &shape);
    operand_draw(call, 1, dtype, &shape);
}

static bool draw_invalid_switch(struct call *call)
{
    call->ints[0] = invalid_number_draw(call->random, 0, 1);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid_one_hot(struct mistaken_call *p)
{
    mistaken_tensor_set(&p->ins[0], TANDEM_I64, 1, 5, 0);
    mistaken_tensor_set(&p->ins[1], TANDEM_F32, 1, 2, 0);
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 3);
    p->ints[0] = 1;
    p->ints[1] = 3;
}

#define ONE_HOT_MISTAKES(X)                                                    \
    X(one_hot_axis_large, ONE_HOT, "an axis too large", 0, p->ints[0] = 2)     \
    X(one_hot_axis_negative, ONE_HOT, "an axis too small", 0, p->ints[0] = -3) \
    X(one_hot_depth, ONE_HOT, "depth 0", 0, p->ints[1] = 0)                    \
    X(one_hot_values, ONE_HOT, "three values", 0, p->ins[1].shape[0] = 3)      \
    X(one_hot_indices, ONE_HOT, "indices of f32", MAYBE_LATER,                 \
      p->ins[0].dtype = TANDEM_F32)                                            \
    X(one_hot_output, ONE_HOT, "another output shape", 0,                      \
      p->outs[0].shape[1] = 4)
MISTAKE_TABLE(one_hot_mistakes, ONE_HOT_MISTAKES)

static void make_valid_range(struct mistaken_call *p)
{
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 1, 5, 0);
}

#define RANGE_MISTAKES(X)                                                      \
    X(range_rank, RANGE, "an output of rank 2", 0, p->outs[0].rank = 2)        \
    X(range_dtype, RANGE, "an output of bool", MAYBE_LATER,                    \
      p->outs[0].dtype = TANDEM_BOOL)                                          \
    X(range_input, RANGE, "an input", 0, p->in_count = 1)                      \
    X(range_ints_few, RANGE, "no delta", 0, p->op.int_count--)                 \
    X(range_floats_few, RANGE, "no float delta", 0, p->op.float_count--)
MISTAKE_TABLE(range_mistakes, RANGE_MISTAKES)

#define TRILU_MISTAKES(X)                                                      \
    X(trilu_rank, TRILU, "a vector", 0, p->ins[0].rank = p->outs[0].rank = 1)  \
    X(trilu_upper, TRILU, "upper 2", 0, p->ints[0] = 2)                        \
    X(trilu_dtype, TRILU, "another output dtype", MAYBE_LATER,                 \
      p->outs[0].dtype = TANDEM_I32)                                           \
    X(trilu_output, TRILU, "another output shape", 0, p->outs[0].shape[0] = 2)
MISTAKE_TABLE(trilu_mistakes, TRILU_MISTAKES)

/* ---- the classes ---- */

const struct suite_class suite_one_hot = {
    .cases = one_hot_cases,
    .reference = reference_one_hot,
    .draw = draw_one_hot,
    .fill = fill_one_hot,
    .draw_invalid_attribute = draw_invalid_depth,
    .make_valid = make_valid_one_hot,
    CLASS_MISTAKES(one_hot_mistakes),
};

const struct suite_class suite_range = {
    .rules = FREE_OUTPUT_SHAPE,
    .cases = range_cases,
    .reference = reference_range,
    .draw = draw_range,
    .make_valid = make_valid_range,
    CLASS_MISTAKES(range_mistakes),
};

const struct suite_class suite_trilu = {
    .rules = IN_PLACE,
    .cases = trilu_cases,
    .reference = reference_trilu,
    .draw = draw_trilu,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_switch,
    CLASS_MISTAKES(trilu_mistakes),
};
