/* SPDX-License-Identifier: Apache-2.0 */
/* The classes COPY and TRANSPOSE; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

static enum tandem_status copy_infer(const struct op_call *call,
                                     uint32_t output,
                                     struct tandem_tensor_desc *out)
{
    (void)output;
    if (call->outputs != NULL &&
        !shape_broadcasts(call->inputs[0], call->outputs[0]))
        return shape_mismatch(call, 0, call->outputs[0]);
    shape_copy(out, call->outputs != NULL ? call->outputs[0] : call->inputs[0]);
    return TANDEM_OK;
}

static void copy_work(const struct op_call *call, bool contiguous,
                      struct op_work *work)
{
    (void)call;
    if (contiguous)
        work->cost_class = TANDEM_COST_ELEMENTWISE;
}

static enum tandem_status transpose_infer(const struct op_call *call,
                                          uint32_t output,
                                          struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    const struct tandem_op *op = call->op;
    uint32_t seen = 0;
    (void)output;
    if (op->int_count < input->rank || (input->rank > 0 && op->ints == NULL))
        return argument_error(
            "transpose: the length of ints is %u; expected %u or more (perm, "
            "with a number for each axis)",
            op->ints == NULL ? 0 : op->int_count, input->rank);
    out->rank = input->rank;
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t axis = op->ints[i];
        if (axis < 0 || axis >= input->rank || (seen >> axis & 1u) != 0)
            return argument_error(
                "transpose: perm[%u] = %lld is outside rank %u or there twice",
                i, (long long)axis, input->rank);
        seen |= 1u << axis;
        out->shape[i] = input->shape[axis];
    }
    return TANDEM_OK;
}

/* The list perm. */
static void transpose_lists(const struct op_call *call, uint32_t *ints,
                            uint32_t *floats)
{
    (void)floats;
    *ints += call->inputs[0]->rank;
}

/* Reverses all axes. */
static const char *transpose_example(const struct operator_info *info,
                                     uint32_t rank, const int64_t *shape,
                                     struct op_example *out)
{
    out->int_count = rank;
    for (uint32_t axis = 0; axis < rank; axis++)
        out->ints[axis] = (int64_t)(rank - 1 - axis);
    (void)info, (void)shape;
    return NULL;
}

const struct op_class op_class_copy = {.input_dtypes = "a",
                                       .output_dtypes = "a",

                                       .infer = copy_infer,
                                       .work = copy_work};

const struct op_class op_class_transpose = {.input_dtypes = "a",
                                            .output_dtypes = "a",
                                            .infer = transpose_infer,
                                            .lists = transpose_lists,
                                            .example = transpose_example};
