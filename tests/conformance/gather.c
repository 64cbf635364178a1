/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather, gather_elements and gather_nd: each element width and index dtype,
 * over shapes and strides.
 */
#include "element_value.h"
#include "index_case.h"
#include "moved.h"

#include <math.h>

static const struct gather_form {
    uint32_t op;
    enum level level;
    struct shape shape;
    int64_t attribute; /* axis or batch_dims */
    struct shape indices;
} forms[] = {
    {TANDEM_OP_GATHER, ALWAYS, S(50, 64), 0, S(37)},
    {TANDEM_OP_GATHER, ALWAYS, S(17, 9), 1, S(23)},
    {TANDEM_OP_GATHER, ALWAYS, S(5, 11, 7), -2, S(3, 4)},
    {TANDEM_OP_GATHER, SOME, S(29), 0, S0},
    {TANDEM_OP_GATHER, SOME, S(29), -1, S(101)},
    {TANDEM_OP_GATHER, SOME, S(8, 5), 0, S(0)},
    {TANDEM_OP_GATHER, SOME, S(8, 0), 0, S(6)},
    {TANDEM_OP_GATHER, SOME, S(1000, 3), 0, S(2049)},
    {TANDEM_OP_GATHER, ALWAYS, S(40, 5), 0, S(70)},
    {TANDEM_OP_GATHER, SOME, S(40, 2), 0, S(5001)},
    {TANDEM_OP_GATHER, SOME, S(3, 9, 2050), 1, S(4)},
    {TANDEM_OP_GATHER, SOME, S(3, 2, 6, 5), 2, S(2, 2)},
    {TANDEM_OP_GATHER, SOME, S(1, 1), 1, S(1)},
    {TANDEM_OP_GATHER, SOME, S(2, 3, 4), 0, S(2, 1, 3)},
    {TANDEM_OP_GATHER, SOME, S(1797, 64), 0, S(512)},
    {TANDEM_OP_GATHER, SOME, S(5), 0, S(9001)},
    {TANDEM_OP_GATHER, SOME, S(0, 4), 0, S(3)},
    {TANDEM_OP_GATHER_ELEMENTS, ALWAYS, S(50, 64), 0, S(37, 64)},
    {TANDEM_OP_GATHER_ELEMENTS, ALWAYS, S(17, 9), 1, S(15, 23)},
    {TANDEM_OP_GATHER_ELEMENTS, ALWAYS, S(5, 11, 7), -2, S(4, 30, 5)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(29), 0, S(101)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(7), -1, S(10001)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(8, 5), 0, S(0, 5)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(8, 5), 1, S(8, 0)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(8, 0), 0, S(6, 0)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(0, 5), 0, S(6, 5)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(3, 4), 0, S(300, 1)},
    {TANDEM_OP_GATHER_ELEMENTS, SOME, S(2, 3, 1, 2, 2, 3, 1, 2), 5,
     S(2, 2, 1, 2, 1, 4, 1, 2)},
    {TANDEM_OP_GATHER_ND, ALWAYS, S(50, 64), 0, S(37, 1)},
    {TANDEM_OP_GATHER_ND, ALWAYS, S(17, 9), 0, S(23, 2)},
    {TANDEM_OP_GATHER_ND, ALWAYS, S(5, 11, 7, 8), 1, S(5, 4, 2)},
    {TANDEM_OP_GATHER_ND, SOME, S(6, 5, 4), 0, S(3)},
    {TANDEM_OP_GATHER_ND, SOME, S(6, 5, 4), 0, S(1)},
    {TANDEM_OP_GATHER_ND, SOME, S(3, 4, 5), 2, S(3, 4, 1)},
    {TANDEM_OP_GATHER_ND, SOME, S(3, 4, 5, 2), 2, S(3, 4, 7, 1)},
    {TANDEM_OP_GATHER_ND, SOME, S(4, 4, 4), 0, S(2001, 3)},
    {TANDEM_OP_GATHER_ND, SOME, S(8, 5), 0, S(0, 2)},
    {TANDEM_OP_GATHER_ND, SOME, S(8, 0), 0, S(6, 1)},
    {TANDEM_OP_GATHER_ND, SOME, S(8, 0), 0, S(6, 2)},
    {TANDEM_OP_GATHER_ND, SOME, S(0, 3), 1, S(0, 1)},
    {TANDEM_OP_GATHER_ND, SOME, S(2, 3, 1, 2, 2, 3, 1, 2), 0, S(9, 8)},
    {TANDEM_OP_GATHER_ND, SOME, S(2, 3, 4), 0, S(2, 1, 3, 1, 1, 2)},
};

/* Returns the shape of the output. */
static struct shape gathered(uint32_t op, const struct shape *data,
                             int64_t attribute, const struct shape *indices)
{
    const bool nd = op == TANDEM_OP_GATHER_ND;
    const uint32_t axis = (uint32_t)axis_from_start(attribute, data->rank);
    const int64_t last = nd ? indices->at[indices->rank - 1] : 1;
    struct shape out = {0};

    if (op == TANDEM_OP_GATHER_ELEMENTS)
        return *indices;
    for (uint32_t i = 0; i < axis && !nd; i++)
        out.at[out.rank++] = data->at[i];
    for (uint32_t i = 0; i < indices->rank - nd; i++)
        out.at[out.rank++] = indices->at[i];
    for (uint32_t i = axis + (uint32_t)last; i < data->rank; i++)
        out.at[out.rank++] = data->at[i];
    return out;
}

