/* SPDX-License-Identifier: Apache-2.0 */
/* Computes tensors of shapes on the host while a form is made; see lower.h.
 * Each function needs inputs whose content is known. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <string.h>

/* Sets the first output to a vector of the values. */
static bool output_integers(struct lowering *l, uint32_t dtype, uint32_t rank,
                            const int64_t *shape, const int64_t *values)
{
    struct operand out;

    if (!lower_new_integers(l, dtype, rank, shape, &out))
        return false;
    memcpy(out.integers, values,
           (size_t)operand_elements(&out) * sizeof(values[0]));
    return lower_output(l, 0, &out);
}

bool lower_shape(struct lowering *l)
{
    const struct form_view *view = &lower_input_operand(l, 0)->view;
    const int64_t rank = view->rank;
    int64_t start = graph_integer(l->node, "start", 0);
    int64_t end = graph_integer(l->node, "end", rank), count;

    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    count = end - start;
    return output_integers(l, TANDEM_I64, 1, &count, view->shape + start);
}

bool lower_size(struct lowering *l)
{
    const int64_t elements = operand_elements(lower_input_operand(l, 0));

    return output_integers(l, TANDEM_I64, 0, NULL, &elements);
}

bool lower_constant_of_shape(struct lowering *l)
{
    const struct graph_attribute *value = graph_attribute(l->node, "value");
    const uint32_t dtype = value != NULL ? value->tensor_dtype : TANDEM_F32;
    const double real = value != NULL ? value->real : 0;
    int64_t rank;
    const int64_t *shape = lower_integers(l, lower_input_operand(l, 0), &rank);
    struct operand out;

    if (shape == NULL)
        return false;
    if (rank > TANDEM_MAX_RANK)
        return lower_fail(l, "the shape has more than %u axes",
                          TANDEM_MAX_RANK);
    if (dtype == TANDEM_F32)
        return lower_new_constant(l, real, (uint32_t)rank, shape, &out) &&
               lower_output(l, 0, &out);
    if (!lower_new_integers(l, dtype, (uint32_t)rank, shape, &out))
        return false;
    for (int64_t i = 0; i < operand_elements(&out); i++)
        out.integers[i] = value->integer;
    return lower_output(l, 0, &out);
}

/* Computes one element.  Returns false for a division by zero and for results
 * beyond int64. */
static bool integers_combine(uint32_t op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case TANDEM_OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case TANDEM_OP_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case TANDEM_OP_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case TANDEM_OP_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = a / b;
        return true;
    case TANDEM_OP_MIN:
        *out = a < b ? a : b;
        return true;
    case TANDEM_OP_MAX:
        *out = a > b ? a : b;
        return true;
    case TANDEM_OP_EQUAL:
        *out = a == b;
        return true;
    case TANDEM_OP_LESS:
        *out = a < b;
        return true;
    case TANDEM_OP_LESS_EQUAL:
        *out = a <= b;
        return true;
    case TANDEM_OP_GREATER:
        *out = a > b;
        return true;
    case TANDEM_OP_GREATER_EQUAL:
        *out = a >= b;
        return true;
    case TANDEM_OP_AND:
        *out = a & b; /* of bools */
        return true;
    case TANDEM_OP_OR:
        *out = a | b;
        return true;
    default:
        return false;
    }
}

/* Position of element `index` of a broadcast result in an input. */
static int64_t broadcast_position(const struct form_view *view, uint32_t rank,
                                  const int64_t *shape, int64_t index)
{
    int64_t position = 0, stride = 1;

    for (uint32_t i = 0; i < view->rank; i++) {
        const uint32_t axis = view->rank - 1 - i;
        const int64_t length = shape[rank - 1 - i];

        if (view->shape[axis] != 1)
            position += index % length * stride;
        stride *= view->shape[axis];
        index /= length;
    }
    return position;
}

/* Prepares an element-wise function: reads all inputs and makes the output. */
static bool broadcast_begin(struct lowering *l, uint32_t count, uint32_t dtype,
                            struct operand **inputs, const int64_t **values,
                            struct operand *out)
{
    int64_t shape[TANDEM_MAX_RANK], ignored;
    uint32_t rank;

    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = lower_input_operand(l, i);
        values[i] = lower_integers(l, inputs[i], &ignored);
        if (values[i] == NULL)
            return false;
    }
    return lower_broadcast(l, inputs, count, &rank, shape) &&
           lower_new_integers(l, dtype, rank, shape, out);
}

bool shape_binary(struct lowering *l)
{
    const uint32_t op = l->node->op->tandem_op;
    const bool compares =
        l->node->op->rule == RULE_COMPARE || l->node->op->rule == RULE_LOGICAL;
    const uint32_t dtype =
        compares ? TANDEM_BOOL : lower_input_operand(l, 0)->dtype;
    struct operand *inputs[2], out;
    const int64_t *values[2];

    if (!broadcast_begin(l, 2, dtype, inputs, values, &out))
        return false;
    for (int64_t i = 0; i < operand_elements(&out); i++) {
        int64_t pair[2];

        for (uint32_t k = 0; k < 2; k++)
            pair[k] = values[k][broadcast_position(
                &inputs[k]->view, out.view.rank, out.view.shape, i)];
        if (!integers_combine(op, pair[0], pair[1], &out.integers[i]))
            return lower_fail(l,
                              "the result of %" PRId64 " and %" PRId64
                              " is not an integer",
                              pair[0], pair[1]);
        out.integers[i] = integer_narrow(dtype, out.integers[i]);
    }
    return lower_output(l, 0, &out);
}

