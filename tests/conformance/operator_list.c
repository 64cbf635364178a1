/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the operator table of operators.h; see operator_list.h. */
#include "operator_list.h"

#include <string.h>

#define ROW(ID, number, row_name, cls, ins, outs, int_names, int_total,        \
            float_names, float_total, cost, row_metric, bound, needed,         \
            formula)                                                           \
    {.id = number,                                                             \
     .op_class = TANDEM_CLASS_##cls,                                           \
     .metric = TANDEM_METRIC_##row_metric,                                     \
     .inputs = ins,                                                            \
     .outputs = outs,                                                          \
     .ints = int_total,                                                        \
     .floats = float_total,                                                    \
     .required = needed,                                                       \
     .tolerance = bound,                                                       \
     .name = row_name},

const struct op_row op_table[] = {TANDEM_OPERATORS(ROW)};
const uint32_t op_table_count = sizeof(op_table) / sizeof(op_table[0]);

const struct op_row *op_find(uint32_t id)
{
    for (uint32_t i = 0; i < op_table_count; i++)
        if (op_table[i].id == id)
            return &op_table[i];
    return NULL;
}

const struct op_row *op_find_name(const char *name)
{
    for (uint32_t i = 0; i < op_table_count; i++)
        if (strcmp(op_table[i].name, name) == 0)
            return &op_table[i];
    return NULL;
}
