/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions, arg reductions and dot: each mask of axes for ranks up to 4,
 * with axes kept and dropped, long rows and many short ones, strides, special
 * values.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum values {
    VALUES_NORMAL,
    VALUES_TIES,    /* Few different values. */
    VALUES_OFFSET,  /* A large mean and a small spread. */
    VALUES_SPECIAL, /* Some NaN, some infinite, zeros of both signs. */
    /* All negative, so that a wrong initial value of 0 is detected. */
    VALUES_NEGATIVE
};

struct reduce_form {
    const char *name;
    bool always, full_only;
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t axes;
    enum operand_layout in, out;
    enum values values;
};

#define D LAYOUT_DENSE

static const struct reduce_form forms[] = {
    {"rank 0", true, false, 0, {0}, 0, D, D, VALUES_NORMAL},
    {"all of [1]", false, false, 1, {1}, 1, D, D, VALUES_NORMAL},
    {"all of [7]", false, false, 1, {7}, 1, D, D, VALUES_NEGATIVE},
    {"all of [1021]", true, false, 1, {1021}, 1, D, D, VALUES_NEGATIVE},
    {"all of [70001]", true, false, 1, {70001}, 1, D, D, VALUES_NORMAL},
    {"all of [300007] off", false, false, 1, {300007}, 1, D, D, VALUES_OFFSET},
    {"all of [1048583]", false, true, 1, {1048583}, 1, D, D, VALUES_NORMAL},
    {"all of [5000011]", false, true, 1, {5000011}, 1, D, D, VALUES_OFFSET},
    {"all of [1031,1021]",
     false,
     true,
     2,
     {1031, 1021},
     3,
     D,
     D,
     VALUES_NORMAL},
    {"rows [3,40009]", false, false, 2, {3, 40009}, 2, D, D, VALUES_NORMAL},
    {"rows [1031,1021]", false, true, 2, {1031, 1021}, 2, D, D, VALUES_NORMAL},
    {"columns [1031,1021]",
     false,
     true,
     2,
     {1031, 1021},
     1,
     D,
     D,
     VALUES_NORMAL},
    {"rows [20011,3]", true, false, 2, {20011, 3}, 2, D, D, VALUES_TIES},
    {"rows [37,2052]", false, false, 2, {37, 2052}, 2, D, D, VALUES_TIES},
    {"specials [9,3000]", false, false, 2, {9, 3000}, 2, D, D, VALUES_SPECIAL},
    {"rows [64,128]", false, false, 2, {64, 128}, 2, D, D, VALUES_NEGATIVE},
    {"columns [128,10]", true, false, 2, {128, 10}, 1, D, D, VALUES_NORMAL},
    {"columns [9001,5]", false, false, 2, {9001, 5}, 1, D, D, VALUES_NEGATIVE},
    {"columns [9001,21]", true, false, 2, {9001, 21}, 1, D, D, VALUES_NORMAL},
    {"columns [4500,39]", true, false, 2, {4500, 39}, 1, D, D, VALUES_TIES},
    {"columns [70,1035]", true, false, 2, {70, 1035}, 1, D, D, VALUES_SPECIAL},
    {"columns [7,2003]", false, false, 2, {7, 2003}, 1, D, D, VALUES_TIES},
    {"ties [40,33]", true, false, 2, {40, 33}, 2, D, D, VALUES_TIES},
    {"specials [200,9]", true, false, 2, {200, 9}, 2, D, D, VALUES_SPECIAL},
    {"specials [9,200] columns",
     false,
     false,
     2,
     {9, 200},
     1,
     D,
     D,
     VALUES_SPECIAL},
    {"specials [5,700]", true, false, 2, {5, 700}, 2, D, D, VALUES_SPECIAL},
    {"offset [999]",
     false,
     false,
     1,
     {999},
     1,
     LAYOUT_OFFSET,
     LAYOUT_OFFSET,
     VALUES_NORMAL},
    {"transposed [33,65] rows",
     true,
     false,
     2,
     {33, 65},
     2,
     LAYOUT_REVERSED,
     D,
     VALUES_NORMAL},
    {"transposed [33,65] columns",
     false,
     false,
     2,
     {33, 65},
     1,
     LAYOUT_REVERSED,
     D,
     VALUES_NORMAL},
    {"negative [12,34]",
     false,
     false,
     2,
     {12, 34},
     2,
     LAYOUT_NEGATIVE,
     LAYOUT_NEGATIVE,
     VALUES_TIES},
    {"zero [12,34]",
     false,
     false,
     2,
     {12, 34},
     1,
     LAYOUT_ZERO,
     D,
     VALUES_NORMAL},
    {"any [6,7,8,9] 1010",
     true,
     false,
     4,
     {6, 7, 8, 9},
     10,
     LAYOUT_RANDOM,
     LAYOUT_RANDOM,
     VALUES_NORMAL},
    {"any [6,7,8,9] 0101",
     false,
     false,
     4,
     {6, 7, 8, 9},
     5,
     LAYOUT_RANDOM,
     LAYOUT_RANDOM,
     VALUES_NORMAL},
    {"rank 8",
     false,
     false,
     8,
     {2, 3, 2, 1, 3, 2, 2, 2},
     0xa5,
     LAYOUT_RANDOM,
     LAYOUT_RANDOM,
     VALUES_NORMAL},
    {"rank 8 all",
     false,
     false,
     8,
     {2, 3, 2, 1, 3, 2, 2, 2},
     0xff,
     LAYOUT_RANDOM,
     LAYOUT_RANDOM,
     VALUES_NORMAL},
    {"empty result [0,5]", false, false, 2, {0, 5}, 2, D, D, VALUES_NORMAL},
    {"of none [5,0]", true, false, 2, {5, 0}, 2, D, D, VALUES_NORMAL},
    {"of none [0]", false, false, 1, {0}, 1, D, D, VALUES_NORMAL},
    {"of none and empty [0,0]",
     false,
     false,
     2,
     {0, 0},
     2,
     D,
     D,
     VALUES_NORMAL},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

static double usual_value(struct random *random, uint32_t op,
                          enum values values)
{
    switch (values) {
    case VALUES_TIES:
        return (double)random_between(random, -2, 2);
    case VALUES_OFFSET:
        return 1000.0 + random_normal(random);
    case VALUES_NEGATIVE:
        return -0.5 - random_uniform(random, 0.0, 3.0);
    default:
        return random_normal(random) * (op == TANDEM_OP_LOG_SUM_EXP ? 20 : 1);
    }
}

static double factor_value(struct random *random, enum values values, int64_t n)
{
    double factor = input_factor(random, n);

    return values == VALUES_NEGATIVE ? -fabs(factor) : factor;
}

static double special_value(struct random *random, uint32_t op, double usual)
{
    static const double specials[] = {0.0, -0.0, (double)INFINITY,
                                      (double)-INFINITY, (double)NAN};
    uint64_t kind = random_below(random, 60);

    if (kind < 5)
        return specials[kind];
    /* Whole rows of one infinity. values_fill sets the other elements. */
    if (kind == 5 && op != TANDEM_OP_PROD)
        return 0x1p-140; /* Subnormal. */
    return usual;
}

static void values_fill(struct operand *operand, struct random *random,
                        uint32_t op, enum values values, int64_t row)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        double x = op == TANDEM_OP_PROD ? factor_value(random, values, row)
                                        : usual_value(random, op, values);

        if (values == VALUES_SPECIAL)
            x = special_value(random, op, x);
        operand_set(operand, i, bits_from_float((float)x));
    }
    /* The first row is all +inf, the second all -inf. */
    for (int64_t i = 0;
         values == VALUES_SPECIAL && i < 2 * row && i < operand->elements; i++)
        operand_set(operand, i, i < row ? 0x7f800000u : 0xff800000u);
}

