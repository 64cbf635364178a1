/* SPDX-License-Identifier: Apache-2.0 */
/* The classes ONE_HOT, RANGE and TRILU, whose outputs depend on positions; see
 * op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

/* ---- ONE_HOT ---- */

static enum tandem_status one_hot_infer(const struct op_call *call,
                                        uint32_t output,
                                        struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *indices = call->inputs[0];
    const struct tandem_tensor_desc *values = call->inputs[1];
    int64_t depth = call->op->ints[1];
    uint32_t axis;
    (void)output;
    if (indices->rank == TANDEM_MAX_RANK)
        return argument_error("one_hot: the result's rank %u is above the "
                              "maximum %u",
                              indices->rank + 1, TANDEM_MAX_RANK);
    enum tandem_status status = axis_get(call, indices->rank + 1, &axis);
    if (status != TANDEM_OK)
        return status;
    if (values->rank != 1 || values->shape[0] != 2)
        return shape_mismatch(
            call, 1,
            &(const struct tandem_tensor_desc){.rank = 1, .shape = {2}});
    if (depth < 1)
        return argument_error("one_hot: depth is %lld; expected 1 or more",
                              (long long)depth);
    out->rank = indices->rank + 1;
    for (uint32_t i = 0; i < out->rank; i++)
        out->shape[i] = i < axis    ? indices->shape[i]
                        : i == axis ? depth
                                    : indices->shape[i - 1];
    return TANDEM_OK;
}

/* `shape` is the shape of the output, whose last axis is the new one. */
static const char *one_hot_example(const struct operator_info *info,
                                   uint32_t rank, const int64_t *shape,
                                   struct op_example *out)
{
    (void)info;
    if (rank < 1)
        return "the shape of the output, of rank 1 or more";
    out->ints[0] = -1;
    out->ints[1] = out->index_limit = shape[rank - 1];
    example_input(out, rank - 1, shape);
    example_input(out, 1, (const int64_t[]){2});
    return NULL;
}

const struct op_class op_class_one_hot = {.input_dtypes = "ia",
                                          .output_dtypes = "a",
                                          .example_shape = OP_EXAMPLE_ROWS,
                                          .infer = one_hot_infer,
                                          .example = one_hot_example};

/* ---- RANGE ---- */

/* The output may have any length. */
static enum tandem_status range_infer(const struct op_call *call,
                                      uint32_t output,
                                      struct tandem_tensor_desc *out)
{
    (void)output;
    if (call->outputs == NULL || call->outputs[0]->rank != 1)
        return argument_error("range: the output has rank %u; expected 1",
                              call->outputs != NULL ? call->outputs[0]->rank
                                                    : 0u);
    shape_copy(out, call->outputs[0]);
    return TANDEM_OK;
}

static const char *range_example(const struct operator_info *info,
                                 uint32_t rank, const int64_t *shape,
                                 struct op_example *out)
{
    (void)info;
    out->ints[1] = 1;
    out->outputs[0].rank = 1;
    out->outputs[0].shape[0] = shape_elements(rank, shape);
    return NULL;
}

const struct op_class op_class_range = {.input_dtypes = "",
                                        .output_dtypes = "n",
                                        .infer = range_infer,
                                        .example = range_example};

/* ---- TRILU ---- */

static enum tandem_status trilu_check(const struct op_call *call)
{
    if (call->inputs[0]->rank < 2)
        return operand_error(call, 0, "has rank %u; expected 2 or more",
                             call->inputs[0]->rank);
    return check_switch(call, 0, "upper");
}

static const char *trilu_example(const struct operator_info *info,
                                 uint32_t rank, const int64_t *shape,
                                 struct op_example *out)
{
    (void)info, (void)shape, (void)out;
    return rank < 2 ? "the shape of the input, of rank 2 or more" : NULL;
}

const struct op_class op_class_trilu = {.input_dtypes = "a",
                                        .output_dtypes = "a",
                                        .in_place = true,
                                        .example_shape = OP_EXAMPLE_ROWS,
                                        .check = trilu_check,
                                        .example = trilu_example};
