/* SPDX-License-Identifier: Apache-2.0 */
/* Builds iteration spaces; see iteration_space.h. */
#include "common/iteration_space.h"

/* Two functions that return the absolute value and the product of strides. They
 * wrap on overflow, because an unused stride can have any value. */
static int64_t magnitude(int64_t value)
{
    return value < 0 ? (int64_t)(0 - (uint64_t)value) : value;
}

static int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Appends an innermost axis to the space. Merges the axis with the previous
 * innermost axis if the strides of every operand permit this. */
static void append_axis(struct iteration_space *space, int64_t extent,
                        const int64_t *strides)
{
    space->elements *= extent;
    if (extent == 1)
        return;
    bool merge = space->rank > 0;
    uint32_t last = space->rank - 1;
    for (uint32_t i = 0; merge && i < space->operands; i++)
        merge = space->strides[i][last] == product(strides[i], extent);
    uint32_t axis = merge ? last : space->rank++;
    space->shape[axis] = merge ? space->shape[axis] * extent : extent;
    for (uint32_t i = 0; i < space->operands; i++)
        space->strides[i][axis] = strides[i];
}

/* Gives an empty space one axis of size 0, and a space of one element (no axes)
 * one axis of size 1. */
static void close_axes(struct iteration_space *space)
{
    if (space->elements != 0 && space->rank > 0)
        return;
    space->rank = 1;
    space->shape[0] = space->elements != 0;
    for (uint32_t i = 0; i < space->operands; i++)
        space->strides[i][0] = 0;
}

static void start(struct iteration_space *space, uint32_t operands)
{
    space->rank = 0;
    space->operands = operands;
    space->elements = 1;
}

/* Returns the operand's stride along axis `axis` of operand 0, or 0 if the
 * operand is broadcast along this axis. lead_rank is the rank of operand 0. */
static int64_t aligned_stride(const struct tandem_tensor_desc *operand,
                              uint32_t lead_rank, uint32_t axis)
{
    if (operand == NULL || axis + operand->rank < lead_rank)
        return 0;
    uint32_t own = axis + operand->rank - lead_rank;
    return operand->shape[own] == 1 ? 0 : operand->strides[own];
}

