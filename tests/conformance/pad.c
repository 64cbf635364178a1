/* SPDX-License-Identifier: Apache-2.0 */
/* Padding in each mode, with positive and negative pads, and tiling. */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"

#include <math.h>

/* Random outputs have at most about four times as many elements. */
#define MAX_DRAWN_ELEMENTS 20000

enum { CONSTANT, REFLECT, EDGE, WRAP, MODES };

static const struct pad_form {
    enum level level;
    struct shape shape;
    int64_t begins[TANDEM_MAX_RANK], ends[TANDEM_MAX_RANK];
    enum operand_layout in, out;
} forms[] = {
    {ALWAYS, S(2, 3, 13, 17), {0, 0, 1, 1}, {0, 0, 1, 1}, DENSE, DENSE},
    {ALWAYS, S(2, 3, 8, 12), {0, 0, 2, 4}, {0, 0, 2, 4}, DENSE, DENSE},
    {ALWAYS, S(5, 12), {2, 0}, {1, 0}, DENSE, DENSE},
    {ALWAYS, S(7, 9), {-2, 3}, {1, -4}, DENSE, DENSE},
    {SOME, S(4, 6), {-1, -2}, {-3, -1}, DENSE, DENSE},
    {SOME, S(3, 5), {7, 11}, {8, 12}, DENSE, DENSE},
    {SOME, S(1, 5), {2, 1}, {3, 0}, DENSE, DENSE},
    {SOME, S(5003), {3}, {2}, DENSE, DENSE},
    {SOME, S(40001), {0}, {4}, DENSE, DENSE},
    {ALWAYS, S(3, 4), {0, -5}, {2, 3}, DENSE, DENSE},
    {SOME, S(5, 3, 4), {1, -3, 1}, {2, 5, 0}, DENSE, DENSE},
    {SOME, S(4, 8), {3, 12}, {-6, -9}, ANY, DENSE},
    {SOME, S(3, 4), {0, -2}, {1, -2}, DENSE, DENSE},
    {SOME, S(6), {0}, {0}, DENSE, DENSE},
    {SOME, S0, {0}, {0}, DENSE, DENSE},
    {SOME, S(3, 0), {1, 0}, {1, 0}, DENSE, DENSE},
    {SOME, S(12, 36), {1, 0}, {2, 0}, PADDED, PADDED},
    {SOME, S(12, 36), {1, 4}, {2, 8}, OFFSET, OFFSET},
    {ALWAYS, S(33, 25), {1, 2}, {3, 4}, REVERSED, DENSE},
    {SOME, S(33, 25), {1, 2}, {3, 4}, DENSE, REVERSED},
    {SOME, S(12, 9), {1, 1}, {1, 1}, NEGATIVE, NEGATIVE},
    {SOME, S(7, 12), {0, 4}, {1, 0}, REPEATED, DENSE},
    {ALWAYS, S(4, 5, 6), {1, 0, 2}, {0, 3, 1}, ANY, ANY},
    {SOME,
     S(2, 3, 1, 2, 2, 3, 1, 2),
     {1, 0, 1, 0, 0, 1, 0, 1},
     {0, 1, 0, 1, 0, 0, 1, 0},
     ANY,
     ANY},
};

static const struct tile_form {
    enum level level;
    struct shape shape;
    int64_t repeats[TANDEM_MAX_RANK];
    enum operand_layout in, out;
} tile_forms[] = {
    {ALWAYS, S(5, 12), {3, 1}, DENSE, DENSE},
    {ALWAYS, S(5, 12), {2, 3}, DENSE, DENSE},
    {ALWAYS, S(7, 5, 3), {1, 2, 4}, DENSE, DENSE},
    {SOME, S(1, 64), {100, 1}, DENSE, DENSE},
    {SOME, S(64, 1), {1, 100}, DENSE, DENSE},
    {SOME, S(1), {5000}, DENSE, DENSE},
    {SOME, S(7), {3001}, DENSE, DENSE},
    {SOME, S0, {0}, DENSE, DENSE},
    {SOME, S(4, 3), {0, 2}, DENSE, DENSE},
    {SOME, S(0, 3), {3, 2}, DENSE, DENSE},
    {SOME, S(4, 3), {1, 1}, DENSE, DENSE},
    {ALWAYS, S(6, 8), {2, 2}, PADDED, PADDED},
    {SOME, S(9, 11), {2, 3}, REVERSED, DENSE},
    {SOME, S(9, 11), {2, 3}, NEGATIVE, REVERSED},
    {SOME, S(3, 4, 5), {2, 1, 3}, ANY, ANY},
    {SOME, S(2, 1, 2, 1, 2, 1, 2, 3), {2, 3, 1, 2, 2, 1, 3, 2}, ANY, ANY},
};