static uint32_t reduced_shape(const struct reduce_form *form, bool keep,
                              int64_t *shape, int64_t *out_row)
{
    uint32_t rank = 0;

    *out_row = 1;
    for (uint32_t i = 0; i < form->rank; i++) {
        bool reduced = (form->axes & (1 << i)) != 0;

        if (reduced)
            *out_row *= form->shape[i];
        if (!reduced || keep)
            shape[rank++] = reduced ? 1 : form->shape[i];
    }
    return rank;
}

static bool one_or_all_axes(const struct reduce_form *form)
{
    int64_t all = (1 << form->rank) - 1;

    return form->axes == all || (form->axes & (form->axes - 1)) == 0;
}

/*
 * max, min, argmax and argmin of an empty row are errors, which other cases
 * test.
 */
static bool empty_allowed(const struct op_row *row)
{
    return row->op_class == TANDEM_CLASS_REDUCE &&
           row->id != TANDEM_OP_REDUCE_MAX && row->id != TANDEM_OP_REDUCE_MIN;
}

static void form_run(struct suite *suite, const struct op_row *row,
                     const struct reduce_form *form, bool keep)
{
    int64_t shape[TANDEM_MAX_RANK], length;
    uint32_t rank = reduced_shape(form, keep, shape, &length);
    struct call call;

    if (row->op_class == TANDEM_CLASS_ARG_REDUCE && !one_or_all_axes(form))
        return;
    if (length == 0 && !empty_allowed(row))
        return;
    if (!case_begin(suite, row->name, "%s%s", form->name, keep ? ", kept" : ""))
        return;
    call_init(&call, row);
    call.ints[0] = form->axes;
    call.ints[1] = keep;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, form->rank,
                 form->shape, form->in, false);
    values_fill(&call.inputs[0], &suite->random, row->id, form->values, length);
    operand_init(&call.outputs[0], &suite->random, call_out_dtype(row), rank,
                 shape, form->out, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void masks_run(struct suite *suite, const struct op_row *row,
                      struct random *choice)
{
    static const int64_t shapes[4][4] = {
        {23}, {9, 13}, {5, 8, 7}, {4, 3, 6, 5}};
    char name[40];

    for (uint32_t rank = 1; rank <= 4; rank++)
        for (int64_t axes = 1; axes < 1 << rank; axes++)
            for (int keep = 0; keep < 2; keep++) {
                struct reduce_form form = {.rank = rank, .axes = axes};

                if (!random_once_in(choice, 5) && !suite->options->full &&
                    suite->options->filter == NULL)
                    continue;
                memcpy(form.shape, shapes[rank - 1], sizeof(shapes[rank - 1]));
                snprintf(name, sizeof(name), "rank %u axes %#x", rank,
                         (unsigned)axes);
                form.name = name;
                form_run(suite, row, &form, keep);
            }
}

static void operator_run(struct suite *suite, const struct op_row *row)
{
    bool full = suite->options->full;
    struct random choice;

    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < FORM_COUNT; i++) {
        bool keep = random_once_in(&choice, 2);
        bool chosen = random_once_in(&choice, 3);

        if (forms[i].full_only && !full)
            continue;
        if (full || forms[i].always || chosen || suite->options->filter != NULL)
            form_run(suite, row, &forms[i], keep);
    }
    masks_run(suite, row, &choice);
}

