/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the planning function for an operator. */
#include "opencl/plan/plan.h"

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"

static bool outputs_are_empty(const struct op_request *request)
{
    for (uint32_t i = 0; i < request->output_count; i++)
        if (shape_elements(request->outputs[i]->rank,
                           request->outputs[i]->shape) != 0)
            return false;
    return true;
}

enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request)
{
    const struct operator_info *row = operator_lookup(request->op->id);
    plan->step_count = 0;
    plan->temp_bytes = 0;
    if (outputs_are_empty(request))
        return TANDEM_OK;
    switch (row->op_class) {
    case TANDEM_CLASS_UNARY:
    case TANDEM_CLASS_BINARY:
    case TANDEM_CLASS_COMPARE:
    case TANDEM_CLASS_LOGICAL:
    case TANDEM_CLASS_TERNARY:
    case TANDEM_CLASS_GRADIENT:
    case TANDEM_CLASS_CAST:
        plan_elementwise(plan, request);
        break;
    case TANDEM_CLASS_OPTIMIZER:
        plan_optimizer(plan, request);
        break;
    case TANDEM_CLASS_COPY:
    case TANDEM_CLASS_TRANSPOSE:
        plan_copy(plan, request);
        break;
    case TANDEM_CLASS_GATHER:
        plan_gather(plan, request);
        break;
    case TANDEM_CLASS_REDUCE:
    case TANDEM_CLASS_ARG_REDUCE:
    case TANDEM_CLASS_DOT:
        plan_reduce(plan, request);
        break;
    case TANDEM_CLASS_SOFTMAX:
    case TANDEM_CLASS_CROSS_ENTROPY:
        plan_softmax(plan, request);
        break;
    case TANDEM_CLASS_NORM:
        plan_norm(plan, request);
        break;
    default:
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: the opencl plugin does not support this "
                              "operator; use another device",
                              row->name);
    }
    return TANDEM_OK;
}
