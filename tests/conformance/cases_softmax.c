/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and log_softmax over each axis, softmax with cross-entropy and its
 * gradient.
 */
#include "launch_check.h"
#include "inputs.h"
#include "element_value.h"
#include "row_case.h"

static const struct row_form forms[] = {
    {"[1]", false, false, 1, {1}, D, D, D, 1, 0},
    {"[2]", false, false, 1, {2}, D, D, D, 5, 0},
    {"[1021]", true, false, 1, {1021}, D, D, D, 3, 0},
    {"[70001]", false, false, 1, {70001}, D, D, D, 3, 0},
    {"[3,40004]", false, false, 2, {3, 40004}, D, D, D, 3, 0},
    {"[20,300]", false, false, 2, {20, 300}, D, D, D, 3, 0},
    {"[4,3858]", false, false, 2, {4, 3858}, D, D, D, 3, 0},
    {"[7,3000]", false, false, 2, {7, 3000}, D, D, D, 3, 0},
    {"[128,10]", true, false, 2, {128, 10}, D, D, D, 4, 0},
    {"[300,20]", false, false, 2, {300, 20}, D, D, D, 3, 0},
    {"[3001,3]", false, false, 2, {3001, 3}, D, D, D, 2, 0},
    {"[5,1]", false, false, 2, {5, 1}, D, D, D, 2, 0},
    {"[1,5]", false, false, 2, {1, 5}, D, D, D, 2, 0},
    {"wide [17,65]", true, false, 2, {17, 65}, D, D, D, 60, 0},
    {"huge [9,40]", true, false, 2, {9, 40}, D, D, D, 1e38, 0},
    {"far [11,33]", false, false, 2, {11, 33}, D, D, D, 1, 1e4},
    {"specials [64,7]", true, false, 2, {64, 7}, D, D, D, 0, 0},
    {"specials [600,8]", false, false, 2, {600, 8}, D, D, D, 0, 0},
    {"specials [3,400]", false, false, 2, {3, 400}, D, D, D, 0, 0},
    {"[4,9,13]", false, false, 3, {4, 9, 13}, D, D, D, 3, 0},
    {"[3,4,5,6]", false, false, 4, {3, 4, 5, 6}, D, D, D, 3, 0},
    {"offset [7,31]",
     false,
     false,
     2,
     {7, 31},
     LAYOUT_OFFSET,
     D,
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
     false,
     false,
     2,
     {19, 21},
     LAYOUT_REVERSED,
     D,
     D,
     3,
     0},
    {"any [5,6,7]", true, false, 3, {5, 6, 7}, ANY, D, ANY, 3, 0},
    {"any [2,3,4,2,3]", false, false, 5, {2, 3, 4, 2, 3}, ANY, D, ANY, 3, 0},
    {"rank 8", false, false, 8, {2, 1, 3, 2, 2, 1, 2, 2}, ANY, D, ANY, 3, 0},
    {"zero [8,9]", false, false, 2, {8, 9}, LAYOUT_ZERO, D, D, 3, 0},
    {"empty [0,4]", false, false, 2, {0, 4}, D, D, D, 1, 0},
    {"empty [4,0]", false, false, 2, {4, 0}, D, D, D, 1, 0},
    {"long [3,300007]", false, true, 2, {3, 300007}, D, D, D, 3, 0},
    {"many [100003,7]", false, true, 2, {100003, 7}, D, D, D, 3, 0},
};
#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

static void specials_fill(struct operand *operand, struct random *random)
{
    for (int64_t i = 0; i < operand->elements; i++) {
        float x = (float)random_normal(random);

        if (random_once_in(random, 24))
            x = input_special((uint32_t)random_u64(random));
        operand_set(operand, i, bits_from_float(x));
    }
}

static void values_fill(struct operand *operand, struct random *random,
                        double scale, double shift)
{
    if (scale == 0.0) {
        specials_fill(operand, random);
    } else if (scale > 1e30) { /* Up to the limits of f32, never infinite. */
        for (int64_t i = 0; i < operand->elements; i++)
            operand_set(operand, i,
                        bits_from_float(
                            (float)random_uniform(random, -3.4e38, 3.4e38)));
    } else {
        operand_fill_normal(operand, random, scale, shift);
    }
}

struct loss_form {
    int64_t rows, classes;
    bool strided;
    double scale;
};

static void loss_run(struct suite *suite, const struct op_row *row,
                     const struct loss_form *form, uint32_t label_dtype)
{
    int64_t shape[2] = {form->rows, form->classes};
    enum operand_layout layout = form->strided ? ANY : D;
    bool gradient = row->id == TANDEM_OP_CROSS_ENTROPY_GRAD;
    struct call call;

    if (!case_begin(suite, row->name, "[%d,%d] %s labels%s%s", (int)shape[0],
                    (int)shape[1], dtype_text(label_dtype),
                    form->strided ? ", strided" : "",
                    form->scale > 1e30 ? ", huge" : ""))
        return;
    call_init(&call, row);
    call.floats[0] = random_uniform(&suite->random, -0.01, 0.1);
    operand_init(&call.inputs[0], &suite->random, TANDEM_F32, 2, shape, layout,
                 false);
    values_fill(&call.inputs[0], &suite->random, form->scale, 0.0);
    operand_init(&call.inputs[1], &suite->random, label_dtype, 1, shape, layout,
                 false);
    for (int64_t i = 0; i < shape[0]; i++) {
        int64_t label =
            shape[1] != 0 ? random_between(&suite->random, 0, shape[1] - 1) : 0;

        /* Out of range: the row becomes NaN. */
        if (random_once_in(&suite->random, 12))
            label = random_once_in(&suite->random, 2) ? shape[1] : -1;
        operand_set(&call.inputs[1], i, bits_from_integer(label_dtype, label));
    }
    operand_init(&call.outputs[0], &suite->random, TANDEM_F32, gradient ? 2 : 1,
                 shape, layout, true);
    call_run(suite, &call);
    call_finish(&call);
    case_end(suite);
}

/* A smoke run tests each operator with one dtype of labels. */
static void losses_run(struct suite *suite, const struct op_row *row)
{
    bool smoke = suite->options->smoke;
    static const struct loss_form loss_forms[] = {
        {128, 10, false, 4},   {1, 1, false, 2},     {7, 1, false, 2},
        {1, 1021, false, 3},   {2003, 3, false, 2},  {17, 65, true, 3},
        {0, 10, false, 1},     {33, 100, false, 50}, {64, 1000, false, 3},
        {13, 40, false, 1e38}, {9, 0, false, 1}};

    for (uint32_t i = 0; i < sizeof(loss_forms) / sizeof(loss_forms[0]); i++) {
        if (!smoke || i % 2 == 0)
            loss_run(suite, row, &loss_forms[i], TANDEM_I32);
        if (!smoke || i % 2 != 0)
            loss_run(suite, row, &loss_forms[i], TANDEM_I64);
    }
}

void cases_softmax(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        if (row->op_class == TANDEM_CLASS_SOFTMAX)
            row_forms_run(suite, row, forms, FORM_COUNT, values_fill);
        else if (row->op_class == TANDEM_CLASS_CROSS_ENTROPY)
            losses_run(suite, row);
    }
}
