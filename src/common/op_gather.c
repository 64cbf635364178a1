/* SPDX-License-Identifier: Apache-2.0 */
/* The class GATHER; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

static enum tandem_status rank_error(const struct op_call *call, uint32_t rank)
{
    return argument_error("%s: the result's rank %u is above the maximum %u",
                          call->info->name, rank, TANDEM_MAX_RANK);
}

static enum tandem_status infer_slices(const struct op_call *call,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    const struct tandem_tensor_desc *indices = call->inputs[1];
    uint32_t axis;
    enum tandem_status status = axis_get(call, data->rank, &axis);
    if (status != TANDEM_OK)
        return status;
    if (!shape_append(out, data, 0, axis) ||
        !shape_append(out, indices, 0, indices->rank) ||
        !shape_append(out, data, axis + 1, data->rank))
        return rank_error(call, data->rank - 1 + indices->rank);
    return TANDEM_OK;
}

static enum tandem_status infer_elements(const struct op_call *call,
                                         struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    uint32_t axis;
    enum tandem_status status = axis_get(call, data->rank, &axis);
    if (status == TANDEM_OK)
        status = check_index_shape(call, axis);
    shape_copy(out, call->inputs[1]);
    return status;
}

static enum tandem_status infer_nd(const struct op_call *call,
                                   struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    const struct tandem_tensor_desc *indices = call->inputs[1];
    int64_t batch_dims = call->op->ints[0];
    if (batch_dims < 0 || batch_dims >= data->rank ||
        batch_dims >= indices->rank)
        return argument_error("%s: batch_dims %lld is out of range for inputs "
                              "of rank %u and %u",
                              call->info->name, (long long)batch_dims,
                              data->rank, indices->rank);
    for (uint32_t i = 0; i < batch_dims; i++)
        if (indices->shape[i] != data->shape[i])
            return operand_error(
                call, 1, "has size %lld along axis %u; expected %lld",
                (long long)indices->shape[i], i, (long long)data->shape[i]);
    uint32_t components;
    enum tandem_status status =
        index_components_get(call, (uint32_t)batch_dims, &components);
    if (status != TANDEM_OK)
        return status;
    uint32_t first = (uint32_t)batch_dims + components;
    if (!shape_append(out, indices, 0, indices->rank - 1) ||
        !shape_append(out, data, first, data->rank))
        return rank_error(call, indices->rank - 1 + data->rank - first);
    return TANDEM_OK;
}

static enum tandem_status gather_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    (void)output;
    out->rank = 0;
    return call->info->id == TANDEM_OP_GATHER_ELEMENTS
               ? infer_elements(call, out)
           : call->info->id == TANDEM_OP_GATHER_ND ? infer_nd(call, out)
                                                   : infer_slices(call, out);
}

/* A gather reads only as many elements of input 0 as it writes. */
static void gather_work(const struct op_call *call, bool contiguous,
                        struct op_work *work)
{
    (void)contiguous;
    work->bytes -= tensor_data_bytes(call->inputs[0]);
    work->bytes += tensor_data_bytes(call->outputs[0]);
}

/* `shape` is the shape of the data. There are as many row indices as rows.
 * gather_elements has an index for each element. */
static const char *gather_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    if (rank < 1)
        return "the shape of the data, of rank 1 or more";
    out->index_limit = shape[0];
    example_input(out, rank, shape);
    if (info->id == TANDEM_OP_GATHER_ELEMENTS)
        example_input(out, rank, shape);
    else if (info->id == TANDEM_OP_GATHER_ND)
        example_input(out, 2, (int64_t[]){shape[0], 1});
    else
        example_input(out, 1, shape);
    return NULL;
}

const struct op_class op_class_gather = {.input_dtypes = "ai",
                                         .output_dtypes = "a",
                                         .example_shape = OP_EXAMPLE_SHORT_ROWS,
                                         .infer = gather_infer,
                                         .work = gather_work,
                                         .example = gather_example};
