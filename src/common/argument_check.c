/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of operator and GEMM calls; see argument_check.h. */
#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/op_call.h"
#include "common/tensor_overlap.h"
#include "common/struct_size.h"

static enum tandem_status check_attributes(const struct op_call *call)
{
    const struct operator_info *row = call->info;
    const struct tandem_op *op = call->op;
    uint32_t floats = row->floats + call->scalars;
    if (op->int_count < row->ints || (row->ints > 0 && op->ints == NULL))
        return argument_error("%s: the length of ints is %u; expected %u or "
                              "more (%s)",
                              row->name, op->ints == NULL ? 0 : op->int_count,
                              row->ints, row->int_names);
    if (op->float_count < floats || (floats > 0 && op->floats == NULL))
        return argument_error(
            "%s: the length of floats is %u; expected %u or more (%s%s%s)",
            row->name, op->floats == NULL ? 0u : op->float_count, floats,
            row->float_names, row->floats > 0 && call->scalars > 0 ? ", " : "",
            call->scalars > 0 ? "a value for each input that is NULL" : "");
    return check_flags(row->name, op->flags,
                       TANDEM_OP_ALLOW_NONDETERMINISM | TANDEM_OP_ALLOW_TF32 |
                           TANDEM_OP_ALLOW_NORMWISE_ERROR);
}

/* Checks that the call has no attribute after those of the operator table, the
 * scalars and the lists of its class. The call is valid otherwise. */
static enum tandem_status check_attribute_limit(const struct op_call *call,
                                                const struct op_class *class)
{
    const struct tandem_op *op = call->op;
    uint32_t ints = call->info->ints;
    uint32_t floats = call->info->floats + call->scalars;
    if (class->lists != NULL)
        class->lists(call, &ints, &floats);
    if (op->int_count <= ints && op->float_count <= floats)
        return TANDEM_OK;
    return last_error_set(
        TANDEM_UNSUPPORTED,
        "%s: the lengths of ints and floats are %u and %u, but this version of "
        "the operator has at most %u and %u attributes",
        call->info->name, op->int_count, op->float_count, ints, floats);
}

/* Checks that all operands and attributes are present and that each operand's
 * dtype, rank and shape is valid. Without has_outputs, the outputs are unknown.
 * Counts the NULL inputs in call->scalars. */
static enum tandem_status check_operands(struct op_call *call,
                                         const struct op_class *class,
                                         bool has_outputs)
{
    const struct operator_info *row = call->info;
    bool takes_scalars = class->scalars && row->inputs > 1;
    const uint32_t most = class->variadic ? TANDEM_MAX_OPERANDS : row->inputs;
    if (call->input_count < row->inputs || call->input_count > most ||
        call->output_count != row->outputs)
        return argument_error(
            "%s: the numbers of inputs and outputs are %u and %u; expected "
            "%u%s and %u",
            row->name, call->input_count, call->output_count, most,
            class->variadic ? " or fewer" : "", row->outputs);
    if ((call->inputs == NULL && row->inputs > 0) ||
        (call->outputs == NULL && has_outputs))
        return argument_error("%s: the array of %s is NULL", row->name,
                              call->inputs == NULL ? "inputs" : "outputs");
    const uint32_t known =
        call->input_count + (has_outputs ? call->output_count : 0);
    for (uint32_t i = 0; i < known; i++) {
        const struct tandem_tensor_desc *tensor = op_call_operand(call, i);
        if (tensor == NULL && i < call->input_count && takes_scalars) {
            call->scalars++;
            continue;
        }
        if (tensor == NULL)
            return operand_error(call, i, "is NULL");
        /* Formatting a name is slow, so the name stays empty until a check
         * fails. */
        if (tensor->rank <= TANDEM_MAX_RANK &&
            check_shape("", tensor->dtype, tensor->rank, tensor->shape) ==
                TANDEM_OK)
            continue;
        char name[OPERAND_NAME_BYTES];
        return check_shape(operand_name(call, i, name), tensor->dtype,
                           tensor->rank, tensor->shape);
    }
    if (call->scalars > 0 && call->scalars == call->input_count)
        return argument_error(
            "%s: every input is a scalar (NULL); one must be a tensor",
            row->name);
    return check_attributes(call);
}

