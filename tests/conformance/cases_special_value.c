/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions, arg reductions, softmax and norms of rows in which exactly one
 * element is NaN, infinite, -0 or subnormal. The element is the first, the
 * last or between, so that each code path that reads an element is tested
 * separately.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"
#include "row_case.h"

#include <math.h>

/* Rows along the middle axis; for norms, along the last two axes. */
struct single_form {
    int64_t outer, n, inner;
    enum operand_layout layout;
    bool always;
};

static const struct single_form forms[] = {
    {20, 9, 1, D, false},    {20, 131, 1, D, true},   {20, 1021, 1, D, true},
    {20, 4100, 1, D, false}, {3, 20011, 1, D, false}, {1, 70001, 1, D, false},
    {1, 40004, 1, D, true},  {1, 9, 20, D, false},    {1, 300, 20, D, false},
    {2, 4099, 5, D, false},  {4, 67, 5, ANY, true},   {20, 515, 1, ANY, false},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static const float singles[] = {NAN, INFINITY, -INFINITY, -0.0f, 0x1p-140f};
#define SINGLES (sizeof(singles) / sizeof(singles[0]))

static void ordinary_fill(struct operand *operand, struct random *random,
                          uint32_t op, int64_t n)
{
    if (op != TANDEM_OP_PROD) {
        operand_fill_normal(operand, random, 1, 0);
        return;
    }
    for (int64_t i = 0; i < operand->elements; i++)
        operand_set(operand, i,
                    bits_from_float((float)input_factor(random, n)));
}

/*
 * Sets one element of each row of n elements to a special value. step is the
 * stride of an element in its row.
 */
static void singles_set(struct operand *operand, struct random *random,
                        int64_t n, int64_t step, uint32_t first)
{
    int64_t rows = operand->elements / n;

    for (int64_t row = 0; row < rows; row++) {
        int64_t begin = row / step * n * step + row % step;
        int64_t turn = row + first;
        int64_t at = turn / (int64_t)SINGLES % 3 == 0 ? 0
                     : turn / (int64_t)SINGLES % 3 == 1
                         ? n - 1
                         : random_between(random, 0, n - 1);

        operand_set(operand, begin + at * step,
                    bits_from_float(singles[turn % (int64_t)SINGLES]));
    }
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct single_form *form, uint32_t first)
{
    const int64_t in[3] = {form->outer, form->n, form->inner};
    const int64_t kept[2] = {form->outer, form->inner};
    bool norm = row->op_class == TANDEM_CLASS_NORM;
    bool all = norm || row->op_class == TANDEM_CLASS_SOFTMAX;
    int64_t n = norm ? form->n * form->inner : form->n;
    struct call call;

    if (!case_begin(suite, row->name, "one alone, from %u on [%d,%d,%d]", first,
                    (int)in[0], (int)in[1], (int)in[2]))
        return;
    call_init(&call, row);
    call.ints[0] = all ? 1 : 2; /* An axis, or a mask of axes. */
    if (row->floats > 0)
        call.floats[0] = 1e-5;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 3, in,
                 form->layout, false);
    ordinary_fill(&call.inputs[0], &suite->random, row->id, n);
    singles_set(&call.inputs[0], &suite->random, n, norm ? 1 : form->inner,
                first);
    for (uint32_t i = 1; i < row->inputs; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 2, in + 1,
                     form->layout, false);
        operand_fill_normal(&call.inputs[i], &suite->random, 1, 0);
    }
    operand_init(&call.outputs[0], &suite->random, call_out_dtype(row),
                 all ? 3 : 2, all ? in : kept, form->layout, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/*
 * If there are few rows, the case is repeated for each special value and
 * position.
 */
static void forms_run(struct suite *suite, const struct op_row *row)
{
    const struct suite_options *options = suite->options;
    struct random choice;

    random_seed(&choice, options->seed, row->name);
    for (uint32_t i = 0; i < FORMS; i++) {
        const struct single_form *form = &forms[i];
        bool chosen = random_once_in(&choice, options->smoke ? 12 : 4);
        int64_t rows = form->outer * form->inner;

        if (!options->full && options->filter == NULL && !chosen &&
            !form->always)
            continue;
        if (options->smoke && rows * form->n > 3000)
            continue;
        for (int64_t first = 0; first < 3 * (int64_t)SINGLES; first += rows)
            form_run(suite, row, form, (uint32_t)first);
    }
}

void cases_single(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        switch (row->op_class) {
        case TANDEM_CLASS_REDUCE:
        case TANDEM_CLASS_ARG_REDUCE:
        case TANDEM_CLASS_SOFTMAX:
        case TANDEM_CLASS_NORM:
            forms_run(suite, row);
            break;
        default:
            break;
        }
    }
}
