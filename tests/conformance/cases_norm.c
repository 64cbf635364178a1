/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm and rms_norm over the last axes: short and long rows, strides,
 * large means, rows without spread, special values.
 */
#include "inputs.h"
#include "number.h"
#include "row_form.h"

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
    {"offset [7,32]", false, false, 2, {7, 32}, LAYOUT_OFFSET, LAYOUT_OFFSET,
     LAYOUT_OFFSET, 3, 0},
    {"padded [9,23]", false, false, 2, {9, 23}, LAYOUT_PADDED, D,
     LAYOUT_PADDED, 3, 0},
    {"transposed [19,21]", true, false, 2, {19, 21}, LAYOUT_REVERSED, D, D, 3,
     0},
    {"any [5,6,7]", true, false, 3, {5, 6, 7}, ANY, ANY, ANY, 3, 0},
    {"any [2,3,4,2,3]", true, false, 5, {2, 3, 4, 2, 3}, ANY, ANY, ANY, 3, 0},
    {"empty [0,4]", true, false, 2, {0, 4}, D, D, D, 1, 0},
    {"empty [4,0]", true, false, 2, {4, 0}, D, D, D, 1, 0},
    {"long [3,300008]", false, true, 2, {3, 300008}, D, D, D, 3, 0},
    {"many [100003,7]", false, true, 2, {100003, 7}, D, D, D, 3, 0},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

/* Squares of all stay within f32. */
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

void cases_norm(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (row->op_class == TANDEM_CLASS_NORM &&
            group_selected(suite, row->name))
            row_forms_run(suite, row, forms, FORM_COUNT, values_fill);
    }
}