/* Checks the shapes of the inputs, and that each output has the shape that the
 * operator infers. */
static enum tandem_status check_shapes(const struct op_call *call,
                                       const struct op_class *class)
{
    for (uint32_t i = 1; class->equal_shapes && i < call->input_count; i++)
        if (!shapes_equal(call->inputs[i], call->inputs[0]))
            return shape_mismatch(call, i, call->inputs[0]);
    for (uint32_t i = 0; i < call->output_count; i++) {
        struct tandem_tensor_desc inferred;
        const struct tandem_tensor_desc *expected = &inferred;
        if (class->infer != NULL) {
            enum tandem_status status = class->infer(call, i, &inferred);
            if (status != TANDEM_OK)
                return status;
        } else {
            expected = call->inputs[0];
        }
        if (!shapes_equal(call->outputs[i], expected))
            return shape_mismatch(call, call->input_count + i, expected);
    }
    return TANDEM_OK;
}

/* ---- memory ---- */

static enum tandem_status find_range(const struct op_call *call,
                                     uint32_t operand, address_range_fn span,
                                     const void *user, struct tensor_range *out)
{
    const struct tandem_tensor_desc *tensor = op_call_operand(call, operand);
    char name[OPERAND_NAME_BYTES];
    struct address_range memory;
    if (tensor->buffer == NULL)
        return operand_error(call, operand, "has no buffer (NULL)");
    enum tandem_status status = span(user, tensor->buffer, &memory);
    if (status != TANDEM_OK)
        return last_error_prefix(status, operand_name(call, operand, name));
    if (!tensor_range_find(out, tensor, memory.base, memory.bytes))
        return operand_error(
            call, operand,
            "reaches outside its buffer of %llu bytes (offset %llu)",
            (unsigned long long)memory.bytes,
            (unsigned long long)tensor->byte_offset);
    if (tensor->byte_offset % TANDEM_DTYPE_BYTES(tensor->dtype) != 0)
        return operand_error(call, operand,
                             "starts at byte %llu, which is not a multiple of "
                             "its element size, %u bytes",
                             (unsigned long long)tensor->byte_offset,
                             (unsigned)TANDEM_DTYPE_BYTES(tensor->dtype));
    return TANDEM_OK;
}

/* Checks that the output overlaps neither itself nor an operand with a smaller
 * number. If the operator works in place, the output is allowed to be the same
 * tensor as an input. */
static enum tandem_status check_output(const struct op_call *call,
                                       uint32_t output,
                                       const struct tensor_range *ranges)
{
    const struct tandem_tensor_desc *tensor = op_call_operand(call, output);
    const uint32_t number = output - call->input_count;
    const char *name = call->info->name;
    if (ranges[output].first == ranges[output].end)
        return TANDEM_OK;
    if (tensor_overlaps_itself(tensor))
        return argument_error("%s: elements of output %u overlap one another",
                              name, number);
    for (uint32_t i = 0; i < output; i++) {
        const struct tandem_tensor_desc *other = op_call_operand(call, i);
        bool in_place = i < call->input_count && op_input_in_place(call, i);
        if (other == NULL || (in_place && tensors_same(other, tensor)) ||
            !tensors_overlap(&ranges[output], &ranges[i]))
            continue;
        if (i >= call->input_count)
            return argument_error("%s: outputs %u and %u overlap", name,
                                  i - call->input_count, number);
        return argument_error(
            "%s: output %u overlaps input %u%s", name, number, i,
            in_place ? " without being exactly the same" : "");
    }
    return TANDEM_OK;
}

