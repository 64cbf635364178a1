/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the public functions for the version, the last error, status names
 * and the operator table.  Any thread may call them. */
#include <config.h>

#include "common/last_error.h"
#include "common/operator_table.h"
#include "host/exported_api.h"

const char *tandem_version(void)
{
    return PACKAGE_VERSION;
}

const char *tandem_last_error(void)
{
    return last_error_get();
}

const char *tandem_status_name(enum tandem_status status)
{
    return status_name(status);
}

#define OP_INFO(ID, number, op_name, class, ins, outs, ints, n_ints, floats,   \
                n_floats, cost, op_metric, op_tolerance, must, op_formula)     \
    [number] = {                                                               \
        .struct_size = sizeof(struct tandem_op_info),                          \
        .id = number,                                                          \
        .op_class = TANDEM_CLASS_##class,                                      \
        .cost_class = TANDEM_COST_##cost,                                      \
        .metric = TANDEM_METRIC_##op_metric,                                   \
        .input_count = ins,                                                    \
        .output_count = outs,                                                  \
        .int_count = n_ints,                                                   \
        .float_count = n_floats,                                               \
        .required = must,                                                      \
        .tolerance = op_tolerance,                                             \
        .name = op_name,                                                       \
        .int_names = ints,                                                     \
        .float_names = floats,                                                 \
        .formula = op_formula,                                                 \
    },

static const struct tandem_op_info infos[TANDEM_OP_ID_END] = {
    TANDEM_OPERATORS(OP_INFO)};

const struct tandem_op_info *tandem_op_by_id(uint32_t id)
{
    return id < TANDEM_OP_ID_END && infos[id].id != 0 ? &infos[id] : NULL;
}

const struct tandem_op_info *tandem_op_by_name(const char *name)
{
    const struct operator_info *row =
        name != NULL ? operator_row_by_name(name) : NULL;

    return row != NULL ? tandem_op_by_id(row->id) : NULL;
}
