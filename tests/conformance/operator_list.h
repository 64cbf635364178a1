/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator table of backend.h as the suite reads it.  Written apart from
 * the project's own reader of the table, as everything here is, so that a
 * mistake there shows.
 */
#ifndef TANDEM_CONFORMANCE_OPERATOR_LIST_H
#define TANDEM_CONFORMANCE_OPERATOR_LIST_H

#include <tandem/backend.h>

struct op_row {
    uint32_t id, op_class, metric;
    uint32_t inputs, outputs, ints, floats;
    bool required;
    double tolerance;
    const char *name;
};

extern const struct op_row op_table[];
extern const uint32_t op_table_count;

/* NULL where there is none. */
const struct op_row *op_find(uint32_t id);
const struct op_row *op_find_name(const char *name);

#endif
