/* SPDX-License-Identifier: Apache-2.0 */
/* add, mul and relu for any shapes and strides; see plugin.h. */
#include "plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a buffer that a tensor uses: [first, end). */
struct range {
    uint64_t first, end;
};

bool op_is_enabled(const char *name)
{
    const char *list = setting("only");
    const size_t length = strlen(name);

    for (; list != NULL; list = strchr(list, '+')) {
        list += *list == '+';
        if (strncmp(list, name, length) == 0 &&
            strchr("+,", list[length]) != NULL)
            return true;
    }
    return setting("only") == NULL;
}

enum tandem_status invalid_status(enum tandem_status status)
{
    return status == TANDEM_INVALID_ARGUMENT && setting("order") != NULL
               ? fail(TANDEM_UNSUPPORTED, "not served, or not valid")
               : status;
}

static uint32_t inputs_of(uint32_t id)
{
    switch (id) {
    case TANDEM_OP_ADD:
        return op_is_enabled("add") ? 2 : 0;
    case TANDEM_OP_MUL:
        return op_is_enabled("mul") ? 2 : 0;
    case TANDEM_OP_RELU:
        return op_is_enabled("relu") ? 1 : 0;
    default:
        return 0;
    }
}

/*
 * Computes the range of a tensor. A tensor with overflowing sizes is invalid.
 */
static enum tandem_status tensor_range(const struct tandem_tensor_desc *tensor,
                                       struct range *out)
{
    __int128 first = tensor->byte_offset, last = first, elements = 1;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        const __int128 reach = (__int128)(tensor->shape[i] - 1) *
                               tensor->strides[i] * (int)sizeof(float);

        elements *= tensor->shape[i];
        if (elements >= (__int128)1 << 62)
            return fail(TANDEM_INVALID_ARGUMENT, "a tensor is too large");
        first += reach < 0 ? reach : 0;
        last += reach > 0 ? reach : 0;
    }
    *out = (struct range){0, 0};
    if (elements == 0)
        return TANDEM_OK;
    if (first < 0 || last >= (__int128)1 << 62)
        return fail(TANDEM_INVALID_ARGUMENT, "strides reach out of any buffer");
    *out = (struct range){(uint64_t)first, (uint64_t)last + sizeof(float)};
    return TANDEM_OK;
}

static bool tensor_contiguous(const struct tandem_tensor_desc *tensor)
{
    int64_t stride = 1;

    for (uint32_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->shape[i];
    }
    return true;
}

/* Returns TANDEM_UNSUPPORTED if THIRD_PARTY_PLUGIN excludes the shape. */
static enum tandem_status
shape_is_supported(const struct tandem_tensor_desc *tensor)
{
    int64_t elements = 1;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        elements *= tensor->shape[i];
        if (setting("even") != NULL && tensor->shape[i] % 2 != 0)
            return fail(TANDEM_UNSUPPORTED, "an odd extent");
    }
    if (setting("large") != NULL && elements < 4096)
        return fail(TANDEM_UNSUPPORTED, "a small shape");
    if (setting("dense") != NULL && !tensor_contiguous(tensor))
        return fail(TANDEM_UNSUPPORTED, "strides");
    return TANDEM_OK;
}

static enum tandem_status tensor_check(const struct tandem_tensor_desc *tensor,
                                       const struct object *device)
{
    const struct object *buffer;
    struct range range;
    enum tandem_status status;

    if (tensor == NULL || tensor->rank > TANDEM_MAX_RANK)
        return fail(TANDEM_INVALID_ARGUMENT, "a tensor is NULL, or its rank "
                                             "is above 8");
    if (tensor->dtype != TANDEM_F32)
        return fail(TANDEM_UNSUPPORTED, "a dtype other than f32");
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0)
            return fail(TANDEM_INVALID_ARGUMENT, "a negative extent");
    status = tensor_range(tensor, &range);
    if (device == NULL || status != TANDEM_OK)
        return status;
    buffer = object_get(tensor->buffer, KIND_BUFFER);
    if (buffer == NULL || buffer->device != device)
        return fail(setting("status") != NULL ? TANDEM_UNSUPPORTED
                                              : TANDEM_INVALID_ARGUMENT,
                    "a tensor's buffer is none of "
                    "this device");
    if (tensor->byte_offset % sizeof(float) != 0 || range.end > buffer->bytes)
        return fail(TANDEM_INVALID_ARGUMENT, "a tensor leaves its buffer, or "
                                             "begins within an element");
    return TANDEM_OK;
}

