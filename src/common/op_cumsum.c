/* SPDX-License-Identifier: Apache-2.0 */
/* The class CUMSUM; see op_class.h. */
#include "common/op_call.h"

static enum tandem_status cumsum_check(const struct op_call *call)
{
    enum tandem_status status = check_switch(call, 1, "exclusive");
    return status != TANDEM_OK ? status : check_switch(call, 2, "reverse");
}

const struct op_class op_class_cumsum = {.input_dtypes = "f",
                                         .output_dtypes = "f",
                                         .example_shape = OP_EXAMPLE_ROWS,
                                         .check = cumsum_check,
                                         .infer = axis_infer,
                                         .example = axis_example};
