/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concatenations of one to eight tensors along each axis, with parts of which
 * some are empty.
 */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"

#include <stdio.h>

static const struct concat_form {
    enum level level;
    struct shape first;
    int64_t axis;
    uint32_t inputs;
    int64_t lengths[TANDEM_MAX_OPERANDS]; /* of the inputs along the axis */
    enum operand_layout out, in;
} forms[] = {
    {ALWAYS, S(8, 32), 0, 2, {8, 5}, DENSE, DENSE},
    {ALWAYS, S(19, 64), -1, 3, {64, 32, 128}, DENSE, DENSE},
    {ALWAYS, S(31, 7), 1, 4, {7, 1, 13, 5}, DENSE, DENSE},
    {ALWAYS, S(3, 8, 5, 5), 1, 8, {8, 4, 8, 1, 2, 3, 5, 8}, DENSE, DENSE},
    {SOME, S(5003), 0, 2, {5003, 2}, DENSE, DENSE},
    {SOME, S(40001), 0, 3, {40001, 1, 4004}, DENSE, DENSE},
    {SOME, S(6, 5), 1, 1, {5}, DENSE, DENSE},
    {SOME, S(1), 0, 8, {1, 1, 1, 1, 1, 1, 1, 1}, DENSE, DENSE},
    {ALWAYS, S(9, 4), 1, 3, {4, 0, 8}, DENSE, DENSE},
    {SOME, S(9, 0), 1, 2, {0, 0}, DENSE, DENSE},
    {SOME, S(0, 3), 1, 2, {3, 4}, DENSE, DENSE},
    {ALWAYS, S(12, 36), 0, 2, {12, 20}, PADDED, PADDED},
    {SOME, S(12, 36), 1, 2, {36, 4}, OFFSET, OFFSET},
    {ALWAYS, S(33, 65), 1, 3, {65, 67, 12}, DENSE, REVERSED},
    {SOME, S(33, 65), 0, 2, {33, 30}, REVERSED, DENSE},
    {ALWAYS, S(5, 6, 7), 1, 8, {6, 1, 2, 3, 4, 5, 6, 7}, ANY, ANY},
    {SOME, S(12, 9), 0, 2, {12, 3}, NEGATIVE, NEGATIVE},
    {SOME, S(7, 12), 1, 2, {12, 3}, DENSE, REPEATED},
    {SOME, S(2, 3, 1, 2, 2, 3, 1, 2), 4, 3, {2, 1, 3}, ANY, ANY},
};

/* ---- reference ---- */

/* Goes through the output and finds the input of each element. */
static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[call->inputs].desc;
    const int64_t axis = axis_from_start(call->ints[0], desc->rank);
    const int64_t inner =
        shape_count(desc->rank - (uint32_t)axis - 1, &desc->shape[axis + 1]);

    expected_init(out, EXPECTED_BITS, call->operands[call->inputs].elements);
    for (int64_t i = 0; i < out->elements; i++) {
        const int64_t line = i / inner, before = line / desc->shape[axis];
        int64_t along = line % desc->shape[axis];
        uint32_t part = 0;

        while (along >= in[part].shape[axis])
            along -= in[part++].shape[axis];
        out->integer[i] =
            (int64_t)in[part].bits[(before * in[part].shape[axis] + along) *
                                       inner +
                                   i % inner];
    }
}

/* ---- cases ---- */

static void run(struct suite *suite, const struct op_row *row, uint32_t dtype,
                const struct concat_form *form, uint32_t inputs)
{
    struct shape shape = form->first;
    const int64_t axis = axis_from_start(form->axis, shape.rank);
    int64_t sum = 0;
    struct call *call =
        call_begin(suite, row, "%s %s and %u more, axis %d, layout %d",
                   dtype_text(dtype), shape_text(shape.rank, shape.at),
                   inputs - 1, (int)form->axis, (int)form->in);

    if (call == NULL)
        return;
    moved_require(call, dtype);
    call->ints[0] = form->axis;
    call->inputs = call->passed_inputs = inputs;
    for (uint32_t i = 0; i < inputs; i++) {
        shape.at[axis] = form->lengths[i];
        sum += form->lengths[i];
        operand_fill_bits(call_operand(call, i, dtype, &shape, form->in),
                          call->random);
    }
    shape.at[axis] = sum;
    call_operand(call, inputs, dtype, &shape, form->out);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, "concat");
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t f = 0; f < COUNT_OF(forms); f++) {
            const struct concat_form *form = &forms[f];

            if (form_chosen(suite, &choice, form->level == ALWAYS && i < 2, 5))
                run(suite, row, moved_dtypes[i], form, form->inputs);
        }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(block);
    const uint32_t inputs =
        (uint32_t)random_between(call->random, 1, TANDEM_MAX_OPERANDS);
    int64_t axis, sum = 0;
    struct shape shape;

    shape_draw(&shape, call->random, 1, TANDEM_MAX_RANK);
    call->ints[0] = axis_draw(call->random, shape.rank);
    axis = axis_from_start(call->ints[0], shape.rank);
    call->inputs = inputs;
    for (uint32_t i = 0; i < inputs; i++) {
        if (random_once_in(call->random, 2))
            shape.at[axis] = random_between(call->random, 0, 9);
        sum += shape.at[axis];
        operand_draw(call, i, dtype, &shape);
    }
    shape.at[axis] = sum;
    operand_draw(call, inputs, dtype, &shape);
}

static bool draw_invalid_axis(struct call *call)
{
    const int64_t rank = call->operands[0].desc.rank;

    call->ints[0] = invalid_number_draw(call->random, -rank, rank - 1);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    p->in_count = 2;
    mistaken_tensor_set(&p->ins[1], TANDEM_F32, 2, 2, 4);
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 4);
}

#define CONCAT_MISTAKES(X)                                                     \
    X(concat_axis_large, CONCAT, "an axis too large", 0, p->ints[0] = 2)       \
    X(concat_axis_negative, CONCAT, "an axis too small", 0, p->ints[0] = -3)   \
    X(concat_dtype_input, CONCAT, "inputs of two dtypes", MAYBE_LATER,         \
      p->ins[1].dtype = TANDEM_I32)                                            \
    X(concat_dtype_output, CONCAT, "another output dtype", MAYBE_LATER,        \
      p->outs[0].dtype = TANDEM_I32)                                           \
    X(concat_rank, CONCAT, "an input of another rank", 0,                      \
      mistaken_tensor_set(&p->ins[1], TANDEM_F32, 1, 2, 0))                    \
    X(concat_shape, CONCAT, "an input with another row length", 0,             \
      p->ins[1].shape[1] = 3)                                                  \
    X(concat_output_differs, CONCAT, "another output length", 0,               \
      p->outs[0].shape[0] = 4)                                                 \
    X(concat_no_input, CONCAT, "no input", 0, p->in_count = 0)                 \
    X(concat_inputs_many, CONCAT, "too many inputs", 0,                        \
      p->in_count = TANDEM_MAX_OPERANDS + 1)                                   \
    X(concat_null, CONCAT, "an input that is NULL", 0, p->in_pointers[1] = NULL)

MISTAKE_TABLE(concat_mistakes, CONCAT_MISTAKES)

const struct suite_class suite_concat = {
    .rules = VARIADIC,
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_axis,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(concat_mistakes),
};