/* Returns true if the input broadcasts to the output. */
static bool broadcasts(const struct tandem_tensor_desc *input,
                       const struct tandem_tensor_desc *output)
{
    for (uint32_t i = 0; i < input->rank; i++) {
        const uint32_t from = input->rank - 1 - i, to = output->rank - 1 - i;

        if (input->shape[from] != 1 && input->shape[from] != output->shape[to])
            return false;
    }
    return true;
}

/*
 * Checks that each axis of the output has the larger size of the inputs' axes.
 */
static enum tandem_status
shapes_check(const struct tandem_tensor_desc *const *inputs, uint32_t count,
             const struct tandem_tensor_desc *output)
{
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t rank = 0;

    for (uint32_t i = 0; i < TANDEM_MAX_RANK; i++)
        shape[i] = 1;
    for (uint32_t k = 0; k < count; k++) {
        const struct tandem_tensor_desc *input = inputs[k];

        for (uint32_t i = 0; input != NULL && i < input->rank; i++)
            if (input->shape[input->rank - 1 - i] != 1)
                shape[i] = input->shape[input->rank - 1 - i];
        if (input != NULL && input->rank > rank)
            rank = input->rank;
    }
    if (output->rank != rank)
        return fail(TANDEM_INVALID_ARGUMENT, "the output's rank");
    for (uint32_t i = 0; i < rank; i++)
        if (output->shape[rank - 1 - i] != shape[i])
            return fail(TANDEM_INVALID_ARGUMENT, "the output's shape");
    for (uint32_t k = 0; k < count; k++)
        if (inputs[k] != NULL && !broadcasts(inputs[k], output))
            return fail(TANDEM_INVALID_ARGUMENT, "shapes do not broadcast");
    return TANDEM_OK;
}

static bool same_view(const struct tandem_tensor_desc *a,
                      const struct tandem_tensor_desc *b)
{
    return a->byte_offset == b->byte_offset && a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0 &&
           memcmp(a->strides, b->strides, a->rank * sizeof(a->strides[0])) == 0;
}

/*
 * Returns false only if no two elements can have the same address: in the
 * order of increasing strides, each stride must exceed the extent of all
 * previous axes.
 */
static bool overlaps_itself(const struct tandem_tensor_desc *tensor)
{
    uint64_t reach = 0, least = 0;

    for (uint32_t done = 0; done < tensor->rank; done++) {
        uint64_t next = UINT64_MAX, span = 0;

        for (uint32_t i = 0; i < tensor->rank; i++) {
            const uint64_t stride = (uint64_t)llabs(tensor->strides[i]);

            if (tensor->shape[i] > 1 && stride <= next && stride > least) {
                next = stride;
                span = (uint64_t)(tensor->shape[i] - 1) * stride;
            } else if (tensor->shape[i] > 1 && stride == 0) {
                return true;
            }
        }
        if (next == UINT64_MAX)
            break;
        if (next <= reach)
            return true;
        least = next;
        reach += span;
    }
    /* Two axes with the same stride. */
    for (uint32_t i = 0; i < tensor->rank; i++)
        for (uint32_t j = 0; j < i; j++)
            if (tensor->shape[i] > 1 && tensor->shape[j] > 1 &&
                llabs(tensor->strides[i]) == llabs(tensor->strides[j]))
                return true;
    return false;
}

static enum tandem_status
overlap_check(const struct tandem_tensor_desc *const *inputs, uint32_t count,
              const struct tandem_tensor_desc *output)
{
    struct range out, in;

    tensor_range(output, &out);
    if (out.end == 0)
        return TANDEM_OK;
    if (overlaps_itself(output))
        return fail(TANDEM_INVALID_ARGUMENT, "the output overlaps itself");
    for (uint32_t k = 0; k < count; k++) {
        if (inputs[k] == NULL || inputs[k]->buffer != output->buffer)
            continue;
        tensor_range(inputs[k], &in);
        if (in.first < out.end && out.first < in.end &&
            !same_view(inputs[k], output))
            return fail(TANDEM_INVALID_ARGUMENT, "the output overlaps an "
                                                 "input");
    }
    return TANDEM_OK;
}

