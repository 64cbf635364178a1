/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the function that plans an operator. */
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

enum tandem_status launch_plan_check(const struct launch_plan *plan)
{
    bool is_overfull = plan->is_overfull;
    for (uint32_t i = 0; i < plan->step_count; i++)
        is_overfull =
            is_overfull || plan->step[i].buffer_count > MAX_STEP_BUFFERS;
    return is_overfull
               ? last_error_set(TANDEM_FAILED,
                                "a launch plan has more than %u kernels, or a "
                                "kernel with more than %u buffers",
                                MAX_PLAN_STEPS, MAX_STEP_BUFFERS)
               : TANDEM_OK;
}

enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request)
{
    static plan_fn *const planners[] = {
        [TANDEM_CLASS_UNARY] = plan_elementwise,
        [TANDEM_CLASS_BINARY] = plan_elementwise,
        [TANDEM_CLASS_COMPARE] = plan_elementwise,
        [TANDEM_CLASS_LOGICAL] = plan_elementwise,
        [TANDEM_CLASS_TERNARY] = plan_elementwise,
        [TANDEM_CLASS_GRADIENT] = plan_elementwise,
        [TANDEM_CLASS_OPTIMIZER] = plan_optimizer,
        [TANDEM_CLASS_CAST] = plan_elementwise,
        [TANDEM_CLASS_COPY] = plan_copy,
        [TANDEM_CLASS_TRANSPOSE] = plan_copy,
        [TANDEM_CLASS_REDUCE] = plan_reduce,
        [TANDEM_CLASS_ARG_REDUCE] = plan_reduce,
        [TANDEM_CLASS_DOT] = plan_reduce,
        [TANDEM_CLASS_SOFTMAX] = plan_softmax,
        [TANDEM_CLASS_CROSS_ENTROPY] = plan_softmax,
        [TANDEM_CLASS_GATHER] = plan_gather,
        [TANDEM_CLASS_NORM] = plan_norm};
    const struct operator_info *row = operator_lookup(request->op->id);
    launch_plan_clear(plan);
    if (outputs_are_empty(request))
        return TANDEM_OK;
    if (planners[row->op_class] == NULL)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: the opencl plugin does not support this "
                              "operator; use another device",
                              row->name);
    planners[row->op_class](plan, request);
    return launch_plan_check(plan);
}
