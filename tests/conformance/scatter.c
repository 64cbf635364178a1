/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scatter_elements and scatter_nd: each element width, index dtype and
 * reduction, over shapes and strides, in place and not.
 */
#include "element_value.h"
#include "index_case.h"
#include "moved.h"

#include <math.h>

enum { NONE, ADD, MUL, MINIMUM, MAXIMUM, REDUCTIONS };
static const char *const reduction_names[REDUCTIONS] = {"none", "add", "mul",
                                                        "min", "max"};
/* Number of factors in MUL whose product is certainly a normal number. */
#define MAX_FACTORS 400

static const struct scatter_form {
    uint32_t op;
    enum level level;
    struct shape shape;
    int64_t axis;
    struct shape indices;
} forms[] = {
    {TANDEM_OP_SCATTER_ELEMENTS, ALWAYS, S(50, 64), 0, S(37, 64)},
    {TANDEM_OP_SCATTER_ELEMENTS, ALWAYS, S(17, 9), 1, S(15, 23)},
    {TANDEM_OP_SCATTER_ELEMENTS, ALWAYS, S(5, 11, 7), -2, S(4, 30, 5)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(7, 600), 0, S(6, 600)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(600, 7), 1, S(590, 3)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(29), 0, S(101)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(7), -1, S(331)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(8, 5), 0, S(0, 5)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(8, 5), 1, S(8, 0)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(8, 0), 0, S(6, 0)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(0, 5), 0, S(6, 5)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(3, 4), 0, S(300, 1)},
    {TANDEM_OP_SCATTER_ELEMENTS, SOME, S(2, 3, 1, 2, 2, 3, 1, 2), 5,
     S(2, 2, 1, 2, 1, 4, 1, 2)},
    {TANDEM_OP_SCATTER_ND, ALWAYS, S(50, 64), 0, S(37, 1)},
    {TANDEM_OP_SCATTER_ND, ALWAYS, S(17, 9), 0, S(123, 2)},
    {TANDEM_OP_SCATTER_ND, ALWAYS, S(5, 11, 7, 8), 0, S(5, 14, 2)},
    {TANDEM_OP_SCATTER_ND, SOME, S(6, 5, 4), 0, S(3)},
    {TANDEM_OP_SCATTER_ND, SOME, S(6, 5, 4), 0, S(1)},
    {TANDEM_OP_SCATTER_ND, SOME, S(7), 0, S(331, 1)},
    {TANDEM_OP_SCATTER_ND, SOME, S(3, 1024), 0, S(7, 1)},
    {TANDEM_OP_SCATTER_ND, SOME, S(4, 4, 4), 0, S(201, 3)},
    {TANDEM_OP_SCATTER_ND, SOME, S(8, 5), 0, S(0, 2)},
    {TANDEM_OP_SCATTER_ND, SOME, S(8, 0), 0, S(6, 1)},
    {TANDEM_OP_SCATTER_ND, SOME, S(0, 3), 0, S(6, 1)},
    {TANDEM_OP_SCATTER_ND, SOME, S(2, 3, 1, 2, 2, 3, 1, 2), 0, S(9, 8)},
    {TANDEM_OP_SCATTER_ND, SOME, S(2, 3, 4), 0, S(2, 1, 3, 1, 1, 2)},
};

static int64_t *reduction_of(struct call *call)
{
    return &call->ints[call->row->ints - 1];
}

/* Returns the shape of the updates. */
static struct shape updated(uint32_t op, const struct shape *data,
                            const struct shape *indices)
{
    struct shape out = *indices;

    if (op == TANDEM_OP_SCATTER_ELEMENTS)
        return out;
    out.rank--;
    for (int64_t i = indices->at[out.rank]; i < data->rank; i++)
        out.at[out.rank++] = data->at[i];
    return out;
}

/* ---- reference ---- */

/* Sets the update's position in data, which may be out of range. */
static void position_find(const struct call *call, const struct dense *indices,
                          const int64_t *index, int64_t *out)
{
    const struct tandem_tensor_desc *data = &call->operands[0].desc;
    const uint32_t last = indices->rank - 1;
    int64_t at = 0, components = indices->shape[last];

    if (call->row->id == TANDEM_OP_SCATTER_ELEMENTS) {
        for (uint32_t i = 0; i < data->rank; i++) {
            at = at * indices->shape[i] + index[i];
            out[i] = index[i];
        }
        out[axis_from_start(call->ints[0], data->rank)] =
            dense_integer(indices, at);
        return;
    }
    for (uint32_t i = 0; i < last; i++)
        at = at * indices->shape[i] + index[i];
    for (int64_t i = 0; i < data->rank; i++)
        out[i] = i < components ? dense_integer(indices, at * components + i)
                                : index[last + i - components];
}