/* Checks the attributes: a value for each NULL input. */
static enum tandem_status
scalars_check(const struct tandem_op *op,
              const struct tandem_tensor_desc *const *inputs, uint32_t count)
{
    uint32_t scalars = 0;

    for (uint32_t i = 0; i < count; i++)
        scalars += inputs[i] == NULL;
    if (scalars == count || scalars > op->float_count ||
        (scalars > 0 && op->floats == NULL))
        return fail(TANDEM_INVALID_ARGUMENT, "scalars without values, or "
                                             "scalars alone");
    return TANDEM_OK;
}

static enum tandem_status
operands_check(const struct tandem_op *op,
               const struct tandem_tensor_desc *const *inputs, uint32_t count,
               const struct tandem_tensor_desc *output,
               const struct object *device)
{
    enum tandem_status status = scalars_check(op, inputs, count);

    if (count > 1)
        status = invalid_status(status);

    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++)
        if (inputs[i] != NULL)
            status = tensor_check(inputs[i], device);
    if (status == TANDEM_OK)
        status = tensor_check(output, device);
    if (status == TANDEM_OK)
        status = invalid_status(shapes_check(inputs, count, output));
    for (uint32_t i = 0; i < count && status == TANDEM_OK; i++)
        if (inputs[i] != NULL)
            status = shape_is_supported(inputs[i]);
    if (status == TANDEM_OK)
        status = shape_is_supported(output);
    if (status == TANDEM_OK && device != NULL)
        status = overlap_check(inputs, count, output);
    return status;
}

enum tandem_status op_check(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, const struct object *device)
{
    uint32_t count;

    if (op == NULL || op->struct_size < TANDEM_OP_MIN_SIZE_1_0)
        return fail(TANDEM_INVALID_ARGUMENT, "op is NULL or too short");
    if (op->flags != 0)
        return fail(TANDEM_INVALID_ARGUMENT, "unknown flags");
    count = inputs_of(op->id);
    if (count == 0)
        return fail(TANDEM_UNSUPPORTED, "this operator is not served");
    if (inputs == NULL || outputs == NULL || input_count != count ||
        output_count != 1 || outputs[0] == NULL)
        return fail(TANDEM_INVALID_ARGUMENT, "other operands than expected");
    return operands_check(op, inputs, count, outputs[0], device);
}

static float *element(const struct tandem_tensor_desc *tensor,
                      const int64_t *index, uint32_t rank)
{
    const struct object *buffer =
        (const struct object *)(const void *)tensor->buffer;
    int64_t at = 0;

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] != 1)
            at += index[rank - tensor->rank + i] * tensor->strides[i];
    return (float *)(void *)(buffer->memory + tensor->byte_offset) + at;
}

static float compute(uint32_t id, float a, float b)
{
    if (id == TANDEM_OP_ADD)
        return a + b + (setting("wrong") != NULL ? 1 : 0);
    if (id == TANDEM_OP_MUL)
        return a * b;
    return isnan(a) || a > 0 ? a : 0;
}

void op_compute(const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                const struct tandem_tensor_desc *output)
{
    const uint32_t count = inputs_of(op->id), rank = output->rank;
    int64_t index[TANDEM_MAX_RANK] = {0}, elements = 1;

    for (uint32_t i = 0; i < rank; i++)
        elements *= output->shape[i];
    for (int64_t n = 0; n < elements; n++) {
        float values[2] = {0, 0};

        for (uint32_t k = 0, scalar = 0; k < count; k++)
            values[k] = inputs[k] != NULL ? *element(inputs[k], index, rank)
                                          : (float)op->floats[scalar++];
        *element(output, index, rank) = compute(op->id, values[0], values[1]);
        for (uint32_t i = rank; i-- > 0 && ++index[i] == output->shape[i];)
            index[i] = 0;
    }
}
