/* SPDX-License-Identifier: Apache-2.0 */
/* The class NORM; see op_class.h. */
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

const struct op_class op_class_norm = {.input_dtypes = "f",
                                       .output_dtypes = "f",
                                       .example_shape = OP_EXAMPLE_ROWS,
                                       .infer = norm_infer,
                                       .example = norm_example};
