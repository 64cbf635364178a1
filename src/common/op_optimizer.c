/* SPDX-License-Identifier: Apache-2.0 */
/* The class OPTIMIZER; see op_class.h. */
#include "common/last_error.h"
#include "common/op_call.h"

#include <string.h>

static enum tandem_status optimizer_check(const struct op_call *call)
{
    bool adam = call->info->id == TANDEM_OP_ADAM;
    if (adam && call->op->ints[0] < 1)
        return argument_error("adam: step is %lld; expected at least 1",
                              (long long)call->op->ints[0]);
    return adam ? check_switch(call, 1, "decoupled_weight_decay")
                : check_switch(call, 0, "nesterov");
}

/* The inputs are w, g, m and v; the outputs are w, m and v, each of which
 * overwrites the input of its name. */
static const char *optimizer_example(const struct operator_info *info,
                                     uint32_t rank, const int64_t *shape,
                                     struct op_example *out)
{
    static const double sgd[] = {0.01, 0.9, 0, 0};
    static const double adam[] = {0.001, 0.9, 0.999, 1e-8, 0};
    if (info->id == TANDEM_OP_ADAM) {
        memcpy(out->floats, adam, sizeof adam);
        out->ints[0] = 1;
    } else {
        memcpy(out->floats, sgd, sizeof sgd);
    }
    for (uint32_t i = 0; i < info->outputs; i++)
        out->alias[i] = i == 0 ? 0 : (int)i + 1;
    (void)rank, (void)shape;
    return NULL;
}

const struct op_class op_class_optimizer = {.input_dtypes = "f",
                                            .output_dtypes = "f",
                                            .in_place = IN_PLACE_ANY_INPUT,
                                            .floats_change = true,
                                            .check = optimizer_check,
                                            .equal_shapes = true,
                                            .example = optimizer_example};