bool shape_not(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    int64_t count;
    const int64_t *values = lower_integers(l, x, &count);

    if (values == NULL ||
        !lower_new_integers(l, TANDEM_BOOL, x->view.rank, x->view.shape, &out))
        return false;
    for (int64_t i = 0; i < count; i++)
        out.integers[i] = values[i] == 0;
    return lower_output(l, 0, &out);
}

bool shape_expand(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), wanted = *x, out;
    struct operand *const operands[] = {x, &wanted};
    int64_t shape[TANDEM_MAX_RANK], rank, count;
    const int64_t *lengths =
        lower_integers(l, lower_input_operand(l, 1), &rank);
    const int64_t *values = lower_integers(l, x, &count);
    uint32_t out_rank;

    if (lengths == NULL || values == NULL)
        return false;
    if (rank > TANDEM_MAX_RANK)
        return lower_fail(l, "the new shape has more than %u axes",
                          TANDEM_MAX_RANK);
    wanted.view.rank = (uint32_t)rank;
    memcpy(wanted.view.shape, lengths, (size_t)rank * sizeof(lengths[0]));
    if (!lower_broadcast(l, operands, 2, &out_rank, shape) ||
        !lower_new_integers(l, x->dtype, out_rank, shape, &out))
        return false;
    for (int64_t i = 0; i < operand_elements(&out); i++)
        out.integers[i] =
            values[broadcast_position(&x->view, out_rank, shape, i)];
    return lower_output(l, 0, &out);
}

bool shape_where(struct lowering *l)
{
    struct operand *inputs[3], out;
    const int64_t *values[3];

    if (!broadcast_begin(l, 3, lower_input_operand(l, 1)->dtype, inputs, values,
                         &out))
        return false;
    for (int64_t i = 0; i < operand_elements(&out); i++) {
        int64_t element[3];

        for (uint32_t k = 0; k < 3; k++)
            element[k] = values[k][broadcast_position(
                &inputs[k]->view, out.view.rank, out.view.shape, i)];
        out.integers[i] = element[0] != 0 ? element[1] : element[2];
    }
    return lower_output(l, 0, &out);
}

bool shape_cast(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0);
    int64_t count;

    return lower_integers(l, x, &count) != NULL &&
           lower_cast_integers(l, x, cast_dtype(l->graph, l->node));
}

/* Gather along axis 0 of a vector. */
bool shape_gather(struct lowering *l)
{
    struct operand *data = lower_input_operand(l, 0);
    struct operand *indices = lower_input_operand(l, 1), out;
    int64_t length, count;
    const int64_t *values, *positions;

    if (data->view.rank != 1)
        return lower_gather(l);
    values = lower_integers(l, data, &length);
    positions = lower_integers(l, indices, &count);
    if (values == NULL || positions == NULL)
        return false;
    if (!lower_new_integers(l, data->dtype, indices->view.rank,
                            indices->view.shape, &out))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const int64_t position =
            positions[i] < 0 ? positions[i] + length : positions[i];

        if (position < 0 || position >= length)
            return lower_fail(
                l, "index %" PRId64 " is out of range for %" PRId64 " elements",
                positions[i], length);
        out.integers[i] = values[position];
    }
    return lower_output(l, 0, &out);
}

bool shape_concat(struct lowering *l)
{
    struct operand out;
    int64_t total = 0, count;

    for (uint32_t i = 0; i < l->node->input_count; i++) {
        struct operand *x = lower_input_operand(l, i);

        if (x->view.rank != 1)
            return lower_concat(l);
        total += x->view.shape[0];
    }
    if (!lower_new_integers(l, lower_input_operand(l, 0)->dtype, 1, &total,
                            &out))
        return false;
    total = 0;
    for (uint32_t i = 0; i < l->node->input_count; i++) {
        const int64_t *values =
            lower_integers(l, lower_input_operand(l, i), &count);

        if (values == NULL)
            return false;
        memcpy(out.integers + total, values, (size_t)count * sizeof(values[0]));
        total += count;
    }
    return lower_output(l, 0, &out);
}

/* Slice of a vector. */
bool shape_slice(struct lowering *l)
{
    struct operand *x = lower_input_operand(l, 0), out;
    struct form_view view = x->view;
    const int64_t *values;
    int64_t count;

    if (view.rank != 1)
        return lower_slice(l);
    values = lower_integers(l, x, &count);
    if (values == NULL)
        return false;
    view.first_element = 0;
    view.strides[0] = 1;
    if (!lower_slice_view(l, &view) ||
        !lower_new_integers(l, x->dtype, 1, view.shape, &out))
        return false;
    for (int64_t i = 0; i < view.shape[0]; i++)
        out.integers[i] = values[view.first_element + i * view.strides[0]];
    return lower_output(l, 0, &out);
}

bool shape_range(struct lowering *l)
{
    int64_t limits[3], count = 0, ignored;
    struct operand out;

    for (uint32_t i = 0; i < 3; i++) {
        const int64_t *value =
            lower_integers(l, lower_input_operand(l, i), &ignored);

        if (value == NULL)
            return false;
        limits[i] = *value;
    }
    if (limits[2] == 0 || limits[2] == INT64_MIN)
        return lower_fail(l, "the step is %" PRId64, limits[2]);
    if (limits[2] > 0 && limits[1] > limits[0])
        count = (limits[1] - limits[0] - 1) / limits[2] + 1;
    if (limits[2] < 0 && limits[1] < limits[0])
        count = (limits[0] - limits[1] - 1) / -limits[2] + 1;
    if (!lower_new_integers(l, lower_input_operand(l, 0)->dtype, 1, &count,
                            &out))
        return false;
    for (int64_t i = 0; i < count; i++)
        out.integers[i] = limits[0] + i * limits[2];
    return lower_output(l, 0, &out);
}
