/* SPDX-License-Identifier: Apache-2.0 */
/* The class POOL; see op_class.h. */
#include "common/op_call.h"
#include "common/op_window.h"

/* The lists follow the attributes of the operator table; the first one is the
 * kernel. */
#define POOL_LISTS (1 + WINDOW_LISTS)

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
    const struct tandem_tensor_desc *input = call->inputs[0];
    enum tandem_status status =
        window_check_lists(call, call->info->ints, POOL_LISTS);
    (void)output;
    if (status != TANDEM_OK)
        return status;
    const int64_t *kernel = call->op->ints + call->info->ints;
    shape_copy(out, input);
    return window_infer(call, kernel, kernel + input->rank - 2,
                        call->op->ints[0] != 0, out);
}

static void pool_lists(const struct op_call *call, uint32_t *ints,
                       uint32_t *floats)
{
    (void)floats;
    *ints += POOL_LISTS * (call->inputs[0]->rank - 2);
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
    uint32_t spatial = rank + missing - 2;
    for (uint32_t i = 0; i < spatial; i++)
        out->ints[info->ints + i] = 3;
    window_example(out->ints + info->ints + spatial, spatial, 3, 2);
    out->int_count = info->ints + POOL_LISTS * spatial;
    return NULL;
}

const struct op_class op_class_pool = {.input_dtypes = "f",
                                       .output_dtypes = "fl",
                                       .check = pool_check,
                                       .infer = pool_infer,
                                       .lists = pool_lists,
                                       .example = pool_example};