/* ---- reference ---- */

/*
 * Returns the index, in an axis of n elements, of the element that is added at
 * position i, by stepping towards the axis, or -1 if there is none.
 */
static int64_t added_index(int64_t i, int64_t n, int64_t mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == CONSTANT)
        return -1;
    while (mode == WRAP && (i < 0 || i >= n))
        i += i < 0 ? n : -n;
    while (mode == REFLECT && n > 1 && (i < 0 || i >= n))
        i = i < 0 ? -i : 2 * (n - 1) - i;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Returns the number of elements that negative pads leave of an axis. It is
 * negative if they remove more than there are. */
static int64_t kept_length(int64_t n, int64_t begin, int64_t end)
{
    return n + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
}

static void set_value(const struct call *call, struct expected *out, int64_t i,
                      uint32_t dtype)
{
    if (dtype_is_float(dtype))
        out->integer[i] =
            (int64_t)bits_from_real(dtype, (double)(float)call->floats[0]);
    else
        out->integer[i] =
            (int64_t)(bits_from_integer(dtype, call->ints[1]) &
                      (UINT64_MAX >> (64 - 8 * TANDEM_DTYPE_BYTES(dtype))));
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *desc = &call->operands[1].desc;
    const bool is_tile = call->row->id == TANDEM_OP_TILE;
    const int64_t mode = is_tile ? WRAP : call->ints[0];
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(out, EXPECTED_BITS, call->operands[1].elements);
    for (int64_t i = 0; i < out->elements; i++) {
        bool is_added = false;
        int64_t from = 0;

        for (uint32_t axis = 0; axis < desc->rank; axis++) {
            int64_t begin = is_tile ? 0 : call->ints[2 + axis];
            int64_t end = is_tile ? 0 : call->ints[2 + desc->rank + axis];
            int64_t cut = begin < 0 ? -begin : 0;
            int64_t kept = kept_length(in->shape[axis], begin, end);
            int64_t at =
                added_index(index[axis] - (begin > 0 ? begin : 0), kept, mode);

            is_added = is_added || at < 0;
            from = from * in->shape[axis] + cut + at;
        }
        if (is_added)
            set_value(call, out, i, desc->dtype);
        else
            out->integer[i] = (int64_t)in->bits[from];
        index_next(desc->rank, desc->shape, index);
    }
}

/* ---- cases ---- */

/*
 * Sets the attributes of pad from those of its operator. Returns the shape of
 * the output. A reflection needs an element to repeat, which the caller sees
 * to.
 */
static struct shape pads_set(struct call *call, const struct shape *shape,
                             int64_t mode, const int64_t *begins,
                             const int64_t *ends)
{
    struct shape out = *shape;

    call->ints[0] = mode;
    call->int_count = 2 + 2 * shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        call->ints[2 + i] = begins[i];
        call->ints[2 + shape->rank + i] = ends[i];
        out.at[i] += begins[i] + ends[i];
    }
    return out;
}

static struct shape repeats_set(struct call *call, const struct shape *shape,
                                const int64_t *repeats)
{
    struct shape out = *shape;

    call->int_count = shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        call->ints[i] = repeats[i];
        out.at[i] *= repeats[i];
    }
    return out;
}

