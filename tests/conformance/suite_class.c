/* SPDX-License-Identifier: Apache-2.0 */
/* The operator classes; see suite_class.h. */
#include "suite_class.h"

#define MAX_SMOKE_ACTIVATIONS 2u

#define DECLARE(ID, number, name) extern const struct suite_class suite_##name;
TANDEM_CLASSES(DECLARE)

#define ROW(ID, number, name) [number] = &suite_##name,
static const struct suite_class *const classes[TANDEM_CLASS_END] = {
    TANDEM_CLASSES(ROW)};

const struct suite_class *class_of(const struct op_row *row)
{
    return classes[row->op_class];
}

uint32_t activations_choose(const struct suite *suite, const struct op_row *row,
                            const struct op_row *out_rows[TANDEM_OP_ID_END])
{
    struct random choice;
    uint32_t count = 0;

    for (uint32_t i = 0; i < op_table_count; i++)
        if (op_table[i].op_class == TANDEM_CLASS_UNARY)
            out_rows[count++] = &op_table[i];
    if (!suite->options->smoke)
        return count;
    random_seed(&choice, suite->options->seed, row->name);
    for (uint32_t i = 0; i < MAX_SMOKE_ACTIVATIONS; i++) {
        const uint32_t chosen = i + (uint32_t)random_below(&choice, count - i);
        const struct op_row *first = out_rows[i];

        out_rows[i] = out_rows[chosen];
        out_rows[chosen] = first;
    }
    return MAX_SMOKE_ACTIVATIONS;
}

void operators_run(struct suite *suite)
{
    for (uint32_t i = 0; i < op_table_count; i++) {
        const struct op_row *row = &op_table[i];

        if (!group_selected(suite, row->name))
            continue;
        drawn_cases_run(suite, row);
        if (class_of(row)->cases != NULL)
            class_of(row)->cases(suite, row);
    }
}

const struct call_mistake *mistake_get(uint32_t number)
{
    if (number < general_mistake_count)
        return &general_mistakes[number];
    number -= general_mistake_count;
    for (uint32_t i = 0; i < TANDEM_CLASS_END; i++) {
        if (classes[i] == NULL)
            continue;
        if (number < classes[i]->mistake_count)
            return &classes[i]->mistakes[number];
        number -= classes[i]->mistake_count;
    }
    return NULL;
}
