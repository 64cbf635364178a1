/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files op_<class>.c share; see op_call.h. */
#include "common/op_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/last_error.h"
#include "common/tensor_extent.h"

const char *operand_name(const struct op_call *call, uint32_t operand,
                         char *text)
{
    bool output = operand >= call->input_count;
    snprintf(text, OPERAND_NAME_BYTES, "%s: %s %u", call->info->name,
             output ? "output" : "input",
             output ? operand - call->input_count : operand);
    return text;
}

const char *tensor_shape_text(const struct tandem_tensor_desc *tensor,
                              char *text)
{
    size_t used = 0;
    text[used++] = '[';
    for (uint32_t i = 0; i < tensor->rank && i < TANDEM_MAX_RANK; i++)
        used +=
            (size_t)snprintf(text + used, TENSOR_SHAPE_TEXT - used, "%s%lld",
                             i > 0 ? ", " : "", (long long)tensor->shape[i]);
    text[used++] = ']';
    text[used] = '\0';
    return text;
}

enum tandem_status operand_error(const struct op_call *call, uint32_t operand,
                                 const char *format, ...)
{
    char name[OPERAND_NAME_BYTES], text[2 * TENSOR_SHAPE_TEXT + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return argument_error("%s %s", operand_name(call, operand, name), text);
}

enum tandem_status shape_mismatch(const struct op_call *call, uint32_t operand,
                                  const struct tandem_tensor_desc *expected)
{
    char got_text[TENSOR_SHAPE_TEXT], expected_text[TENSOR_SHAPE_TEXT];
    return operand_error(
        call, operand, "has shape %s; expected %s",
        tensor_shape_text(op_call_operand(call, operand), got_text),
        tensor_shape_text(expected, expected_text));
}

enum tandem_status check_switch(const struct op_call *call, uint32_t index,
                                const char *name)
{
    int64_t value = call->op->ints[index];
    if (value == 0 || value == 1)
        return TANDEM_OK;
    return argument_error("%s: %s is %lld; expected 0 or 1", call->info->name,
                          name, (long long)value);
}

enum tandem_status axis_get(const struct op_call *call, uint32_t rank,
                            uint32_t *out_axis)
{
    int64_t axis = call->op->ints[0];
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return argument_error("%s: axis %lld is out of range for rank %u",
                              call->info->name, (long long)axis, rank);
    *out_axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    return TANDEM_OK;
}

enum tandem_status check_index_shape(const struct op_call *call, uint32_t axis)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    const struct tandem_tensor_desc *indices = call->inputs[1];
    if (indices->rank != data->rank)
        return operand_error(call, 1, "has rank %u; expected %u", indices->rank,
                             data->rank);
    for (uint32_t i = 0; i < data->rank; i++)
        if (i != axis && indices->shape[i] > data->shape[i])
            return operand_error(
                call, 1, "has size %lld along axis %u; expected at most %lld",
                (long long)indices->shape[i], i, (long long)data->shape[i]);
    return TANDEM_OK;
}

enum tandem_status index_components_get(const struct op_call *call,
                                        uint32_t first_axis,
                                        uint32_t *out_components)
{
    const struct tandem_tensor_desc *indices = call->inputs[1];
    uint32_t rank = call->inputs[0]->rank;
    if (indices->rank < 1 || rank <= first_axis)
        return argument_error(
            "%s: inputs 0 and 1 have ranks %u and %u; expected at least %u "
            "and 1",
            call->info->name, rank, indices->rank, first_axis + 1);
    int64_t components = indices->shape[indices->rank - 1];
    if (components < 1 || components > rank - first_axis)
        return operand_error(
            call, 1, "has size %lld along its last axis; expected 1 to %u",
            (long long)components, rank - first_axis);
    *out_components = (uint32_t)components;
    return TANDEM_OK;
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

bool shape_append(struct tandem_tensor_desc *out,
                  const struct tandem_tensor_desc *from, uint32_t first,
                  uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (out->rank == TANDEM_MAX_RANK)
            return false;
        out->shape[out->rank++] = from->shape[i];
    }
    return true;
}

void example_input(struct op_example *out, uint32_t rank, const int64_t *shape)
{
    struct tandem_tensor_desc *input = &out->inputs[out->input_count++];
    input->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        input->shape[i] = shape[i];
}

enum tandem_status axis_infer(const struct op_call *call, uint32_t output,
                              struct tandem_tensor_desc *out)
{
    uint32_t axis;
    (void)output;
    shape_copy(out, call->inputs[0]);
    return axis_get(call, call->inputs[0]->rank, &axis);
}

const char *axis_example(const struct operator_info *info, uint32_t rank,
                         const int64_t *shape, struct op_example *out)
{
    (void)info, (void)shape;
    if (rank < 1)
        return "a rank of 1 or more";
    out->ints[0] = (int64_t)rank - 1;
    return NULL;
}
