/* SPDX-License-Identifier: Apache-2.0 */
/* The class PAD; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/pad_space.h"
#include "common/tensor_extent.h"

/* Checks that the call has a list of `count` integers after the first ones. */
static enum tandem_status check_list(const struct op_call *call, uint32_t count,
                                     const char *name)
{
    uint32_t needed = call->info->ints + count;
    if (call->op->int_count >= needed &&
        (needed == 0 || call->op->ints != NULL))
        return TANDEM_OK;
    return argument_error("%s: the length of ints is %u; expected %u or more "
                          "(with %s)",
                          call->info->name,
                          call->op->ints == NULL ? 0 : call->op->int_count,
                          needed, name);
}

static enum tandem_status tile_infer(const struct op_call *call,
                                     struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    enum tandem_status status = check_list(call, input->rank, "repeats");
    if (status != TANDEM_OK)
        return status;
    out->rank = input->rank;
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t repeats = call->op->ints[i];
        if (repeats < 0 || __builtin_mul_overflow(input->shape[i], repeats,
                                                  &out->shape[i]))
            return argument_error(
                "tile: repeats[%u] = %lld is negative or too large for an axis "
                "of length %lld",
                i, (long long)repeats, (long long)input->shape[i]);
    }
    return TANDEM_OK;
}

/* Computes the length of a padded axis. */
static enum tandem_status padded_length(const struct op_call *call,
                                        uint32_t axis, int64_t *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    int64_t begin, end, n = input->shape[axis];
    pad_lengths(call->op, input, axis, &begin, &end);
    if (__builtin_add_overflow(n, begin, out) ||
        __builtin_add_overflow(*out, end, out) || *out < 0)
        return argument_error("pad: axis %u of length %lld cannot be padded by "
                              "%lld and %lld elements",
                              axis, (long long)n, (long long)begin,
                              (long long)end);
    if (*out > 0 && pad_kept_length(n, begin, end) == 0 &&
        call->op->ints[0] != PAD_CONSTANT)
        return argument_error("pad: axis %u has no element to repeat; only "
                              "mode 0 (constant) can pad it",
                              axis);
    return TANDEM_OK;
}

static enum tandem_status pad_infer(const struct op_call *call, uint32_t output,
                                    struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    (void)output;
    if (call->info->id == TANDEM_OP_TILE)
        return tile_infer(call, out);
    enum tandem_status status =
        check_list(call, 2 * input->rank, "begins and ends");
    if (status != TANDEM_OK)
        return status;
    if (call->op->ints[0] < 0 || call->op->ints[0] > PAD_WRAP)
        return argument_error("pad: mode is %lld; expected 0 (constant), 1 "
                              "(reflect), 2 (edge) or 3 (wrap)",
                              (long long)call->op->ints[0]);
    out->rank = input->rank;
    for (uint32_t i = 0; status == TANDEM_OK && i < input->rank; i++)
        status = padded_length(call, i, &out->shape[i]);
    return status;
}

/* Tile has the list repeats, pad the lists begins and ends. */
static void pad_lists(const struct op_call *call, uint32_t *ints,
                      uint32_t *floats)
{
    (void)floats;
    *ints += call->inputs[0]->rank * (call->info->id == TANDEM_OP_TILE ? 1 : 2);
}

/* Tile repeats the first axis twice.  Pad adds one element to both ends of the
 * last two axes, as for a convolution. */
static const char *pad_example(const struct operator_info *info, uint32_t rank,
                               const int64_t *shape, struct op_example *out)
{
    (void)shape;
    out->int_count = info->id == TANDEM_OP_TILE ? rank : 2 + 2 * rank;
    for (uint32_t i = 0; i < rank; i++) {
        if (info->id == TANDEM_OP_TILE)
            out->ints[i] = i == 0 ? 2 : 1;
        else if (i + 2 >= rank)
            out->ints[2 + i] = out->ints[2 + rank + i] = 1;
    }
    return NULL;
}

const struct op_class op_class_pad = {.input_dtypes = "a",
                                      .output_dtypes = "a",
                                      .infer = pad_infer,
                                      .lists = pad_lists,
                                      .example = pad_example};
