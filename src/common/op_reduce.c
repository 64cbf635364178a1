/* SPDX-License-Identifier: Apache-2.0 */
/* The classes REDUCE, ARG_REDUCE and DOT; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

/* Returns true if the operator has no result when it reduces 0 elements. */
static bool needs_elements(const struct operator_info *info)
{
    return info->id == TANDEM_OP_REDUCE_MAX ||
           info->id == TANDEM_OP_REDUCE_MIN ||
           info->op_class == TANDEM_CLASS_ARG_REDUCE;
}

static enum tandem_status check_axes(const struct operator_info *info,
                                     uint64_t axes, uint32_t rank)
{
    uint64_t all = (UINT64_C(1) << rank) - 1u;
    if ((axes & ~all) != 0 || (axes == 0 && rank > 0))
        return argument_error("%s: axes mask 0x%llx names %s for rank %u",
                              info->name, (unsigned long long)axes,
                              axes == 0 ? "no axis" : "axes out of range",
                              rank);
    if (info->op_class == TANDEM_CLASS_ARG_REDUCE && axes != all &&
        (axes & (axes - 1u)) != 0)
        return argument_error(
            "%s: axes mask 0x%llx must name one axis or all %u", info->name,
            (unsigned long long)axes, rank);
    return TANDEM_OK;
}

static enum tandem_status reduce_infer(const struct op_call *call,
                                       uint32_t output,
                                       struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *input = call->inputs[0];
    const int64_t *ints = call->op->ints;
    uint64_t axes = (uint64_t)ints[0];
    int64_t kept = 1, reduced = 1;
    char shape[TENSOR_SHAPE_TEXT];
    enum tandem_status status = check_axes(call->info, axes, input->rank);
    (void)output;
    if (status != TANDEM_OK)
        return status;
    if (ints[1] != 0 && ints[1] != 1)
        return argument_error("%s: keepdims is %lld; it must be 0 or 1",
                              call->info->name, (long long)ints[1]);
    out->rank = 0;
    for (uint32_t i = 0; i < input->rank; i++) {
        bool reduce = (axes >> i & 1u) != 0;
        *(reduce ? &reduced : &kept) *= input->shape[i] != 0;
        if (!reduce || ints[1] == 1)
            out->shape[out->rank++] = reduce ? 1 : input->shape[i];
    }
    if (needs_elements(call->info) && reduced == 0 && kept != 0)
        return argument_error("%s: the axes of mask 0x%llx are empty in shape "
                              "%s, so there is no result",
                              call->info->name, (unsigned long long)axes,
                              tensor_shape_text(input, shape));
    return TANDEM_OK;
}

/* Reduces the last axis. */
static const char *reduce_example(const struct operator_info *info,
                                  uint32_t rank, const int64_t *shape,
                                  struct op_example *out)
{
    out->ints[0] = rank == 0 ? 0 : INT64_C(1) << (rank - 1);
    (void)info, (void)shape;
    return NULL;
}

static enum tandem_status dot_infer(const struct op_call *call, uint32_t output,
                                    struct tandem_tensor_desc *out)
{
    const struct tandem_tensor_desc *a = call->inputs[0], *b = call->inputs[1];
    char left[TENSOR_SHAPE_TEXT], right[TENSOR_SHAPE_TEXT];
    (void)output;
    out->rank = 0;
    if (a->rank == 1 && b->rank == 1 && a->shape[0] == b->shape[0])
        return TANDEM_OK;
    return argument_error(
        "dot: inputs of shapes %s and %s where two of one rank-1 shape are "
        "needed",
        tensor_shape_text(a, left), tensor_shape_text(b, right));
}

static const char *dot_example(const struct operator_info *info, uint32_t rank,
                               const int64_t *shape, struct op_example *out)
{
    (void)info, (void)shape, (void)out;
    return rank == 1 ? NULL : "the number of elements, of rank 1";
}

const struct op_class op_class_reduce = {.input_dtypes = "f",
                                         .output_dtypes = "f",
                                         .example_shape = OP_EXAMPLE_ROWS,
                                         .infer = reduce_infer,
                                         .example = reduce_example};

const struct op_class op_class_arg_reduce = {.input_dtypes = "f",
                                             .output_dtypes = "l",
                                             .example_shape = OP_EXAMPLE_ROWS,
                                             .infer = reduce_infer,
                                             .example = reduce_example};

const struct op_class op_class_dot = {.input_dtypes = "f",
                                      .output_dtypes = "f",
                                      .infer = dot_infer,
                                      .example = dot_example};
