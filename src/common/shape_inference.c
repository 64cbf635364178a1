/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the shapes of operators' outputs; see shape_inference.h. */
#include "common/shape_inference.h"

#include <stdio.h>

#include "common/tensor_extent.h"
#include "common/last_error.h"

const char *shape_text(const struct tandem_tensor_desc *tensor, char *text)
{
    size_t used = 0;
    text[used++] = '[';
    for (uint32_t i = 0; i < tensor->rank && i < TANDEM_MAX_RANK; i++)
        used +=
            (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%lld",
                             i > 0 ? ", " : "", (long long)tensor->shape[i]);
    text[used++] = ']';
    text[used] = '\0';
    return text;
}

bool shape_broadcasts(const struct tandem_tensor_desc *from,
                      const struct tandem_tensor_desc *to)
{
    if (from->rank > to->rank)
        return false;
    for (uint32_t i = 0; i < from->rank; i++) {
        int64_t size = from->shape[i];
        if (size != 1 && size != to->shape[i + to->rank - from->rank])
            return false;
    }
    return true;
}

static void take_shape(struct tandem_tensor_desc *out,
                       const struct tandem_tensor_desc *from)
{
    out->rank = from->rank;
    for (uint32_t i = 0; i < from->rank; i++)
        out->shape[i] = from->shape[i];
}

