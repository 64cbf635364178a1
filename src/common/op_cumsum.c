/* SPDX-License-Identifier: Apache-2.0 */
/* The class CUMSUM; see op_class.h. */
#include "common/op_call.h"

static enum tandem_status cumsum_check(const struct op_call *call)
{
    enum tandem_status status = check_switch(call, 1, "exclusive");
    return status != TANDEM_OK ? status : check_switch(call, 2, "reverse");
}

static enum tandem_status cumsum_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    uint32_t axis;
    (void)output;
    shape_copy(out, call->inputs[0]);
    return axis_get(call, call->inputs[0]->rank, &axis);
}

static const char *cumsum_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    (void)info, (void)shape;
    return example_last_axis(rank, out);
}

const struct op_class op_class_cumsum = {.input_dtypes = "f",
                                         .output_dtypes = "f",
                                         .example_shape = OP_EXAMPLE_ROWS,
                                         .check = cumsum_check,
                                         .infer = cumsum_infer,
                                         .example = cumsum_example};