static void dot_run(struct suite *suite, const struct op_row *row, int64_t n,
                    enum operand_layout layout, enum values values)
{
    struct call call;

    if (!case_begin(suite, row->name, "[%lld] layout %d values %d",
                    (long long)n, (int)layout, (int)values))
        return;
    call_init(&call, row);
    for (uint32_t i = 0; i < 2; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 1, &n, layout,
                     false);
        values_fill(&call.inputs[i], &suite->random, row->id, values,
                    values == VALUES_SPECIAL ? 0 : n);
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 0, NULL, layout,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void dots_run(struct suite *suite, const struct op_row *row)
{
    static const int64_t lengths[] = {0,    1,    2,     17,   64,
                                      1021, 4096, 70001, 16384};

    for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        dot_run(suite, row, lengths[i], D, VALUES_NORMAL);
    dot_run(suite, row, 1021, D, VALUES_SPECIAL);
    dot_run(suite, row, 777, LAYOUT_OFFSET, VALUES_NORMAL);
    dot_run(suite, row, 555, LAYOUT_STEP, VALUES_NORMAL);
    dot_run(suite, row, 333, LAYOUT_NEGATIVE, VALUES_NORMAL);
    dot_run(suite, row, 222, LAYOUT_ZERO, VALUES_NORMAL);
    if (suite->options->full)
        dot_run(suite, row, 3000017, D, VALUES_OFFSET);
}

void cases_reduce(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        if (row->op_class == TANDEM_CLASS_REDUCE ||
            row->op_class == TANDEM_CLASS_ARG_REDUCE)
            operator_run(suite, row);
        else if (row->op_class == TANDEM_CLASS_DOT)
            dots_run(suite, row);
    }
}
