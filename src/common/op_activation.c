/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and converts activations; see op_activation.h. */
#include "common/op_activation.h"

#include "common/last_error.h"
#include "common/op_class.h"

/* The operator of an activation, as launch() gets it. */
struct unary {
    struct tandem_op op;
    int64_t ints[1];
};

static void unary_set(struct unary *out, const struct activation *activation)
{
    out->ints[0] = activation_is_gelu_tanh(activation);
    out->op = (struct tandem_op){.struct_size = sizeof out->op,
                                 .id = activation->op,
                                 .int_count = 1,
                                 .float_count = 2,
                                 .ints = out->ints,
                                 .floats = activation->parameters};
}

enum tandem_status activation_check(const char *name,
                                    const struct activation *activation)
{
    struct unary unary;
    double first = activation->parameters[0];
    const struct operator_info *info = operator_lookup(activation->op);
    if (activation->op == TANDEM_OP_INVALID)
        return TANDEM_OK;
    if (info == NULL || info->op_class != TANDEM_CLASS_UNARY)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: %s (operator number %u) cannot be an "
                              "activation; expected an operator of class UNARY",
                              name, operator_name(activation->op),
                              activation->op);
    if (activation->op == TANDEM_OP_GELU && first != 0 && first != 1)
        return argument_error("%s: activation_parameter is %g; expected 0 "
                              "(erf form of gelu) or 1 (tanh form)",
                              name, first);
    unary_set(&unary, activation);
    const struct op_call call = {.info = info, .op = &unary.op};
    enum tandem_status status = op_class_unary.check(&call);
    return status == TANDEM_OK ? status : last_error_prefix(status, name);
}

void activation_attributes(float *out, const struct activation *activation)
{
    struct unary unary;
    unary_set(&unary, activation);
    unary_attributes(out, &unary.op);
}