/* Writes the axes of `lead` to `order`, by decreasing absolute stride. */
static void order_axes(const struct tandem_tensor_desc *lead, uint32_t *order)
{
    for (uint32_t i = 0; i < lead->rank; i++) {
        uint32_t at = i;
        while (at > 0 && magnitude(lead->strides[order[at - 1]]) <
                             magnitude(lead->strides[i])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

void space_broadcast(struct iteration_space *out,
                     const struct tandem_tensor_desc *const *operands,
                     uint32_t count, bool keep_order)
{
    const struct tandem_tensor_desc *lead = operands[0];
    uint32_t order[TANDEM_MAX_RANK];
    int64_t strides[SPACE_OPERANDS];
    for (uint32_t i = 0; i < lead->rank; i++)
        order[i] = i;
    if (!keep_order)
        order_axes(lead, order);
    start(out, count);
    for (uint32_t i = 0; i < lead->rank; i++) {
        for (uint32_t j = 0; j < count; j++)
            strides[j] = aligned_stride(operands[j], lead->rank, order[i]);
        append_axis(out, lead->shape[order[i]], strides);
    }
    close_axes(out);
}

void space_elementwise(struct iteration_space *out,
                       const struct tandem_tensor_desc *const *inputs,
                       uint32_t input_count,
                       const struct tandem_tensor_desc *const *outputs,
                       uint32_t output_count)
{
    const struct tandem_tensor_desc *operands[SPACE_OPERANDS];
    for (uint32_t i = 0; i < output_count; i++)
        operands[i] = outputs[i];
    for (uint32_t i = 0; i < input_count; i++)
        operands[output_count + i] = inputs[i];
    space_broadcast(out, operands, output_count + input_count, false);
}

bool space_contiguous(const struct iteration_space *space, uint32_t operand)
{
    return space->elements <= 1 ||
           (space->rank == 1 && space->strides[operand][0] == 1);
}

bool space_constant(const struct iteration_space *space, uint32_t operand)
{
    for (uint32_t i = 0; i < space->rank; i++)
        if (space->strides[operand][i] != 0)
            return false;
    return true;
}

void space_reduce(struct reduction_spaces *out,
                  const struct tandem_tensor_desc *input,
                  const struct tandem_tensor_desc *output, uint32_t axes)
{
    bool keepdims = output->rank == input->rank;
    uint32_t own = 0;
    start(&out->kept, 2);
    start(&out->reduced, 2);
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t in = input->strides[i], size = input->shape[i];
        if ((axes >> i & 1u) != 0) {
            append_axis(&out->reduced, size, (int64_t[]){in, 0});
            own += keepdims;
        } else {
            append_axis(&out->kept, size,
                        (int64_t[]){output->strides[own++], in});
        }
    }
    close_axes(&out->kept);
    close_axes(&out->reduced);
}

/* Builds the spaces of an operator whose input and output have the same shape.
 * `reduced` gets the axes from number `first` to `end` - 1, `kept` the
 * others. */
static void split_axes(struct iteration_space *kept,
                       struct iteration_space *reduced,
                       const struct tandem_tensor_desc *input,
                       const struct tandem_tensor_desc *output, uint32_t first,
                       uint32_t end)
{
    start(kept, 2);
    start(reduced, 2);
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t in = input->strides[i], out = output->strides[i];
        if (i >= first && i < end)
            append_axis(reduced, input->shape[i], (int64_t[]){in, out});
        else
            append_axis(kept, input->shape[i], (int64_t[]){out, in});
    }
    close_axes(kept);
    close_axes(reduced);
}

void space_along_axis(struct reduction_spaces *out,
                      const struct tandem_tensor_desc *input,
                      const struct tandem_tensor_desc *output, int64_t axis)
{
    uint32_t along = (uint32_t)(axis < 0 ? axis + input->rank : axis);
    split_axes(&out->kept, &out->reduced, input, output, along, along + 1);
}

void space_norm(struct norm_spaces *out,
                const struct tandem_tensor_desc *const *inputs,
                uint32_t input_count, const struct tandem_tensor_desc *output,
                int64_t axis)
{
    const struct tandem_tensor_desc *input = inputs[0];
    uint32_t first = (uint32_t)(axis < 0 ? axis + input->rank : axis);
    split_axes(&out->kept, &out->reduced, input, output, first, input->rank);
    start(&out->affine, 2);
    for (uint32_t i = first; i < input->rank; i++) {
        int64_t bias = input_count > 2 ? inputs[2]->strides[i - first] : 0;
        append_axis(&out->affine, input->shape[i],
                    (int64_t[]){inputs[1]->strides[i - first], bias});
    }
    close_axes(&out->affine);
}

void space_group_norm(struct norm_spaces *out,
                      const struct tandem_tensor_desc *const *inputs,
                      const struct tandem_tensor_desc *output, int64_t groups)
{
    const struct tandem_tensor_desc *input = inputs[0];
    int64_t channels = input->shape[1] / groups, elements = 1;
    int64_t in = input->strides[1], to = output->strides[1];
    start(&out->kept, 2);
    start(&out->reduced, 2);
    append_axis(&out->kept, input->shape[0],
                (int64_t[]){output->strides[0], input->strides[0]});
    append_axis(&out->kept, groups,
                (int64_t[]){product(to, channels), product(in, channels)});
    append_axis(&out->reduced, channels, (int64_t[]){in, to});
    for (uint32_t i = 2; i < input->rank; i++) {
        elements *= input->shape[i];
        append_axis(&out->reduced, input->shape[i],
                    (int64_t[]){input->strides[i], output->strides[i]});
    }
    close_axes(&out->kept);
    close_axes(&out->reduced);
    out->affine = (struct iteration_space){.rank = 2,
                                           .operands = 2,
                                           .elements = out->reduced.elements,
                                           .shape = {channels, elements}};
    for (uint32_t i = 0; i < 2 && input->shape[1] > 1; i++)
        out->affine.strides[i][0] = inputs[i + 1]->strides[0];
}

void space_batch_norm(struct iteration_space *out,
                      const struct tandem_tensor_desc *input,
                      const struct tandem_tensor_desc *output)
{
    struct tandem_tensor_desc channel = {.rank = input->rank - 1,
                                         .strides = {1}};
    channel.shape[0] = input->shape[1];
    for (uint32_t i = 1; i < channel.rank; i++)
        channel.shape[i] = 1;
    space_broadcast(
        out, (const struct tandem_tensor_desc *[]){output, input, &channel}, 3,
        false);
}

/* Strides of axes of length 1, and of empty data, can have any value. */
static void indexed_axes_set(struct indexed_axes *out,
                             const struct tandem_tensor_desc *data,
                             uint32_t first, uint32_t count)
{
    bool is_empty = false;
    for (uint32_t i = 0; i < data->rank; i++)
        is_empty = is_empty || data->shape[i] == 0;
    out->count = count;
    out->component_stride = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t extent = data->shape[first + i];
        bool is_used = extent > 1 && !is_empty;
        out->extents[i] = extent;
        out->strides[i] = is_used ? data->strides[first + i] : 0;
    }
}