static enum tandem_status check_memory(const struct op_call *call,
                                       address_range_fn span, const void *user)
{
    const uint32_t end = call->input_count + call->output_count;
    struct tensor_range ranges[2 * TANDEM_MAX_OPERANDS];
    enum tandem_status status = TANDEM_OK;
    for (uint32_t i = 0; status == TANDEM_OK && i < end; i++)
        if (op_call_operand(call, i) != NULL)
            status = find_range(call, i, span, user, &ranges[i]);
    for (uint32_t i = call->input_count; status == TANDEM_OK && i < end; i++)
        status = check_output(call, i, ranges);
    return status;
}

/* ---- check_op ---- */

enum tandem_status operator_check(const struct tandem_op *op,
                                  const struct operator_info **out_row)
{
    if (op == NULL)
        return argument_error("the operator is NULL");
    enum tandem_status status = input_struct_check(
        "op", "tandem_op", op, sizeof(*op), TANDEM_OP_MIN_SIZE_1_0);
    if (status != TANDEM_OK)
        return status;
    *out_row = operator_lookup(op->id);
    if (op->id == TANDEM_OP_INVALID)
        return argument_error("operator number 0 does not exist");
    if (*out_row == NULL)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "operator number %u is unsupported in this version", op->id);
    if (op->int_count > TANDEM_MAX_ATTRIBUTES ||
        op->float_count > TANDEM_MAX_ATTRIBUTES)
        return last_error_set(
            TANDEM_UNSUPPORTED,
            "%s: the lengths of ints and floats are %u and %u; no operator of "
            "this version has more than %u",
            (*out_row)->name, op->int_count, op->float_count,
            TANDEM_MAX_ATTRIBUTES);
    return TANDEM_OK;
}

enum tandem_status check_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, address_range_fn span,
                            const void *user)
{
    struct op_call call = {NULL,        op,           inputs, outputs,
                           input_count, output_count, 0};
    enum tandem_status status = operator_check(op, &call.info);
    if (status != TANDEM_OK)
        return status;
    const struct op_class *class = op_class_get(call.info->op_class);
    status = check_operands(&call, class, true);
    if (status == TANDEM_OK && class->check != NULL)
        status = class->check(&call);
    if (status == TANDEM_OK)
        status = op_check_dtypes(&call);
    if (status == TANDEM_OK)
        status = check_shapes(&call, class);
    if (status == TANDEM_OK)
        status = check_attribute_limit(&call, class);
    if (status == TANDEM_OK && span != NULL)
        status = check_memory(&call, span, user);
    return status;
}

enum tandem_status infer_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            struct tandem_tensor_desc *outputs,
                            uint32_t output_count)
{
    const struct tandem_tensor_desc *inferred[TANDEM_MAX_OPERANDS];
    struct op_call call = {NULL,        op,           inputs, NULL,
                           input_count, output_count, 0};
    enum tandem_status status = operator_check(op, &call.info);
    if (status != TANDEM_OK)
        return status;
    const struct op_class *class = op_class_get(call.info->op_class);
    status = check_operands(&call, class, false);
    if (status == TANDEM_OK && class->check != NULL)
        status = class->check(&call);
    for (uint32_t i = 0; i < output_count && status == TANDEM_OK; i++) {
        char name[OPERAND_NAME_BYTES];
        status = op_infer(&call, i, &outputs[i]);
        if (status == TANDEM_OK)
            status = check_shape(operand_name(&call, input_count + i, name),
                                 outputs[i].dtype, outputs[i].rank,
                                 outputs[i].shape);
        if (status == TANDEM_OK)
            shape_strides(outputs[i].rank, outputs[i].shape,
                          outputs[i].strides);
        inferred[i] = &outputs[i];
    }
    return status == TANDEM_OK ? check_op(op, inputs, input_count, inferred,
                                          output_count, NULL, NULL)
                               : status;
}