static double combined(int64_t reduction, double a, double b)
{
    if (isnan(a) || isnan(b))
        return (double)NAN;
    switch (reduction) {
    case ADD:
        return real_rounded(TANDEM_F32, a + b);
    case MUL:
        return real_rounded(TANDEM_F32, a * b);
    case MINIMUM:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const int64_t reduction = call->ints[call->row->ints - 1];
    const struct dense *data = &in[0], *updates = &in[2];
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(out, reduction == NONE ? EXPECTED_BITS : EXPECTED_REAL,
                  data->elements);
    out->exact = reduction != NONE;
    for (int64_t i = 0; i < data->elements; i++) {
        if (reduction == NONE)
            out->integer[i] = (int64_t)data->bits[i];
        else
            out->real[i] = dense_real(data, i);
    }
    for (int64_t i = 0; i < updates->elements; i++) {
        int64_t position[2 * TANDEM_MAX_RANK], element;

        position_find(call, &in[1], index, position);
        index_next(updates->rank, updates->shape, index);
        element = element_find(data, position);
        if (element < 0)
            continue;
        if (reduction == NONE)
            out->integer[element] = (int64_t)updates->bits[i];
        else
            out->real[element] =
                combined(reduction, out->real[element], dense_real(updates, i));
    }
}

/* ---- cases ---- */

/* Fills data or updates. specials: some values are special. */
static void values_fill(struct call *call, uint32_t place, bool specials)
{
    struct operand *operand = &call->operands[place];
    const int64_t reduction = *reduction_of(call);

    if (reduction == NONE) {
        operand_fill_bits(operand, call->random);
    } else if (reduction == MUL) {
        for (int64_t i = 0; i < operand->elements; i++)
            element_set(operand, i, input_factor(call->random, MAX_FACTORS));
    } else if (specials) {
        operand_fill_special(operand, call->random, 20);
    } else {
        operand_fill_normal(operand, call->random, 1.0, 0.0);
    }
}

struct variant {
    uint32_t dtype, index_dtype;
    int64_t reduction;
    bool strided, in_place, specials;
};

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct scatter_form *form, const struct variant *v)
{
    const enum operand_layout layout = v->strided ? ANY : DENSE;
    const struct shape updates =
        updated(form->op, &form->shape, &form->indices);
    const struct shape *shape = &form->shape;
    struct call *call = call_begin(
        suite, row, "%s %s axis %d by %s %s, %s%s%s%s", dtype_text(v->dtype),
        shape_text(shape->rank, shape->at), (int)form->axis,
        dtype_text(v->index_dtype),
        shape_text(form->indices.rank, form->indices.at),
        reduction_names[v->reduction], v->specials ? ", specials" : "",
        v->strided ? ", strided" : "", v->in_place ? ", in place" : "");

    if (call == NULL)
        return;
    moved_require(call, v->dtype);
    call->ints[0] = form->axis;
    *reduction_of(call) = v->reduction;
    operand_init(&call->operands[0], call->random, v->dtype, shape->rank,
                 shape->at, layout, v->in_place);
    call_operand(call, 1, v->index_dtype, &form->indices, layout);
    wild_indices_fill(call, 1, form->axis);
    call_operand(call, 2, v->dtype, &updates, layout);
    values_fill(call, 0, v->specials);
    values_fill(call, 2, v->specials);
    if (v->in_place)
        call_in_place(call, 0, 0);
    else
        call_operand(call, 3, v->dtype, shape, layout);
    call_end(suite, call);
}

/* The forms with each dtype, and with f32 and each reduction. */
static void cases(struct suite *suite, const struct op_row *row)
{
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < MOVED_DTYPES + REDUCTIONS - 1; i++)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t f = 0; f < COUNT_OF(forms); f++) {
                const bool reduces = i >= MOVED_DTYPES;
                const bool always = forms[f].level == ALWAYS &&
                                    (i == 0 || reduces) && j % 4 == 0;
                const struct variant v = {
                    .dtype = reduces ? TANDEM_F32 : moved_dtypes[i],
                    .index_dtype = j % 2 == 0 ? TANDEM_I32 : TANDEM_I64,
                    .reduction = reduces ? i - MOVED_DTYPES + 1 : NONE,
                    .strided = j / 2 % 2 != 0,
                    .in_place = j / 4 != 0,
                    .specials = reduces && (i + j + f) % 3 == 0};

                if (forms[f].op == row->id &&
                    form_chosen(suite, &choice, always, 16))
                    form_run(suite, row, &forms[f], &v);
            }
}

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const bool nd = call->row->id == TANDEM_OP_SCATTER_ND;
    const int64_t reduction = (int64_t)(block->numbers[0] % (2 * REDUCTIONS));
    uint32_t dtype = moved_dtype(block);
    struct shape data, indices, updates;

    shape_draw(&data, random, 1, TANDEM_MAX_RANK);
    shape_limit(&data, 300);
    call->ints[0] = nd ? 0 : axis_draw(random, data.rank);
    *reduction_of(call) = reduction < REDUCTIONS ? reduction : NONE;
    if (*reduction_of(call) != NONE)
        dtype = TANDEM_F32;
    indices = nd ? vector_indices_draw(random, &data, 0)
                 : element_indices_draw(random, &data, call->ints[0]);
    updates = updated(call->row->id, &data, &indices);
    operand_draw(call, 0, dtype, &data);
    operand_draw(call, 1, index_dtype_draw(random), &indices);
    operand_draw(call, 2, dtype, &updates);
    operand_draw(call, 3, dtype, &data);
}