/* ---- reference ---- */

/* Sets an output element's position in data, which may be out of range. */
static void position_find(const struct call *call, const struct dense *indices,
                          const int64_t *index, int64_t *out)
{
    const struct tandem_tensor_desc *data = &call->operands[0].desc;
    const int64_t axis = axis_from_start(call->ints[0], data->rank);
    const int64_t last = indices->rank > 0 ? indices->rank - 1 : 0;
    int64_t at = 0, inner = 1;

    if (call->row->id == TANDEM_OP_GATHER_ND) {
        for (int64_t i = 0; i < last; i++)
            at = at * indices->shape[i] + index[i];
        for (int64_t i = 0; i < axis; i++)
            out[i] = index[i];
        for (int64_t i = 0; i < indices->shape[last]; i++)
            out[axis + i] =
                dense_integer(indices, at * indices->shape[last] + i);
        for (int64_t i = axis + indices->shape[last]; i < data->rank; i++)
            out[i] = index[last + i - axis - indices->shape[last]];
        return;
    }
    for (int64_t i = 0; i < data->rank; i++)
        out[i] = index[i];
    if (call->row->id == TANDEM_OP_GATHER_ELEMENTS) {
        for (int64_t i = 0; i < data->rank; i++)
            at = at * indices->shape[i] + index[i];
    } else {
        for (uint32_t i = indices->rank; i-- > 0;) {
            at += index[axis + i] * inner;
            inner *= indices->shape[i];
        }
        for (int64_t i = axis + 1; i < data->rank; i++)
            out[i] = index[i - 1 + indices->rank];
    }
    out[axis] = dense_integer(indices, at);
}

static void reference(const struct call *call, const struct dense *in,
                      struct expected *out)
{
    const struct tandem_tensor_desc *result = &call->operands[2].desc;
    int64_t index[TANDEM_MAX_RANK] = {0};

    expected_init(out, EXPECTED_BITS, call->operands[2].elements);
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t position[2 * TANDEM_MAX_RANK], element;

        position_find(call, &in[1], index, position);
        element = element_find(&in[0], position);
        if (element >= 0)
            out->integer[i] = (int64_t)in[0].bits[element];
        else if (dtype_is_float(in[0].dtype))
            out->real[i] = (double)NAN;
        index_next(result->rank, result->shape, index);
    }
}

/* ---- cases ---- */

static void form_run(struct suite *suite, const struct op_row *row,
                     uint32_t dtype, uint32_t index_dtype,
                     const struct gather_form *form, bool strided)
{
    const enum operand_layout layout = strided ? ANY : DENSE;
    const struct shape out =
        gathered(form->op, &form->shape, form->attribute, &form->indices);
    struct call *call =
        call_begin(suite, row, "%s %s %s %d by %s %s%s", dtype_text(dtype),
                   shape_text(form->shape.rank, form->shape.at),
                   form->op == TANDEM_OP_GATHER_ND ? "batch_dims" : "axis",
                   (int)form->attribute, dtype_text(index_dtype),
                   shape_text(form->indices.rank, form->indices.at),
                   strided ? ", strided" : "");

    if (call == NULL)
        return;
    moved_require(call, dtype);
    call->ints[0] = form->attribute;
    operand_fill_bits(call_operand(call, 0, dtype, &form->shape, layout),
                      call->random);
    call_operand(call, 1, index_dtype, &form->indices, layout);
    wild_indices_fill(call, 1, form->attribute);
    call_operand(call, 2, dtype, &out, layout);
    call_end(suite, call);
}

static void cases(struct suite *suite, const struct op_row *row)
{
    static const uint32_t index_dtypes[] = {TANDEM_I32, TANDEM_I64};
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < MOVED_DTYPES; i++)
        for (uint32_t j = 0; j < 2; j++)
            for (uint32_t f = 0; f < COUNT_OF(forms); f++) {
                const struct gather_form *form = &forms[f];

                if (form->op != row->id)
                    continue;
                if (form_chosen(suite, &choice, form->level == ALWAYS && i == 0,
                                8))
                    form_run(suite, row, moved_dtypes[i], index_dtypes[j], form,
                             false);
                if (form_chosen(suite, &choice, false, 12))
                    form_run(suite, row, moved_dtypes[i], index_dtypes[j], form,
                             true);
            }
}

/* ---- random calls ---- */

/* Draws the indices of gather, whose rank is 0 to 3. */
static void slice_indices_draw(struct call *call, const struct shape *data,
                               struct shape *indices)
{
    struct random *random = call->random;

