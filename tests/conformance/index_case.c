/* SPDX-License-Identifier: Apache-2.0 */
/* Index tensors of gather and scatter; see index_case.h. */
#include "index_case.h"
#include "element_value.h"

#include <string.h>

int64_t element_find(const struct dense *data, const int64_t *position)
{
    int64_t element = 0;

    for (uint32_t i = 0; i < data->rank; i++) {
        int64_t at = position[i];

        if (at < 0)
            at += data->shape[i];
        if (at < 0 || at >= data->shape[i])
            return -1;
        element = element * data->shape[i] + at;
    }
    return element;
}

/* Returns the length of the axis that element i of the indices addresses. */
static int64_t indexed_length(const struct call *call, uint32_t place,
                              int64_t axis, int64_t i)
{
    const struct tandem_tensor_desc *data = &call->operands[0].desc;
    const struct tandem_tensor_desc *indices = &call->operands[place].desc;

    if (strstr(call->row->name, "_nd") != NULL)
        return data->shape[axis + i % indices->shape[indices->rank - 1]];
    return data->shape[axis_from_start(axis, data->rank)];
}

void indices_fill(struct call *call, uint32_t place, int64_t axis)
{
    struct operand *operand = &call->operands[place];
    struct random *random = call->random;
    const bool wild = random_once_in(random, 3);

    for (int64_t i = 0; i < operand->elements; i++) {
        int64_t length = indexed_length(call, place, axis, i);
        int64_t index =
            length > 0 ? random_between(random, -length, length - 1) : 0;

        if (wild && random_once_in(random, 10))
            index = random_once_in(random, 2) ? length : -length - 1;
        if (wild && random_once_in(random, 40))
            index = (int32_t)random_u64(random);
        if (wild && random_once_in(random, 80) &&
            operand->desc.dtype == TANDEM_I64)
            index = (int64_t)random_u64(random);
        operand_set(operand, i, bits_from_integer(operand->desc.dtype, index));
    }
}

void shape_limit(struct shape *shape, int64_t length)
{
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->at[i] > length)
            shape->at[i] = length;
}

int64_t index_count_draw(struct random *random, const struct shape *data)
{
    const int64_t most = 10000 / shape_storage(data);

    return random_between(random, 0,
                          most > 9 && random_once_in(random, 3) ? most : 9);
}

struct shape element_indices_draw(struct random *random,
                                  const struct shape *data, int64_t axis)
{
    struct shape out = *data;

    for (uint32_t i = 0; i < out.rank; i++)
        if (random_once_in(random, 3))
            out.at[i] = random_between(random, 0, data->at[i]);
    if (random_once_in(random, 2))
        out.at[axis_from_start(axis, data->rank)] =
            index_count_draw(random, data);
    return out;
}

struct shape vector_indices_draw(struct random *random,
                                 const struct shape *data, uint32_t batch)
{
    struct shape out = {0};
    int64_t components = random_between(random, 1, data->rank - batch);
    uint32_t more = (uint32_t)random_below(random, 3);

    for (uint32_t i = 0; i < batch; i++)
        out.at[out.rank++] = data->at[i];
    /* The result has all axes of the indices but one, and the slices' axes. */
    for (uint32_t i = 0; i < more; i++)
        if (out.rank + data->rank - batch - (uint32_t)components <
                TANDEM_MAX_RANK &&
            out.rank + 1 < TANDEM_MAX_RANK)
            out.at[out.rank++] = i == 0 ? index_count_draw(random, data)
                                        : random_between(random, 0, 3);
    out.at[out.rank++] = components;
    return out;
}
