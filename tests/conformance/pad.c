/* SPDX-License-Identifier: Apache-2.0 */
/* Padding in each mode, with positive and negative pads, and tiling. */
#include "element_value.h"
#include "inputs.h"
#include "moved.h"

#include <math.h>

/* Random outputs have at most about four times as many elements. */
#define MAX_DRAWN_ELEMENTS 20000

enum { CONSTANT, REFLECT, EDGE, WRAP, MODES };

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

/* ---- random calls ---- */

static void value_draw_bits(struct call *call, uint32_t dtype)
{
    static const double values[] = {0, 1.5, -3, INFINITY, -INFINITY};

    call->floats[0] = values[random_below(call->random, COUNT_OF(values))];
    call->ints[1] = random_between(call->random, -1, 1);
    if (random_once_in(call->random, 3))
        call->ints[1] = (int64_t)random_u64(call->random);
    if (dtype == TANDEM_BOOL)
        call->ints[1] &= 1;
}

/*
 * Draws the pads of an axis of n elements. A mode other than CONSTANT needs an
 * element to repeat.
 */
static void pads_draw(struct random *random, int64_t n, int64_t mode,
                      int64_t *out_begin, int64_t *out_end)
{
    *out_begin = random_between(random, n > 3 ? -2 : 0, 5);
    *out_end = random_between(random, n > 3 ? -1 : 0, 5);
    if (mode != CONSTANT || !random_once_in(random, 4))
        return;
    *out_begin = random_between(random, -n - 3, n + 3);
    *out_end = random_between(random, 0, n + 3);
    if (*out_end < -n - *out_begin)
        *out_end = -n - *out_begin;
}

static void draw(struct call *call, const struct block *block)
{
    const bool is_tile = call->row->id == TANDEM_OP_TILE;
    const uint32_t dtype = moved_dtype(call, block);
    struct random *random = call->random;
    const int64_t mode = random_between(random, CONSTANT, WRAP);
    struct shape in, out;
    int64_t elements;

    shape_draw(&in, random, 0, TANDEM_MAX_RANK);
    out = in;
    elements = shape_storage(&in);
    call->int_count = is_tile ? in.rank : 2 + 2 * in.rank;
    for (uint32_t i = 0; i < in.rank; i++) {
        int64_t *const first = &call->ints[is_tile ? i : 2 + i];
        const int64_t n = in.at[i];

        *first = is_tile;
        if (random_once_in(random, 2) || elements > MAX_DRAWN_ELEMENTS)
            continue;
        if (is_tile) {
            *first = random_between(
                random, 0,
                random_once_in(random, 6) ? 3000 / (elements + 1) + 1 : 4);
            out.at[i] *= *first;
        } else if (n > 0 || mode == CONSTANT) {
            pads_draw(random, n, mode, first, first + in.rank);
            out.at[i] += *first + first[in.rank];
        }
        elements = shape_storage(&out);
    }
    operand_draw(call, 0, dtype, &in);
    operand_draw(call, 1, dtype, &out);
    if (is_tile)
        return;
    call->ints[0] = mode;
    value_draw_bits(call, dtype);
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
    X(pad_empty, PAD, "an edge of an empty axis", 0, p->ints[0] = 2;           \
      p->ins[0].shape[0] = 0; p->outs[0].shape[0] = 1)                         \
    X(pad_dtype, PAD, "another output dtype", MAYBE_LATER,                     \
      p->outs[0].dtype = TANDEM_I32)                                           \
    X(tile_ints_few, TILE, "too few repeats", 0, p->op.int_count--)            \
    X(tile_negative, TILE, "negative repeats", 0, p->ints[1] = -1)             \
    X(tile_huge, TILE, "a product that overflows", 0, p->ints[0] = INT64_MAX)  \
    X(tile_output_differs, TILE, "another output shape", 0,                    \
      p->outs[0].shape[1] = 3)

MISTAKE_TABLE(pad_mistakes, PAD_MISTAKES)

const struct suite_class suite_pad = {
    .reference = reference,
    .draw = draw,
    .fill = moved_fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(pad_mistakes),
};
