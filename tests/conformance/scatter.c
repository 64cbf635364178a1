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
/* Number of factors in MUL whose product is certainly a normal number. */
#define MAX_FACTORS 400

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

/* ---- random calls ---- */

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const bool nd = call->row->id == TANDEM_OP_SCATTER_ND;
    const int64_t reduction = (int64_t)(block->numbers[0] % (2 * REDUCTIONS));
    uint32_t dtype = moved_dtype(call, block);
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
        indices_fill(call, 1,
                     call->row->id == TANDEM_OP_SCATTER_ND ? 0 : call->ints[0]);
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
    X(sum_of_i32, SCATTER_ELEMENTS, "a sum of i32", MAYBE_LATER,               \
      (p->ints[1] = ADD,                                                       \
       p->ins[0].dtype = p->ins[2].dtype = p->outs[0].dtype = TANDEM_I32))     \
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
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(scatter_mistakes),
};
