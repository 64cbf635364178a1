/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concatenations of one to eight tensors along each axis, with parts of which
 * some are empty.
 */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"

#include <stdio.h>

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
            (int64_t)in[part]
                .bits[(before * in[part].shape[axis] + along) * inner +
                      i % inner];
    }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(call, block);
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
    .reference = reference,
    .draw = draw,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_axis,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(concat_mistakes),
};
