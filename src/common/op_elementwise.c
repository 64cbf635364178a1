/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of element-wise operators: UNARY, BINARY, COMPARE, LOGICAL,
 * TERNARY, GRADIENT and CAST; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

static enum tandem_status unary_check(const struct op_call *call)
{
    if (call->info->id == TANDEM_OP_CELU &&
        !isgreater(call->op->floats[0], 0.0))
        return argument_error("celu: alpha is %g; expected a positive number",
                              call->op->floats[0]);
    return call->info->id == TANDEM_OP_GELU
               ? check_switch(call, 0, "approximate")
               : TANDEM_OK;
}

static enum tandem_status compare_check(const struct op_call *call)
{
    enum tandem_status status;
    if (call->info->id != TANDEM_OP_IS_INF)
        return TANDEM_OK;
    status = check_switch(call, 0, "detect_negative");
    return status == TANDEM_OK ? check_switch(call, 1, "detect_positive")
                               : status;
}

static const char *unary_example(const struct operator_info *info,
                                 uint32_t rank, const int64_t *shape,
                                 struct op_example *out)
{
    if (info->id == TANDEM_OP_CLIP)
        out->floats[0] = -1;
    (void)rank, (void)shape;
    return NULL;
}

static enum tandem_status broadcast_infer(const struct op_call *call,
                                          uint32_t output,
                                          struct tandem_tensor_desc *out)
{
    char left[TENSOR_SHAPE_TEXT], right[TENSOR_SHAPE_TEXT];
    (void)output;
    out->rank = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const struct tandem_tensor_desc *input = call->inputs[i];
        if (input == NULL)
            continue;
        if (input->rank > out->rank) {
            uint32_t more = input->rank - out->rank;
            for (uint32_t j = out->rank; j-- > 0;)
                out->shape[j + more] = out->shape[j];
            for (uint32_t j = 0; j < more; j++)
                out->shape[j] = 1;
            out->rank = input->rank;
        }
        for (uint32_t j = 0; j < input->rank; j++) {
            int64_t *size = &out->shape[j + out->rank - input->rank];
            if (*size == 1)
                *size = input->shape[j];
            else if (input->shape[j] != 1 && input->shape[j] != *size)
                return argument_error(
                    "%s: input %u of shape %s does not broadcast with %s",
                    call->info->name, i, tensor_shape_text(input, left),
                    tensor_shape_text(out, right));
        }
    }
    return TANDEM_OK;
}

static const char *unary_input_dtypes(uint32_t op)
{
    return op == TANDEM_OP_NEG || op == TANDEM_OP_ABS || op == TANDEM_OP_SIGN
               ? "e"
               : "f";
}

static const char *binary_input_dtypes(uint32_t op)
{
    return op == TANDEM_OP_POW || op == TANDEM_OP_PRELU ? "f" : "e";
}

static const char *compare_input_dtypes(uint32_t op)
{
    return op == TANDEM_OP_IS_NAN || op == TANDEM_OP_IS_INF ? "f" : "e";
}

static const char *ternary_input_dtypes(uint32_t op)
{
    return op == TANDEM_OP_WHERE ? "be" : "f";
}

const struct op_class op_class_unary = {.op_input_dtypes = unary_input_dtypes,
                                        .output_dtypes = "a",
                                        .in_place = IN_PLACE_ANY_INPUT,
                                        .strided_cost = true,
                                        .check = unary_check,
                                        .example = unary_example};

const struct op_class op_class_binary = {.op_input_dtypes = binary_input_dtypes,
                                         .output_dtypes = "a",
                                         .in_place = IN_PLACE_ANY_INPUT,
                                         .scalars = true,
                                         .strided_cost = true,
                                         .infer = broadcast_infer};

const struct op_class op_class_compare = {.op_input_dtypes =
                                              compare_input_dtypes,
                                          .output_dtypes = "b",
                                          .in_place = IN_PLACE_ANY_INPUT,
                                          .scalars = true,
                                          .strided_cost = true,
                                          .check = compare_check,
                                          .infer = broadcast_infer};

const struct op_class op_class_logical = {.input_dtypes = "b",
                                          .output_dtypes = "b",
                                          .in_place = IN_PLACE_ANY_INPUT,
                                          .scalars = true,
                                          .strided_cost = true,
                                          .infer = broadcast_infer};

const struct op_class op_class_ternary = {.op_input_dtypes =
                                              ternary_input_dtypes,
                                          .output_dtypes = "a",
                                          .in_place = IN_PLACE_ANY_INPUT,
                                          .scalars = true,
                                          .strided_cost = true,
                                          .infer = broadcast_infer};

const struct op_class op_class_gradient = {.input_dtypes = "f",
                                           .output_dtypes = "f",
                                           .in_place = IN_PLACE_ANY_INPUT,
                                           .strided_cost = true,
                                           .equal_shapes = true};

const struct op_class op_class_cast = {
    .input_dtypes = "c", .output_dtypes = "c", .strided_cost = true};
