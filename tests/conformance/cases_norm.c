/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm and rms_norm over the last axes: short and long rows, strides,
 * large means, constant rows, special values.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"
#include "row_case.h"

#include <math.h>

static const struct row_form forms[] = {
    {"[1]", true, false, 1, {1}, D, D, D, 1, 0},
    {"[7]", false, false, 1, {7}, D, D, D, 2, 0},
    {"[1021]", true, false, 1, {1021}, D, D, D, 3, 0},
    {"[40004]", false, false, 1, {40004}, D, D, D, 3, 1},
    {"[33333]", true, false, 1, {33333}, D, D, D, 3, 1},
    {"[128,10]", true, false, 2, {128, 10}, D, D, D, 4, 0},
    {"[64,768]", true, false, 2, {64, 768}, D, D, D, 1, 0},
    {"[6,1001]", false, false, 2, {6, 1001}, D, D, D, 3, 0},
    {"[3001,3]", false, false, 2, {3001, 3}, D, D, D, 2, 0},
    {"[5,1]", false, false, 2, {5, 1}, D, D, D, 2, 0},
    {"[1,5]", false, false, 2, {1, 5}, D, D, D, 2, 0},
    {"far [11,132]", true, false, 2, {11, 132}, D, D, D, 1, 1000},
    {"one value [4,65]", true, false, 2, {4, 65}, LAYOUT_ZERO, D, D, 1, 3},
    {"specials [64,7]", true, false, 2, {64, 7}, D, D, D, 0, 0},
    {"specials [3,400]", false, false, 2, {3, 400}, D, D, D, 0, 0},
    {"[4,9,13]", true, false, 3, {4, 9, 13}, D, D, D, 3, 0},
    {"[3,4,5,8]", false, false, 4, {3, 4, 5, 8}, D, D, D, 3, 0},
    {"offset [7,32]",
     false,
     false,
     2,
     {7, 32},
     LAYOUT_OFFSET,
     LAYOUT_OFFSET,
     LAYOUT_OFFSET,
     3,
     0},
    {"padded [9,23]",
     false,
     false,
     2,
     {9, 23},
     LAYOUT_PADDED,
     D,
     LAYOUT_PADDED,
     3,
     0},
    {"transposed [19,21]",
     true,
     false,
     2,
     {19, 21},
     LAYOUT_REVERSED,
     D,
     D,
     3,
     0},
    {"any [5,6,7]", true, false, 3, {5, 6, 7}, ANY, ANY, ANY, 3, 0},
    {"any [2,3,4,2,3]", true, false, 5, {2, 3, 4, 2, 3}, ANY, ANY, ANY, 3, 0},
    {"empty [0,4]", true, false, 2, {0, 4}, D, D, D, 1, 0},
    {"empty [4,0]", true, false, 2, {4, 0}, D, D, D, 1, 0},
    {"long [3,300008]", false, true, 2, {3, 300008}, D, D, D, 3, 0},
    {"many [100003,7]", false, true, 2, {100003, 7}, D, D, D, 3, 0},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

/* All squares are in the range of f32. */
static void values_fill(struct operand *operand, struct random *random,
                        double scale, double shift)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};

    operand_fill_normal(operand, random, scale != 0.0 ? scale : 1.0, shift);
    for (int64_t i = 0; scale == 0.0 && i < operand->elements; i++)
        if (random_once_in(random, 24))
            operand_set(operand, i,
                        bits_from_float(specials[random_u64(random) % 5]));
}

/* ---- values of epsilon that f32 cannot represent ---- */

/* Rows of zeros, of one value, of size and -size, and of ordinary values. */
static void rows_fill(struct operand *operand, struct random *random,
                      int64_t count, float size)
{
    operand_fill_normal(operand, random, 1.0, 0.0);
    for (int64_t i = 0; i < operand->elements; i++) {
        const float values[] = {0.0f, 3.0f, size, i % 2 ? size : -size};

        if (i / count < 4)
            operand_set(operand, i, bits_from_float(values[i / count]));
    }
}

static void epsilon_run(struct suite *suite, const struct op_row *row,
                        double epsilon, int64_t count,
                        enum operand_layout layout)
{
    const int64_t shape[2] = {5, count};
    struct call call;

    if (!case_begin(suite, row->name, "epsilon %g [5,%d]%s", epsilon,
                    (int)count, layout == D ? "" : " any"))
        return;
    call_init(&call, row);
    call.ints[0] = 1;
    call.floats[0] = epsilon;
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 2, shape, layout,
                 true);
    rows_fill(&call.inputs[0], &suite->random, count,
              epsilon > 1.0 ? 1e18f : 1e-30f);
    for (uint32_t i = 1; i < row->inputs; i++) {
        operand_init(&call.inputs[i], &suite->random, TANDEM_F32, 1, &count,
                     layout, false);
        operand_fill_normal(&call.inputs[i], &suite->random, 1, 0);
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, 2, shape, layout,
                 true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

static void epsilons_run(struct suite *suite, const struct op_row *row)
{
    static const double epsilons[] = {1e-46, 5e-324, 1e-40, 1e300};
    static const int64_t counts[] = {7, 768, 1021, 33333, 40004};
    bool smoke = suite->options->smoke;

    for (uint32_t i = 0; i < sizeof(epsilons) / sizeof(epsilons[0]); i++)
        for (uint32_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            if (!smoke || i == 0 || (i == 3 && k == 0))
                epsilon_run(suite, row, epsilons[i], counts[k], D);
    epsilon_run(suite, row, 1e-46, 35, ANY);
}

void cases_norm(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (row->op_class != TANDEM_CLASS_NORM ||
            !group_selected(suite, row->name))
            continue;
        row_forms_run(suite, row, forms, FORM_COUNT, values_fill);
        epsilons_run(suite, row);
    }
}
