/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the spaces of padded tensors; see pad_space.h. */
#include "common/pad_space.h"

#include <string.h>

#include "common/float16.h"

/* An axis of the output before it is merged with others. */
struct axis {
    int64_t shape, begin, length;
    int64_t strides[2]; /* of output and input */
};

/* Returns true if the axis can be merged with the innermost axis of the space.
 * If only the outer one of two axes is padded, a constant or a wrapped axis can
 * be merged, because whole rows are added. */
static bool can_merge(const struct pad_space *space, const struct axis *axis)
{
    const struct iteration_space *whole = &space->space;
    uint32_t last = whole->rank - 1;
    if (whole->rank == 0 || axis->length != axis->shape)
        return false;
    bool last_is_padded = space->length[last] != whole->shape[last];
    if (last_is_padded && space->mode != PAD_CONSTANT &&
        space->mode != PAD_WRAP)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if ((uint64_t)whole->strides[i][last] !=
            (uint64_t)axis->strides[i] * (uint64_t)axis->shape)
            return false;
    return true;
}

static void append(struct pad_space *space, const struct axis *axis)
{
    struct iteration_space *whole = &space->space;
    whole->elements *= axis->shape;
    if (axis->shape == 1 && axis->length == 1)
        return;
    bool merges = can_merge(space, axis);
    uint32_t at = merges ? whole->rank - 1 : whole->rank++;
    whole->shape[at] = merges ? whole->shape[at] * axis->shape : axis->shape;
    space->begin[at] = merges ? space->begin[at] * axis->shape : axis->begin;
    space->length[at] = merges ? space->length[at] * axis->shape : axis->length;
    for (uint32_t i = 0; i < 2; i++)
        whole->strides[i][at] = axis->strides[i];
}

void pad_space_build(struct pad_space *out, const struct tandem_op *op,
                     const struct tandem_tensor_desc *input,
                     const struct tandem_tensor_desc *output)
{
    memset(out, 0, sizeof *out);
    bool is_tile = op->id == TANDEM_OP_TILE;
    out->mode = is_tile ? PAD_WRAP : (enum pad_mode)op->ints[0];
    out->space.operands = 2;
    out->space.elements = 1;
    for (uint32_t i = 0; i < output->rank; i++) {
        struct axis axis = {output->shape[i],
                            0,
                            input->shape[i],
                            {output->strides[i], input->strides[i]}};
        int64_t begin = 0, end = 0;
        if (!is_tile)
            pad_lengths(op, input, i, &begin, &end);
        axis.begin = begin > 0 ? begin : 0;
        axis.length = pad_kept_length(axis.length, begin, end);
        if (begin < 0 && axis.length > 0)
            out->input_offset -= begin * input->strides[i];
        if (out->mode == PAD_WRAP && axis.length == 1) { /* as expand */
            axis.begin = 0;
            axis.length = axis.shape;
            axis.strides[1] = 0;
        }
        append(out, &axis);
    }
    if (out->space.rank == 0 || out->space.elements == 0) {
        out->space.rank = 1;
        out->space.shape[0] = out->length[0] = out->space.elements != 0;
        out->begin[0] = 0;
    }
}

uint64_t pad_value_bits(const struct tandem_op *op, uint32_t dtype)
{
    float value = (float)op->floats[0];
    double wide = (double)value;
    uint64_t bits = 0;
    switch (dtype) {
    case TANDEM_F16:
        return f16_round(value);
    case TANDEM_BF16:
        return bf16_round(value);
    case TANDEM_F32:
        return float_bits(value);
    case TANDEM_F64:
        memcpy(&bits, &wide, sizeof bits);
        return bits;
    case TANDEM_BOOL:
        return op->ints[1] != 0;
    default:
        return (uint64_t)op->ints[1];
    }
}
