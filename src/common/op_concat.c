/* SPDX-License-Identifier: Apache-2.0 */
/* The class CONCAT; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

static enum tandem_status concat_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *first = call->inputs[0];
    uint32_t axis;
    enum tandem_status status = axis_get(call, first->rank, &axis);
    (void)output;
    if (status != TANDEM_OK)
        return status;
    shape_copy(out, first);
    for (uint32_t i = 1; i < call->input_count; i++) {
        const struct tandem_tensor_desc *input = call->inputs[i];
        struct tandem_tensor_desc expected = *first;
        if (input->rank == first->rank)
            expected.shape[axis] = input->shape[axis];
        if (!shapes_equal(input, &expected))
            return shape_mismatch(call, i, &expected);
        if (__builtin_add_overflow(out->shape[axis], input->shape[axis],
                                   &out->shape[axis]))
            return argument_error("concat: the length of axis %u is above %lld",
                                  axis, (long long)INT64_MAX);
    }
    return TANDEM_OK;
}

/* Two inputs of this shape, one after the other along the last axis. */
static const char *concat_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    (void)info;
    if (rank < 1)
        return "the shape of each of two inputs, of rank 1 or more";
    out->ints[0] = -1;
    example_input(out, rank, shape);
    example_input(out, rank, shape);
    return NULL;
}

const struct op_class op_class_concat = {.input_dtypes = "a",
                                         .output_dtypes = "a",
                                         .variadic = true,
                                         .infer = concat_infer,
                                         .example = concat_example};
