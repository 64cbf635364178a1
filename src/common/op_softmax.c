/* SPDX-License-Identifier: Apache-2.0 */
/* The classes SOFTMAX and CROSS_ENTROPY; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

static enum tandem_status cross_entropy_infer(const struct op_call *call,
                                              uint32_t output,
                                              struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *logits = call->inputs[0];
    const struct tandem_tensor_desc *labels = call->inputs[1];
    char left[TENSOR_SHAPE_TEXT], right[TENSOR_SHAPE_TEXT];
    (void)output;
    if (logits->rank != 2 || labels->rank != 1 ||
        logits->shape[0] != labels->shape[0])
        return argument_error("%s: logits of shape %s and labels of shape %s "
                              "where [n, c] and [n] are needed",
                              call->info->name, tensor_shape_text(logits, left),
                              tensor_shape_text(labels, right));
    shape_copy(out,
               call->info->id == TANDEM_OP_CROSS_ENTROPY ? labels : logits);
    return TANDEM_OK;
}

static const char *cross_entropy_example(const struct operator_info *info,
                                         uint32_t rank, const int64_t *shape,
                                         struct op_example *out)
{
    (void)info;
    if (rank != 2)
        return "the logits' shape, ROWSxCLASSES";
    out->index_limit = shape[1];
    example_input(out, 2, shape);
    example_input(out, 1, shape);
    return NULL;
}

const struct op_class op_class_softmax = {.input_dtypes = "f",
                                          .output_dtypes = "f",
                                          .example_shape = OP_EXAMPLE_ROWS,
                                          .infer = axis_infer,
                                          .example = axis_example};

const struct op_class op_class_cross_entropy = {
    .input_dtypes = "fi",
    .output_dtypes = "f",
    .example_shape = OP_EXAMPLE_ROWS,
    .infer = cross_entropy_infer,
    .example = cross_entropy_example};
