/* SPDX-License-Identifier: Apache-2.0 */
/* The class GATHER; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

static enum tandem_status gather_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    const struct tandem_tensor_desc *indices = call->inputs[1];
    uint32_t axis;
    enum tandem_status status = axis_get(call, data->rank, &axis);
    (void)output;
    if (status != TANDEM_OK)
        return status;
    if (data->rank - 1 + indices->rank > TANDEM_MAX_RANK)
        return argument_error(
            "gather: the result's rank %u is above the maximum %u",
            (data->rank - 1 + indices->rank), TANDEM_MAX_RANK);
    out->rank = 0;
    for (uint32_t i = 0; i < axis; i++)
        out->shape[out->rank++] = data->shape[i];
    for (uint32_t i = 0; i < indices->rank; i++)
        out->shape[out->rank++] = indices->shape[i];
    for (uint32_t i = axis + 1; i < data->rank; i++)
        out->shape[out->rank++] = data->shape[i];
    return TANDEM_OK;
}

/* A gather reads only as many elements of input 0 as it writes. */
static void gather_work(const struct op_call *call, bool contiguous,
                        struct op_work *work)
{
    (void)contiguous;
    work->bytes -= tensor_data_bytes(call->inputs[0]);
    work->bytes += tensor_data_bytes(call->outputs[0]);
}

/* `shape` is the shape of the data. There are as many row indices as rows. */
static const char *gather_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    (void)info;
    if (rank < 1)
        return "the shape of the data, of rank 1 or more";
    out->index_limit = shape[0];
    example_input(out, rank, shape);
    example_input(out, 1, shape);
    return NULL;
}

const struct op_class op_class_gather = {.input_dtypes = "ai",
                                         .output_dtypes = "a",
                                         .example_shape = OP_EXAMPLE_SHORT_ROWS,
                                         .infer = gather_infer,
                                         .work = gather_work,
                                         .example = gather_example};
