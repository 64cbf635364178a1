/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the function that plans an operator. */
#include "opencl/plan/plan.h"

#include "common/argument_check.h"
#include "common/last_error.h"
#include "common/operator_table.h"

static const struct plan_class *const classes[TANDEM_CLASS_END] = {
#define PLAN_CLASS_ENTRY(ID, number, name) [number] = &plan_class_##name,
    TANDEM_CLASSES(PLAN_CLASS_ENTRY)
#undef PLAN_CLASS_ENTRY
};

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
        is_overfull = is_overfull ||
                      plan->step[i].buffer_count > MAX_STEP_BUFFERS ||
                      plan->step[i].patch_count > MAX_STEP_PATCHES;
    return is_overfull
               ? last_error_set(TANDEM_FAILED,
                                "a launch plan has more than %u kernels, or a "
                                "kernel with more than %u buffers or %u "
                                "patches",
                                MAX_PLAN_STEPS, MAX_STEP_BUFFERS,
                                MAX_STEP_PATCHES)
               : TANDEM_OK;
}

enum tandem_status launch_plan_make(struct launch_plan *plan,
                                    const struct op_request *request)
{
    const struct operator_info *row = operator_lookup(request->op->id);
    launch_plan_clear(plan);
    if (outputs_are_empty(request))
        return TANDEM_OK;
    if (classes[row->op_class]->plan == NULL)
        return last_error_set(TANDEM_UNSUPPORTED,
                              "%s: the opencl plugin does not support this "
                              "operator; use another device",
                              row->name);
    classes[row->op_class]->plan(plan, request);
    return launch_plan_check(plan);
}
