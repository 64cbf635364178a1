/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run common operators.  Any thread may call them. */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/tensor/tensor.h"

/* Checks that operator `op` exists and has `inputs` inputs and one output. */
static enum tandem_status operand_counts_check(uint32_t op, uint32_t inputs,
                                               const char *function)
{
    const struct operator_info *row = operator_lookup(op);

    if (row == NULL)
        return argument_error("op: %u is not an operator id", op);
    if (row->inputs != inputs || row->outputs != 1)
        return argument_error(
            "%s: %s has %u inputs and %u outputs; expected %u and 1", function,
            row->name, row->inputs, row->outputs, inputs);
    return TANDEM_OK;
}

enum tandem_status tandem_unary(struct tandem_context *context, uint32_t op,
                                struct tandem_tensor *x,
                                struct tandem_tensor *y)
{
    const struct tandem_op call = {.struct_size = sizeof(call), .id = op};
    const enum tandem_status status =
        operand_counts_check(op, 1, "tandem_unary");

    return status == TANDEM_OK ? tandem_run(context, &call, &x, 1, &y, 1, NULL)
                               : status;
}

enum tandem_status tandem_binary(struct tandem_context *context, uint32_t op,
                                 struct tandem_tensor *a,
                                 struct tandem_tensor *b,
                                 struct tandem_tensor *y)
{
    const struct tandem_op call = {.struct_size = sizeof(call), .id = op};
    struct tandem_tensor *const inputs[] = {a, b};
    enum tandem_status status = operand_counts_check(op, 2, "tandem_binary");

    /* tandem_run accepts NULL as a scalar, but this function rejects it. */
    if (status == TANDEM_OK && (a == NULL || b == NULL))
        status = argument_error("%s: %s: NULL", operator_name(op),
                                a == NULL ? "a" : "b");
    return status == TANDEM_OK
               ? tandem_run(context, &call, inputs, 2, &y, 1, NULL)
               : status;
}

enum tandem_status tandem_reduce(struct tandem_context *context, uint32_t op,
                                 uint32_t axes, struct tandem_tensor *x,
                                 struct tandem_tensor *y)
{
    int64_t attributes[2] = {axes, 0};
    const struct tandem_op call = {.struct_size = sizeof(call),
                                   .id = op,
                                   .int_count = 2,
                                   .ints = attributes};
    enum tandem_status status = operand_counts_check(op, 1, "tandem_reduce");

    if (status == TANDEM_OK)
        status = tensor_check(x, context, "x");
    if (status == TANDEM_OK)
        status = tensor_check(y, context, "y");
    if (status != TANDEM_OK)
        return status;
    attributes[1] = y->desc.rank == x->desc.rank;
    return tandem_run(context, &call, &x, 1, &y, 1, NULL);
}
