/* SPDX-License-Identifier: Apache-2.0 */
/* The class POOL; see op_class.h. */
#include "common/op_call.h"
#include "common/op_window.h"

/* The lists of the window follow the attributes of the operator table. */
static enum tandem_status pool_check(const struct op_call *call)
{
    enum tandem_status status = check_switch(call, 0, "ceil_mode");
    return status != TANDEM_OK || call->info->ints < 2
               ? status
               : check_switch(call, 1, "count_include_pad");
}

static enum tandem_status pool_infer(const struct op_call *call,
                                     uint32_t output,
                                     struct tandem_tensor_desc *out)
{
    (void)output;
    return window_infer(call, call->info->ints, call->op->ints[0] != 0, out);
}

/* Windows of 3 with a stride of 2, as in networks for images. A shape of one
 * or two axes gets a batch of 1. */
static const char *pool_example(const struct operator_info *info, uint32_t rank,
                                const int64_t *shape, struct op_example *out)
{
    int64_t whole[2 + MAX_SPATIAL_AXES] = {1, 1};
    uint32_t missing = rank < 3 ? 3 - rank : 0;
    if (rank < 1 || rank > 2 + MAX_SPATIAL_AXES)
        return "batch, channels and one to three spatial axes";
    for (uint32_t i = 0; i < rank; i++)
        whole[missing + i] = shape[i];
    example_input(out, rank + missing, whole);
    window_example(out, info->ints, rank + missing - 2, 3, 2);
    return NULL;
}

const struct op_class op_class_pool = {.input_dtypes = "f",
                                       .output_dtypes = "fl",
                                       .check = pool_check,
                                       .infer = pool_infer,
                                       .example = pool_example};
