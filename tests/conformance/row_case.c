/* SPDX-License-Identifier: Apache-2.0 */
/* Operators over rows; see row_case.h. */
#include "row_case.h"
#include "launch_check.h"
#include "inputs.h"

/*
 * axis may be negative, as the operator accepts it. Further inputs have the
 * shape from that axis on.
 */
static void form_run(struct suite *suite, const struct op_row *row,
                     const struct row_form *form, int64_t axis,
                     row_fill_fn *fill)
{
    static const double epsilons[] = {1e-5, 1e-3, 0.5};
    uint32_t first = (uint32_t)(axis < 0 ? axis + form->rank : axis);
    struct call call;

    if (!case_begin(suite, row->name, "%s axis %d", form->name, (int)axis))
        return;
    call_init(&call, row);
    call.ints[0] = axis;
    if (row->floats > 0)
        call.floats[0] = epsilons[random_u64(&suite->random) % 3];
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, form->rank,
                 form->shape, form->in, false);
    fill(&call.inputs[0], &suite->random, form->scale, form->shift);
    for (uint32_t i = 1; i < row->inputs; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32,
                     form->rank - first, form->shape + first, form->rest,
                     false);
        operand_fill_normal(&call.inputs[i], &suite->random, 1, 0);
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, form->rank,
                 form->shape, form->out, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

void row_forms_run(struct suite *suite, const struct op_row *row,
                   const struct row_form *forms, uint32_t count,
                   row_fill_fn *fill)
{
    bool full = suite->options->full || suite->options->filter != NULL;
    bool smoke = suite->options->smoke;
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t axis = 0; axis < forms[i].rank; axis++) {
            bool last = axis + 1u == forms[i].rank;
            bool chosen = random_once_in(&choice, smoke ? 12 : 3);
            bool negative = random_once_in(&choice, 2);
            bool often = random_once_in(&choice, smoke ? 2 : 1);

            if (forms[i].full_only && !suite->options->full)
                continue;
            if (full || (forms[i].always && last && often) || chosen)
                form_run(suite, row, &forms[i],
                         negative ? (int64_t)axis - forms[i].rank
                                  : (int64_t)axis,
                         fill);
        }
}