    indices->rank =
        (uint32_t)random_below(random, TANDEM_MAX_RANK + 2u - data->rank);
    if (indices->rank > 3)
        indices->rank = 3;
    for (uint32_t i = 0; i < indices->rank; i++)
        indices->at[i] = random_between(random, 0, i == 0 ? 9 : 3);
}

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const uint32_t dtype = moved_dtype(block);
    struct shape data, indices = {0}, out;

    shape_draw(&data, random, 1,
               call->row->id == TANDEM_OP_GATHER ? 5 : TANDEM_MAX_RANK);
    shape_limit(&data, 3000);
    call->ints[0] = axis_draw(random, data.rank);
    if (call->row->id == TANDEM_OP_GATHER) {
        slice_indices_draw(call, &data, &indices);
    } else if (call->row->id == TANDEM_OP_GATHER_ELEMENTS) {
        indices = element_indices_draw(random, &data, call->ints[0]);
    } else {
        call->ints[0] = random_between(random, 0, data.rank - 1);
        indices = vector_indices_draw(random, &data, (uint32_t)call->ints[0]);
    }
    out = gathered(call->row->id, &data, call->ints[0], &indices);
    operand_draw(call, 0, dtype, &data);
    operand_draw(call, 1, index_dtype_draw(random), &indices);
    operand_draw(call, 2, dtype, &out);
}

static bool fill(struct call *call, uint32_t input, const struct spread *spread)
{
    (void)spread;
    if (input == 0)
        operand_fill_bits(&call->operands[0], call->random);
    else
        indices_fill_axes(call, 1, call->ints[0]);
    return true;
}

static bool draw_invalid_attribute(struct call *call)
{
    int64_t low = -(int64_t)call->operands[0].desc.rank, high = -1 - low;

    if (call->row->id == TANDEM_OP_GATHER_ND)
        low = 0;
    call->ints[0] = invalid_number_draw(call->random, low, high);
    return true;
}

/* ---- invalid calls ---- */

static void make_valid(struct mistaken_call *p)
{
    if (p->row->id == TANDEM_OP_GATHER_ELEMENTS) {
        mistaken_tensor_set(&p->ins[1], TANDEM_I32, 2, 5, 4);
        mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 4);
    } else if (p->row->id == TANDEM_OP_GATHER_ND) {
        p->ints[0] = 1;
        mistaken_tensor_set(&p->ins[1], TANDEM_I32, 2, 3, 1);
        mistaken_tensor_set(&p->outs[0], TANDEM_F32, 1, 3, 0);
    } else {
        mistaken_tensor_set(&p->ins[1], TANDEM_I32, 1, 5, 0);
        mistaken_tensor_set(&p->outs[0], TANDEM_F32, 2, 5, 4);
    }
}

#define GATHER_MISTAKES(X)                                                     \
    X(gather_axis_large, GATHER, "an axis too large", 0, p->ints[0] = 2)       \
    X(gather_axis_negative, GATHER, "an axis too small", 0, p->ints[0] = -3)   \
    X(gather_dtype_labels, GATHER, "indices of f32", MAYBE_LATER,              \
      p->ins[1].dtype = TANDEM_F32)                                            \
    X(gather_output_differs, GATHER, "another output shape", 0,                \
      p->outs[0].shape[0] = 2)                                                 \
    X(elements_axis_large, GATHER_ELEMENTS, "an axis too large", 0,            \
      p->ints[0] = 2)                                                          \
    X(elements_axis_negative, GATHER_ELEMENTS, "an axis too small", 0,         \
      p->ints[0] = -3)                                                         \
    X(elements_rank, GATHER_ELEMENTS, "indices of another rank", 0,            \
      p->ins[1].rank = p->outs[0].rank = 1)                                    \
    X(elements_long, GATHER_ELEMENTS, "indices longer than data", 0,           \
      p->ins[1].shape[1] = p->outs[0].shape[1] = 5)                            \
    X(elements_output_differs, GATHER_ELEMENTS, "another output shape", 0,     \
      p->outs[0].shape[0] = 4)                                                 \
    X(nd_batch_dims_large, GATHER_ND, "batch_dims of the rank", 0,             \
      p->ints[0] = 2)                                                          \
    X(nd_batch_dims_negative, GATHER_ND, "negative batch_dims", 0,             \
      p->ints[0] = -1)                                                         \
    X(nd_batch_differs, GATHER_ND, "another batch size", 0,                    \
      p->ins[1].shape[0] = p->outs[0].shape[0] = 2)                            \
    X(nd_components_many, GATHER_ND, "too many components", 0,                 \
      p->ins[1].shape[1] = 2)                                                  \
    X(nd_components_none, GATHER_ND, "no component", 0,                        \
      p->ins[1].shape[1] = 0)                                                  \
    X(nd_scalar, GATHER_ND, "indices of rank 0", 0, p->ins[1].rank = 0)        \
    X(nd_output_differs, GATHER_ND, "another output shape", 0,                 \
      p->outs[0].shape[0] = 2)

MISTAKE_TABLE(gather_mistakes, GATHER_MISTAKES)

const struct suite_class suite_gather = {
    .cases = cases,
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(gather_mistakes),
};
