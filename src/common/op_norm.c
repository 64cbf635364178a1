/* SPDX-License-Identifier: Apache-2.0 */
/* The classes NORM and CHANNEL_NORM; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

/* The scale, and the bias if present, must have the shape of the input's axes
 * from `axis` on. */
static enum tandem_status norm_infer(const struct op_call *call,
                                     uint32_t output,
                                     struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    uint32_t axis;
    enum tandem_status status = axis_get(call, input->rank, &axis);
    (void)output;
    if (status != TANDEM_OK)
        return status;
    for (uint32_t i = 1; i < call->input_count; i++) {
        const struct tandem_tensor_desc *affine = call->inputs[i];
        char left[TENSOR_SHAPE_TEXT], right[TENSOR_SHAPE_TEXT];
        bool same = affine->rank == input->rank - axis;
        for (uint32_t j = axis; same && j < input->rank; j++)
            same = affine->shape[j - axis] == input->shape[j];
        if (!same)
            return argument_error("%s: input %u has shape %s where that of the "
                                  "axes of %s from axis %u on is needed",
                                  call->info->name, i,
                                  tensor_shape_text(affine, left),
                                  tensor_shape_text(input, right), axis);
    }
    shape_copy(out, input);
    return TANDEM_OK;
}

static const char *norm_example(const struct operator_info *info, uint32_t rank,
                                const int64_t *shape, struct op_example *out)
{
    const char *needed = axis_example(info, rank, shape, out);
    if (needed != NULL)
        return needed;
    example_input(out, rank, shape);
    while (out->input_count < info->inputs)
        example_input(out, 1, &shape[rank - 1]);
    return NULL;
}

/* Input 0 is [n][c][spatial...], and the other inputs are [c]. */
static enum tandem_status channel_norm_infer(const struct op_call *call,
                                             uint32_t output,
                                             struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    struct tandem_tensor_desc channels = {.rank = 1};
    (void)output;
    if (input->rank < 2)
        return operand_error(call, 0, "has rank %u; expected 2 to %u",
                             input->rank, TANDEM_MAX_RANK);
    channels.shape[0] = input->shape[1];
    for (uint32_t i = 1; i < call->input_count; i++)
        if (call->inputs[i]->rank != 1 ||
            call->inputs[i]->shape[0] != channels.shape[0])
            return shape_mismatch(call, i, &channels);
    if (call->info->id == TANDEM_OP_GROUP_NORM) {
        int64_t groups = call->op->ints[0];
        if (groups < 1 || channels.shape[0] % groups != 0)
            return argument_error("%s: groups is %lld; expected a divisor of "
                                  "the %lld channels of input 0",
                                  call->info->name, (long long)groups,
                                  (long long)channels.shape[0]);
    }
    shape_copy(out, input);
    return TANDEM_OK;
}

/* batch_norm of other layouts takes the time of a strided copy. */
static void channel_norm_work(const struct op_call *call, bool contiguous,
                              struct op_work *work)
{
    if (call->info->id == TANDEM_OP_BATCH_NORM && !contiguous)
        work->cost_class = TANDEM_COST_STRIDED;
}

/* A shape of one or two axes gets a batch of 1. Groups have 4 channels if the
 * number of channels permits this. */
static const char *channel_norm_example(const struct operator_info *info,
                                        uint32_t rank, const int64_t *shape,
                                        struct op_example *out)
{
    int64_t whole[TANDEM_MAX_RANK] = {1, 1};
    uint32_t missing = rank < 3 ? 3 - rank : 0;
    if (rank < 1)
        return "a rank of 1 or more";
    for (uint32_t i = 0; i < rank; i++)
        whole[missing + i] = shape[i];
    example_input(out, rank + missing, whole);
    while (out->input_count < info->inputs)
        example_input(out, 1, &whole[1]);
    if (info->ints > 0)
        out->ints[0] = whole[1] % 4 == 0 && whole[1] > 0 ? whole[1] / 4 : 1;
    return NULL;
}

const struct op_class op_class_channel_norm = {.input_dtypes = "f",
                                               .output_dtypes = "f",
                                               .example_shape = OP_EXAMPLE_ROWS,
                                               .infer = channel_norm_infer,
                                               .work = channel_norm_work,
                                               .example = channel_norm_example};

const struct op_class op_class_norm = {.input_dtypes = "f",
                                       .output_dtypes = "f",
                                       .example_shape = OP_EXAMPLE_ROWS,
                                       .infer = norm_infer,
                                       .example = norm_example};