static void value_draw_bits(struct call *call)
{
    static const double values[] = {0, 1.5, -3, INFINITY, -INFINITY};

    call->floats[0] = values[random_below(call->random, COUNT_OF(values))];
    call->ints[1] = random_between(call->random, -1, 1);
    if (random_once_in(call->random, 3))
        call->ints[1] = (int64_t)random_u64(call->random);
    if (call->operands[0].desc.dtype == TANDEM_BOOL)
        call->ints[1] &= 1;
}

static void operands_set(struct suite *suite, struct call *call, uint32_t dtype,
                         const struct shape *in, enum operand_layout in_layout,
                         const struct shape *out, enum operand_layout layout)
{
    moved_require(call, dtype);
    operand_fill_bits(call_operand(call, 0, dtype, in, in_layout),
                      call->random);
    if (call->row->id == TANDEM_OP_PAD)
        value_draw_bits(call);
    call_operand(call, 1, dtype, out, layout);
    call_end(suite, call);
}

static void pad_run(struct suite *suite, const struct op_row *row,
                    uint32_t dtype, const struct pad_form *form, int64_t mode)
{
    struct shape out;
    struct call *call;

    for (uint32_t i = 0; i < form->shape.rank && mode != CONSTANT; i++)
        if (kept_length(form->shape.at[i], form->begins[i], form->ends[i]) <= 0)
            return;
    call = call_begin(suite, row, "%s %s mode %d, form %d", dtype_text(dtype),
                      shape_text(form->shape.rank, form->shape.at), (int)mode,
                      (int)(form - forms));
    if (call == NULL)
        return;
    out = pads_set(call, &form->shape, mode, form->begins, form->ends);
    operands_set(suite, call, dtype, &form->shape, form->in, &out, form->out);
}

static void tile_run(struct suite *suite, const struct op_row *row,
                     uint32_t dtype, const struct tile_form *form)
{
    struct shape out;
    struct call *call = call_begin(
        suite, row, "%s %s, form %d", dtype_text(dtype),
        shape_text(form->shape.rank, form->shape.at), (int)(form - tile_forms));

    if (call == NULL)
        return;
    out = repeats_set(call, &form->shape, form->repeats);
    operands_set(suite, call, dtype, &form->shape, form->in, &out, form->out);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    const bool is_tile = row->id == TANDEM_OP_TILE;
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < MOVED_DTYPES; i++) {
        for (uint32_t f = 0; is_tile && f < COUNT_OF(tile_forms); f++)
            if (form_chosen(suite, &choice,
                            tile_forms[f].level == ALWAYS && i < 2, 4))
                tile_run(suite, row, moved_dtypes[i], &tile_forms[f]);
        for (uint32_t f = 0; !is_tile && f < MODES * COUNT_OF(forms); f++)
            if (form_chosen(suite, &choice,
                            forms[f / MODES].level == ALWAYS && i < 1, 8))
                pad_run(suite, row, moved_dtypes[i], &forms[f / MODES],
                        f % MODES);
    }
}

/* ---- random calls ---- */

static void draw_pad(struct call *call, uint32_t dtype)
{
    struct random *random = call->random;
    const int64_t mode = random_between(random, CONSTANT, WRAP);
    int64_t begins[TANDEM_MAX_RANK] = {0}, ends[TANDEM_MAX_RANK] = {0};
    struct shape shape, out;
    int64_t elements;

    shape_draw(&shape, random, 0, TANDEM_MAX_RANK);
    elements = shape_count(shape.rank, shape.at);
    for (uint32_t i = 0; i < shape.rank; i++) {
        const int64_t n = shape.at[i];

        if (random_once_in(random, 2) || (n == 0 && mode != CONSTANT) ||
            elements > MAX_DRAWN_ELEMENTS)
            continue;
        begins[i] = random_between(random, n > 3 ? -2 : 0, 5);
        ends[i] = random_between(random, n > 3 ? -1 : 0, 5);
        if (mode == CONSTANT && random_once_in(random, 4)) {
            begins[i] = random_between(random, -n - 3, n + 3);
            ends[i] = random_between(random, 0, n + 3);
            ends[i] = ends[i] < -n - begins[i] ? -n - begins[i] : ends[i];
        }
        elements = elements / (n > 0 ? n : 1) * (n + begins[i] + ends[i]);
    }
    out = pads_set(call, &shape, mode, begins, ends);
    operand_draw(call, 0, dtype, &shape);
    value_draw_bits(call);
    operand_draw(call, 1, dtype, &out);
}

