/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The suite's reader of the operator table of operators.h. The suite does not
 * use the library's reader, so that the tests can find mistakes in the
 * library's.
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

/* Returns NULL if there is no such operator. */
const struct op_row *op_find(uint32_t id);
const struct op_row *op_find_name(const char *name);

#endif
