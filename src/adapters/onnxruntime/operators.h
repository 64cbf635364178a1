/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the ONNX operators that the provider serves. */
#ifndef TANDEM_ONNXRUNTIME_OPERATORS_H
#define TANDEM_ONNXRUNTIME_OPERATORS_H

#include "adapters/onnxruntime/onnx_operator.h"

/* Sets the operator of each node that the provider serves. */
void operators_assign(struct graph *graph);
/* Returns the operator, or NULL if the table does not have it. */
const struct onnx_operator *operator_by_type(const char *domain,
                                             const char *type);
/* Returns row `index` of the table, or NULL after the last row. */
const struct onnx_operator *operator_row(size_t index);

#endif
