/* SPDX-License-Identifier: Apache-2.0 */
/* The activation that another operator applies to its result: an operator of
 * class UNARY with its attributes. May be used from any thread. */
#ifndef TANDEM_COMMON_OP_ACTIVATION_H
#define TANDEM_COMMON_OP_ACTIVATION_H

#include "common/operator_table.h"

struct activation {
    uint32_t op; /* enum tandem_op_id; TANDEM_OP_INVALID: none */
    /* The attributes in the order of the operator table. */
    double parameters[2];
};

/* Checks operator and attributes. `name` is the operator that applies the
 * activation. */
enum tandem_status activation_check(const char *name,
                                    const struct activation *activation);

/* Sets out[0] and out[1] to the attributes, like unary_attributes(). */
void activation_attributes(float *out, const struct activation *activation);

/* Returns true for gelu with the formula that has tanh. */
static inline bool activation_is_gelu_tanh(const struct activation *activation)
{
    return activation->op == TANDEM_OP_GELU && activation->parameters[0] != 0;
}

#endif