static bool fill(struct call *call, uint32_t input, const struct spread *spread)
{
    if (input == 1)
        indices_fill_axes(
            call, 1, call->row->id == TANDEM_OP_SCATTER_ND ? 0 : call->ints[0]);
    else
        values_fill(call, input, spread->special != SPECIAL_NONE);
    return true;
}

static bool draw_invalid_attribute(struct call *call)
{
    int64_t rank = call->operands[0].desc.rank;

    if (call->row->ints == 1 || random_once_in(call->random, 2))
        *reduction_of(call) =
            invalid_number_draw(call->random, 0, REDUCTIONS - 1);
    else
        call->ints[0] = invalid_number_draw(call->random, -rank, rank - 1);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    bool nd = p->row->id == TANDEM_OP_SCATTER_ND;

    mistaken_tensor_set(&p->ins[1], TANDEM_I32, 2, 2, nd ? 1 : 4);
    mistaken_tensor_set(&p->ins[2], TANDEM_F32, 2, 2, 4);
}

#define SCATTER_MISTAKES(X)                                                    \
    X(axis_large, SCATTER_ELEMENTS, "an axis too large", 0, p->ints[0] = 2)    \
    X(axis_negative, SCATTER_ELEMENTS, "an axis too small", 0,                 \
      p->ints[0] = -3)                                                         \
    X(reduction_large, SCATTER_ELEMENTS, "reduction 5", 0, p->ints[1] = 5)     \
    X(ints_few, SCATTER_ELEMENTS, "no reduction", 0, p->op.int_count--)        \
    X(rank, SCATTER_ELEMENTS, "indices of another rank", 0,                    \
      p->ins[1].rank = p->ins[2].rank = 1)                                     \
    X(long, SCATTER_ELEMENTS, "indices longer than data", 0,                   \
      p->ins[1].shape[1] = p->ins[2].shape[1] = 5)                             \
    X(updates_differ, SCATTER_ELEMENTS, "updates longer than indices", 0,      \
      p->ins[2].shape[0] = 3)                                                  \
    X(output_differs, SCATTER_ELEMENTS, "another output shape", 0,             \
      p->outs[0].shape[0] = 2)                                                 \
    X(float_indices, SCATTER_ELEMENTS, "indices of f32", MAYBE_LATER,          \
      p->ins[1].dtype = TANDEM_F32)                                            \
    X(updates_dtype, SCATTER_ELEMENTS, "updates of another dtype",             \
      MAYBE_LATER, p->ins[2].dtype = TANDEM_I32)                               \
    X(nd_reduction, SCATTER_ND, "reduction -1", 0, p->ints[0] = -1)            \
    X(nd_components_many, SCATTER_ND, "too many components", 0,                \
      p->ins[1].shape[1] = 3)                                                  \
    X(nd_components_none, SCATTER_ND, "no component", 0,                       \
      p->ins[1].shape[1] = 0)                                                  \
    X(nd_scalar, SCATTER_ND, "indices of rank 0", 0, p->ins[1].rank = 0)       \
    X(nd_updates_differ, SCATTER_ND, "another number of updates", 0,           \
      p->ins[2].shape[0] = 3)                                                  \
    X(nd_updates_narrow, SCATTER_ND, "updates narrower than data", 0,          \
      p->ins[2].shape[1] = 3)                                                  \
    X(nd_updates_in_place, SCATTER_ND, "the updates as output", IN_BUFFER,     \
      (p->ins[1].shape[0] = p->ins[2].shape[0] = 3, p->outs[0] = p->ins[2]))

MISTAKE_TABLE(scatter_mistakes, SCATTER_MISTAKES)

const struct suite_class suite_scatter = {
    .rules = IN_PLACE_FIRST,
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(scatter_mistakes),
};