static void draw(struct call *call, const struct block *block)
{
    const uint32_t dtype = moved_dtype(block);
    int64_t repeats[TANDEM_MAX_RANK];
    struct shape shape, out;
    int64_t elements;

    if (call->row->id == TANDEM_OP_PAD) {
        draw_pad(call, dtype);
        return;
    }
    shape_draw(&shape, call->random, 0, TANDEM_MAX_RANK);
    elements = shape_count(shape.rank, shape.at);
    for (uint32_t i = 0; i < shape.rank; i++) {
        repeats[i] =
            random_once_in(call->random, 3) && elements < MAX_DRAWN_ELEMENTS
                ? random_between(call->random, 0, 4)
                : 1;
        elements *= repeats[i];
    }
    out = repeats_set(call, &shape, repeats);
    operand_draw(call, 0, dtype, &shape);
    operand_draw(call, 1, dtype, &out);
}

static bool draw_invalid_attribute(struct call *call)
{
    if (call->row->id == TANDEM_OP_TILE) {
        if (call->int_count == 0)
            return false;
        call->ints[random_below(call->random, call->int_count)] = -1;
    } else {
        call->ints[0] = invalid_number_draw(call->random, CONSTANT, WRAP);
    }
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    if (p->row->id == TANDEM_OP_TILE) {
        p->op.int_count = 2;
        p->ints[0] = 2;
        p->ints[1] = 1;
        mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 6, 4);
        return;
    }
    for (uint32_t i = 0; i < 6; i++)
        p->ints[i] = 0;
    p->op.int_count = 6;
    p->ints[2] = 1;
    p->ints[5] = -1;
    mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 4, 3);
}

#define PAD_MISTAKES(X)                                                        \
    X(pad_mode, PAD, "an unknown mode", MAYBE_LATER, p->ints[0] = 4)           \
    X(pad_ints_few, PAD, "too few pads", 0, p->op.int_count--)                 \
    X(pad_no_value, PAD, "no value", 0, p->op.float_count--)                   \
    X(pad_too_negative, PAD, "removes more than the axis has", 0,              \
      p->ints[5] = -5)                                                         \
    X(pad_huge, PAD, "a sum of lengths that overflows", 0,                     \
      p->ints[2] = INT64_MAX)                                                  \
    X(pad_smallest, PAD, "the smallest integer", 0, p->ints[3] = INT64_MIN)    \
    X(pad_output_differs, PAD, "another output shape", 0,                      \
      p->outs[0].shape[0] = 3)                                                 \
    X(pad_empty, PAD, "an edge of an empty axis", 0,                           \
      p->ints[0] = 2; p->ins[0].shape[0] = 0; p->outs[0].shape[0] = 1)         \
    X(pad_dtype, PAD, "another output dtype", MAYBE_LATER,                     \
      p->outs[0].dtype = TANDEM_I32)                                           \
    X(tile_ints_few, TILE, "too few repeats", 0, p->op.int_count--)            \
    X(tile_negative, TILE, "negative repeats", 0, p->ints[1] = -1)             \
    X(tile_huge, TILE, "a product that overflows", 0, p->ints[0] = INT64_MAX)  \
    X(tile_output_differs, TILE, "another output shape", 0,                    \
      p->outs[0].shape[1] = 3)

MISTAKE_TABLE(pad_mistakes, PAD_MISTAKES)

const struct suite_class suite_pad = {
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 2,
    .make_valid = make_valid,
    CLASS_MISTAKES(pad_mistakes),
};
