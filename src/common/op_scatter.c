/* SPDX-License-Identifier: Apache-2.0 */
/* The class SCATTER; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_extent.h"

/* The OpenCL plugin numbers the updates of an element from 1, in 32 bits. */
#define MAX_ELEMENT_UPDATES (UINT32_MAX - 1)

/* Returns the number of updates that can address the same element. */
static int64_t element_updates(const struct op_call *call)
{
    const struct tandem_tensor_desc *indices = call->inputs[1];
    uint32_t axis;
    if (call->info->id == TANDEM_OP_SCATTER_ND)
        return indices->rank == 0
                   ? 0
                   : shape_elements(indices->rank - 1, indices->shape);
    return axis_get(call, call->inputs[0]->rank, &axis) == TANDEM_OK &&
                   axis < indices->rank
               ? indices->shape[axis]
               : 0;
}

static enum tandem_status scatter_check(const struct op_call *call)
{
    int64_t reduction = call->op->ints[call->info->ints - 1];
    if (reduction < 0 || reduction > 4)
        return argument_error("%s: reduction is %lld; expected 0 (none), 1 "
                              "(add), 2 (mul), 3 (min) or 4 (max)",
                              call->info->name, (long long)reduction);
    return TANDEM_OK;
}

/* Returns TANDEM_UNSUPPORTED for a valid call that no plugin supports. */
static enum tandem_status check_support(const struct op_call *call)
{
    int64_t reduction = call->op->ints[call->info->ints - 1];
    uint32_t dtype = call->inputs[0]->dtype;
    if (reduction != 0 && dtype != TANDEM_F32)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: dtype %s is unsupported with reduction %lld; expected f32",
            call->info->name, dtype_name(dtype), (long long)reduction);
    if (reduction == 0 && element_updates(call) > MAX_ELEMENT_UPDATES)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: %lld updates that can address the same element are "
            "unsupported; expected at most %u",
            call->info->name, (long long)element_updates(call),
            MAX_ELEMENT_UPDATES);
    return TANDEM_OK;
}

static enum tandem_status check_updates(const struct op_call *call,
                                        const struct tandem_tensor_desc *shape)
{
    return shapes_equal(call->inputs[2], shape)
               ? TANDEM_OK
               : shape_mismatch(call, 2, shape);
}

static enum tandem_status check_elements(const struct op_call *call)
{
    uint32_t axis;
    enum tandem_status status = axis_get(call, call->inputs[0]->rank, &axis);
    if (status == TANDEM_OK)
        status = check_index_shape(call, axis);
    return status == TANDEM_OK ? check_updates(call, call->inputs[1]) : status;
}

static enum tandem_status check_slices(const struct op_call *call)
{
    const struct tandem_tensor_desc *data = call->inputs[0];
    const struct tandem_tensor_desc *indices = call->inputs[1];
    struct tandem_tensor_desc updates = {.rank = 0};
    uint32_t components;
    enum tandem_status status = index_components_get(call, 0, &components);
    if (status != TANDEM_OK)
        return status;
    if (!shape_append(&updates, indices, 0, indices->rank - 1) ||
        !shape_append(&updates, data, components, data->rank))
        return argument_error("%s: the updates' rank %u is above the maximum "
                              "%u",
                              call->info->name,
                              indices->rank - 1 + data->rank - components,
                              TANDEM_MAX_RANK);
    return check_updates(call, &updates);
}

static enum tandem_status scatter_infer(const struct op_call *call,
                                        uint32_t output,
                                        struct tandem_tensor_desc *out)
{
    (void)output;
    shape_copy(out, call->inputs[0]);
    enum tandem_status status = call->info->id == TANDEM_OP_SCATTER_ND
                                    ? check_slices(call)
                                    : check_elements(call);
    return status == TANDEM_OK ? check_support(call) : status;
}

/* `shape` is the shape of data and updates. scatter_elements has an index for
 * each element, scatter_nd for each row. */
static const char *scatter_example(const struct operator_info *info,
                                   uint32_t rank, const int64_t *shape,
                                   struct op_example *out)
{
    if (rank < 1)
        return "the shape of the data, of rank 1 or more";
    out->index_limit = shape[0];
    example_input(out, rank, shape);
    if (info->id == TANDEM_OP_SCATTER_ND)
        example_input(out, 2, (int64_t[]){shape[0], 1});
    else
        example_input(out, rank, shape);
    return NULL;
}

const struct op_class op_class_scatter = {.input_dtypes = "aia",
                                          .output_dtypes = "a",
                                          .in_place = 1u << 0,
                                          .example_shape =
                                              OP_EXAMPLE_SHORT_ROWS,
                                          .check = scatter_check,
                                          .infer = scatter_infer,
                                          .example = scatter_example};
