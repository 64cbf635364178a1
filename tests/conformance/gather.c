/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather, gather_elements and gather_nd: each element width and index dtype,
 * over shapes and strides.
 */
#include "element_value.h"
#include "index_case.h"
#include "moved.h"

#include <math.h>

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
        indices->at[i] = i == 0 ? index_count_draw(random, data)
                                : random_between(random, 0, 3);
}

static void draw(struct call *call, const struct block *block)
{
    struct random *random = call->random;
    const uint32_t dtype = moved_dtype(call, block);
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
        indices_fill(call, 1, call->ints[0]);
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
    .reference = reference,
    .draw = draw,
    .fill = fill,
    .draw_invalid_attribute = draw_invalid_attribute,
    .weight = 4,
    .make_valid = make_valid,
    CLASS_MISTAKES(gather_mistakes),
};
