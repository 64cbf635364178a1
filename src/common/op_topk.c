/* SPDX-License-Identifier: Apache-2.0 */
/* The class TOPK; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/topk_key.h"

#define EXAMPLE_K 8

static enum tandem_status topk_check(const struct op_call *call)
{
    enum tandem_status status = check_switch(call, TOPK_LARGEST, "largest");
    return status != TANDEM_OK ? status
                               : check_switch(call, TOPK_SORTED, "sorted");
}

static enum tandem_status topk_infer(const struct op_call *call,
                                     uint32_t output,
                                     struct tandem_tensor_desc *out)
{
    int64_t k = call->op->ints[TOPK_K];
    uint32_t axis;
    (void)output;
    shape_copy(out, call->inputs[0]);
    enum tandem_status status = axis_get(call, out->rank, &axis);
    if (status != TANDEM_OK)
        return status;
    if (out->shape[axis] > UINT32_MAX)
        return operand_error(call, 0,
                             "has length %lld along axis %u; expected less "
                             "than 2^32",
                             (long long)out->shape[axis], axis);
    if (k < 0 || k > out->shape[axis])
        return argument_error("topk: k is %lld; expected 0 to %lld, the length "
                              "of axis %u",
                              (long long)k, (long long)out->shape[axis], axis);
    out->shape[axis] = k;
    return TANDEM_OK;
}

/* The largest elements along the last axis. */
static const char *topk_example(const struct operator_info *info, uint32_t rank,
                                const int64_t *shape, struct op_example *out)
{
    const char *needed = axis_example(info, rank, shape, out);
    if (needed != NULL)
        return needed;
    out->ints[TOPK_K] =
        shape[rank - 1] < EXAMPLE_K ? shape[rank - 1] : EXAMPLE_K;
    out->ints[TOPK_LARGEST] = out->ints[TOPK_SORTED] = 1;
    return NULL;
}

const struct op_class op_class_topk = {.input_dtypes = "f",
                                       .output_dtypes = "fl",
                                       .example_shape = OP_EXAMPLE_ROWS,
                                       .check = topk_check,
                                       .infer = topk_infer,
                                       .example = topk_example};