/* Each axis of the output is one of data (without the indexed axes), of the
 * indices, or of both. Axes `both` to `end` - 1 are only of the indices. */
void space_gather(struct iteration_space *out, struct indexed_axes *out_axes,
                  const struct tandem_op *op,
                  const struct tandem_tensor_desc *data,
                  const struct tandem_tensor_desc *indices,
                  const struct tandem_tensor_desc *output)
{
    const bool nd = op->id == TANDEM_OP_GATHER_ND;
    const bool elements = op->id == TANDEM_OP_GATHER_ELEMENTS;
    int64_t axis = op->ints[0];
    uint32_t first = (uint32_t)(axis < 0 ? axis + data->rank : axis);
    uint32_t last = indices->rank - 1;
    uint32_t end = nd ? last : elements ? first + 1 : first + indices->rank;
    indexed_axes_set(out_axes, data, first,
                     nd ? (uint32_t)indices->shape[last] : 1);
    if (out_axes->count > 1)
        out_axes->component_stride = indices->strides[last];
    start(out, 3);
    for (uint32_t i = 0; i < output->rank; i++) {
        int64_t strides[3] = {output->strides[i], 0, 0};
        if (i < first)
            strides[1] = data->strides[i];
        else if (i >= end)
            strides[1] = data->strides[i - end + first + out_axes->count];
        if (nd || elements)
            strides[2] = elements || i < end ? indices->strides[i] : 0;
        else if (i >= first && i < end)
            strides[2] = indices->strides[i - first];
        append_axis(out, output->shape[i], strides);
    }
    close_axes(out);
}

