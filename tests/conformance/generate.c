/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose outputs depend on positions: one_hot, range and trilu. */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"
#include "tolerance.h"

#include <math.h>

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
    out->subnormal_tolerance = TOLERANCE_SUBNORMAL;
    for (int64_t i = 0; i < n; i++) {
        out->real[i] = start + (double)i * delta;
        out->tolerance[i] = call->row->tolerance * TOLERANCE_2EPS *
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

/* ---- random calls ---- */

static void draw_one_hot(struct call *call, const struct block *block)
{
    static const struct shape two = S(2);
    const uint32_t dtype = moved_dtype(call, block);
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
    const uint32_t dtype = moved_dtype(call, block);
    struct shape shape;

    shape_draw(&shape, call->random, 2, TANDEM_MAX_RANK);
    call->ints[0] = random_between(call->random, 0, 1);
    call->ints[1] = random_between(call->random, -6, 6);
    if (random_once_in(call->random, 6))
        call->ints[1] = random_once_in(call->random, 2) ? INT64_MIN : INT64_MAX;
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
    .reference = reference_one_hot,
    .draw = draw_one_hot,
    .fill = fill_one_hot,
    .draw_invalid_attribute = draw_invalid_depth,
    .make_valid = make_valid_one_hot,
    CLASS_MISTAKES(one_hot_mistakes),
};

const struct suite_class suite_range = {
    .rules = FREE_OUTPUT_SHAPE,
    .reference = reference_range,
    .draw = draw_range,
    .make_valid = make_valid_range,
    CLASS_MISTAKES(range_mistakes),
};

const struct suite_class suite_trilu = {
    .rules = IN_PLACE,
    .reference = reference_trilu,
    .draw = draw_trilu,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_switch,
    CLASS_MISTAKES(trilu_mistakes),
};