static enum tandem_status
infer_broadcast(const struct operator_info *row,
                const struct tandem_tensor_desc *const *inputs, uint32_t count,
                struct tandem_tensor_desc *out)
{
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    out->rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct tandem_tensor_desc *input = inputs[i];
        if (input == NULL)
            continue;
        if (input->rank > out->rank) {
            uint32_t more = input->rank - out->rank;
            for (uint32_t j = out->rank; j-- > 0;)
                out->shape[j + more] = out->shape[j];
            for (uint32_t j = 0; j < more; j++)
                out->shape[j] = 1;
            out->rank = input->rank;
        }
        for (uint32_t j = 0; j < input->rank; j++) {
            int64_t *size = &out->shape[j + out->rank - input->rank];
            if (*size == 1)
                *size = input->shape[j];
            else if (input->shape[j] != 1 && input->shape[j] != *size)
                return argument_error(
                    "%s: input %u of shape %s does not broadcast with %s",
                    row->name, i, shape_text(input, left),
                    shape_text(out, right));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status
infer_transpose(const struct tandem_op *op,
                const struct tandem_tensor_desc *input,
                struct tandem_tensor_desc *out)
{
    uint32_t seen = 0;
    if (op->int_count < input->rank || (input->rank > 0 && op->ints == NULL))
        return argument_error(
            "transpose: needs %u integer attributes (perm), got %u",
            input->rank, op->int_count);
    out->rank = input->rank;
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t axis = op->ints[i];
        if (axis < 0 || axis >= input->rank || (seen >> axis & 1u) != 0)
            return argument_error(
                "transpose: perm[%u] = %lld is outside rank %u or there twice",
                i, (long long)axis, input->rank);
        seen |= 1u << axis;
        out->shape[i] = input->shape[axis];
    }
    return TANDEM_OK;
}

/* Returns true if the operator has no result when it reduces 0 elements. */
static bool needs_elements(const struct operator_info *row)
{
    return row->id == TANDEM_OP_REDUCE_MAX || row->id == TANDEM_OP_REDUCE_MIN ||
           row->op_class == TANDEM_CLASS_ARG_REDUCE;
}

static enum tandem_status check_axes(const struct operator_info *row,
                                     uint64_t axes, uint32_t rank)
{
    uint64_t all = (UINT64_C(1) << rank) - 1u;
    if ((axes & ~all) != 0 || (axes == 0 && rank > 0))
        return argument_error("%s: axes mask 0x%llx names %s for rank %u",
                              row->name, (unsigned long long)axes,
                              axes == 0 ? "no axis" : "axes out of range",
                              rank);
    if (row->op_class == TANDEM_CLASS_ARG_REDUCE && axes != all &&
        (axes & (axes - 1u)) != 0)
        return argument_error(
            "%s: axes mask 0x%llx must name one axis or all %u", row->name,
            (unsigned long long)axes, rank);
    return TANDEM_OK;
}

static enum tandem_status infer_reduce(const struct operator_info *row,
                                       const struct tandem_op *op,
                                       const struct tandem_tensor_desc *input,
                                       struct tandem_tensor_desc *out)
{
    uint64_t axes = (uint64_t)op->ints[0];
    int64_t kept = 1, reduced = 1;
    enum tandem_status status = check_axes(row, axes, input->rank);
    if (status != TANDEM_OK)
        return status;
    if (op->ints[1] != 0 && op->ints[1] != 1)
        return argument_error("%s: keepdims is %lld; it must be 0 or 1",
                              row->name, (long long)op->ints[1]);
    out->rank = 0;
    for (uint32_t i = 0; i < input->rank; i++) {
        bool reduce = (axes >> i & 1u) != 0;
        *(reduce ? &reduced : &kept) *= input->shape[i] != 0;
        if (!reduce || op->ints[1] == 1)
            out->shape[out->rank++] = reduce ? 1 : input->shape[i];
    }
    if (needs_elements(row) && reduced == 0 && kept != 0)
        return argument_error(
            "%s: the reduced axes are empty, so there is no result", row->name);
    return TANDEM_OK;
}

static enum tandem_status check_axis(const struct operator_info *row,
                                     int64_t axis, uint32_t rank)
{
    if (axis >= -(int64_t)rank && axis < (int64_t)rank)
        return TANDEM_OK;
    return argument_error("%s: axis %lld is out of range for rank %u",
                          row->name, (long long)axis, rank);
}

static enum tandem_status infer_gather(const struct operator_info *row,
                                       const struct tandem_op *op,
                                       const struct tandem_tensor_desc *data,
                                       const struct tandem_tensor_desc *indices,
                                       struct tandem_tensor_desc *out)
{
    enum tandem_status status = check_axis(row, op->ints[0], data->rank);
    if (status != TANDEM_OK)
        return status;
    uint32_t axis =
        (uint32_t)(op->ints[0] < 0 ? op->ints[0] + data->rank : op->ints[0]);
    if (data->rank - 1 + indices->rank > TANDEM_MAX_RANK)
        return argument_error(
            "gather: the result's rank %u is above the maximum %u",
            (data->rank - 1 + indices->rank), TANDEM_MAX_RANK);
    out->rank = 0;
    for (uint32_t i = 0; i < axis; i++)
        out->shape[out->rank++] = data->shape[i];
    for (uint32_t i = 0; i < indices->rank; i++)
        out->shape[out->rank++] = indices->shape[i];
    for (uint32_t i = axis + 1; i < data->rank; i++)
        out->shape[out->rank++] = data->shape[i];
    return TANDEM_OK;
}

static enum tandem_status infer_dot(const struct tandem_tensor_desc *a,
                                    const struct tandem_tensor_desc *b,
                                    struct tandem_tensor_desc *out)
{
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    out->rank = 0;
    if (a->rank == 1 && b->rank == 1 && a->shape[0] == b->shape[0])
        return TANDEM_OK;
    return argument_error("dot: inputs of shapes %s and %s where two of one "
                          "rank-1 shape are needed",
                          shape_text(a, left), shape_text(b, right));
}

static enum tandem_status infer_cross_entropy(
    const struct operator_info *row, const struct tandem_tensor_desc *logits,
    const struct tandem_tensor_desc *labels, struct tandem_tensor_desc *out)
{
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    if (logits->rank != 2 || labels->rank != 1 ||
        logits->shape[0] != labels->shape[0])
        return argument_error("%s: logits of shape %s and labels of shape %s "
                              "where [n, c] and [n] are needed",
                              row->name, shape_text(logits, left),
                              shape_text(labels, right));
    take_shape(out, row->id == TANDEM_OP_CROSS_ENTROPY ? labels : logits);
    return TANDEM_OK;
}

/* Infers the output shape of layer norm or RMS norm. The scale, and the bias if
 * present, must have the shape of the input's axes from `axis` on. */
static enum tandem_status
infer_norm(const struct operator_info *row, const struct tandem_op *op,
           const struct tandem_tensor_desc *const *inputs, uint32_t count,
           struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = inputs[0];
    enum tandem_status status = check_axis(row, op->ints[0], input->rank);
    if (status != TANDEM_OK)
        return status;
    uint32_t axis =
        (uint32_t)(op->ints[0] < 0 ? op->ints[0] + input->rank : op->ints[0]);
    for (uint32_t i = 1; i < count; i++) {
        char left[SHAPE_TEXT], right[SHAPE_TEXT];
        bool same = inputs[i]->rank == input->rank - axis;
        for (uint32_t j = axis; same && j < input->rank; j++)
            same = inputs[i]->shape[j - axis] == input->shape[j];
        if (!same)
            return argument_error("%s: input %u has shape %s where that of the "
                                  "axes of %s from axis %u on is needed",
                                  row->name, i, shape_text(inputs[i], left),
                                  shape_text(input, right), axis);
    }
    take_shape(out, input);
    return TANDEM_OK;
}

static uint32_t output_dtype(const struct operator_info *row,
                             const struct tandem_tensor_desc *const *inputs,
                             uint32_t count, uint32_t given)
{
    if (row->op_class == TANDEM_CLASS_COMPARE)
        return TANDEM_BOOL;
    if (row->op_class == TANDEM_CLASS_ARG_REDUCE)
        return TANDEM_I64;
    if (row->op_class == TANDEM_CLASS_CAST)
        return given;
    for (uint32_t i = row->id == TANDEM_OP_WHERE; i < count; i++)
        if (inputs[i] != NULL)
            return inputs[i]->dtype;
    return TANDEM_F32;
}

enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out)
{
    const struct operator_info *row = operator_lookup(op->id);
    if (row == NULL || row->inputs == 0 || input_count != row->inputs ||
        output >= row->outputs)
        return argument_error("%s: no output %u of %u inputs can be inferred",
                              operator_name(op->id), output, input_count);
    out->dtype = output_dtype(row, inputs, input_count, out->dtype);
    switch (row->op_class) {
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
        return infer_broadcast(row, inputs, input_count, out);
    case TANDEM_CLASS_TRANSPOSE:
        return infer_transpose(op, inputs[0], out);
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
        return infer_reduce(row, op, inputs[0], out);
    case TANDEM_CLASS_DOT:
        return infer_dot(inputs[0], inputs[1], out);
    case TANDEM_CLASS_SOFTMAX:
        take_shape(out, inputs[0]);
        return check_axis(row, op->ints[0], inputs[0]->rank);
    case TANDEM_CLASS_CROSS_ENTROPY:
        return infer_cross_entropy(row, inputs[0], inputs[1], out);
    case TANDEM_CLASS_NORM:
        return infer_norm(row, op, inputs, input_count, out);
    case TANDEM_CLASS_GATHER:
        return infer_gather(row, op, inputs[0], inputs[1], out);
    default:
        take_shape(out, inputs[0]);
        return TANDEM_OK;
    }
}