void space_scatter(struct scatter_spaces *out, const struct tandem_op *op,
                   const struct tandem_tensor_desc *output,
                   const struct tandem_tensor_desc *indices,
                   const struct tandem_tensor_desc *updates)
{
    const bool nd = op->id == TANDEM_OP_SCATTER_ND;
    const uint32_t last = indices->rank - 1;
    const uint32_t count = nd ? (uint32_t)indices->shape[last] : 1;
    int64_t axis = nd ? 0 : op->ints[0], numbers = 1;
    uint32_t first = (uint32_t)(axis < 0 ? axis + output->rank : axis);
    int64_t slot_strides[TANDEM_MAX_RANK] = {0};
    int64_t number_strides[TANDEM_MAX_RANK] = {0};
    indexed_axes_set(&out->axes, output, first, count);
    if (count > 1)
        out->axes.component_stride = indices->strides[last];
    start(&out->all, 5);
    start(&out->numbered, 2);
    start(&out->kept, 3);
    start(&out->reached, 4);
    out->slots = 1;
    for (uint32_t i = nd ? count : output->rank; i-- > 0;) {
        slot_strides[i] = out->slots;
        out->slots *= nd || i == first ? output->shape[i] : updates->shape[i];
    }
    for (uint32_t i = 0; i < count; i++)
        out->slot_strides[i] = slot_strides[first + i];
    for (uint32_t i = nd ? last : first + 1; i-- > (nd ? 0 : first);) {
        number_strides[i] = numbers;
        numbers *= updates->shape[i];
    }
    for (uint32_t i = 0; i < updates->rank; i++) {
        bool numbered = nd ? i < last : i == first;
        uint32_t own = nd ? i - last + count : i;
        int64_t update = updates->strides[i], extent = updates->shape[i];
        int64_t index = nd && !numbered ? 0 : indices->strides[i];
        int64_t to = numbered ? 0 : output->strides[own];
        int64_t slot = numbered ? 0 : slot_strides[own];
        append_axis(&out->all, extent,
                    (int64_t[]){to, update, index, slot, number_strides[i]});
        if (numbered)
            append_axis(&out->numbered, extent, (int64_t[]){update, index});
        else
            append_axis(&out->kept, extent, (int64_t[]){to, update, index});
    }
    for (uint32_t i = 0; i < output->rank; i++) {
        bool indexed = i >= first && i < first + count;
        uint32_t own = nd ? i - count + last : i;
        int64_t to = output->strides[i];
        if (indexed)
            append_axis(&out->reached, output->shape[i],
                        (int64_t[]){to, 0, 0, slot_strides[i]});
        else
            append_axis(&out->reached, updates->shape[own],
                        (int64_t[]){to, updates->strides[own],
                                    nd ? 0 : indices->strides[own], 0});
    }
    close_axes(&out->all);
    close_axes(&out->numbered);
    close_axes(&out->kept);
    close_axes(&out->reached);
}

void space_topk(struct iteration_space *out,
                const struct tandem_tensor_desc *input,
                const struct tandem_tensor_desc *values,
                const struct tandem_tensor_desc *indices, uint32_t axis)
{
    start(out, 3);
    for (uint32_t i = 0; i < input->rank; i++)
        if (i != axis)
            append_axis(out, input->shape[i],
                        (int64_t[]){values->strides[i], indices->strides[i],
                                    input->strides[i]});
    close_axes(out);
}

void space_permute(struct tandem_tensor_desc *out,
                   const struct tandem_tensor_desc *input,
                   const int64_t *permutation)
{
    *out = *input;
    for (uint32_t i = 0; i < input->rank; i++) {
        out->shape[i] = input->shape[permutation[i]];
        out->strides[i] = input->strides[permutation[i]];
    }
}

void tensor_slice(struct tandem_tensor_desc *out,
                  const struct tandem_tensor_desc *tensor, uint32_t axis,
                  int64_t first, int64_t length)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(tensor->dtype);
    *out = *tensor;
    out->shape[axis] = length;
    if (length > 0)
        out->byte_offset += (uint64_t)(first * tensor->strides[axis] * bytes);
}

void space_with_positions(struct iteration_space *out,
                          const struct tandem_tensor_desc *target,
                          const struct tandem_tensor_desc *source,
                          const int64_t *positions)
{
    start(out, 3);
    for (uint32_t i = 0; i < target->rank; i++)
        append_axis(
            out, target->shape[i],
            (int64_t[]){target->strides[i], source->strides[i], positions[i]});
    close_axes(out);
}

void tensor_insert_axis(struct tandem_tensor_desc *out,
                        const struct tandem_tensor_desc *tensor, uint32_t axis,
                        int64_t length)
{
    *out = *tensor;
    out->rank++;
    for (uint32_t i = axis + 1; i < out->rank; i++) {
        out->shape[i] = tensor->shape[i - 1];
        out->strides[i] = tensor->strides[i - 1];
    }
    out->shape[axis] = length;
    out->strides[axis] = 0;
}
