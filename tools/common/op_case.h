/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator with its attributes and operand shapes, built from an operator
 * name and a shape such as "4096x1000" on the command line.  Needs no device.
 */
#ifndef TOOLS_OP_CASE_H
#define TOOLS_OP_CASE_H

#include "common/tensor_desc.h"

#include <tandem/host.h>

/* Must not be copied, because `op` points into the struct.  Operands are
 * row-major and have no buffers.  GEMM has in[0] = a [m][k], in[1] = b [k][n]
 * and out[0] = c [m][n]; a batch dimension, if any, comes first. */
struct op_case {
    struct tandem_op op;
    const struct tandem_op_info *info;
    int64_t ints[TANDEM_MAX_ATTRIBUTES];
    double floats[TANDEM_MAX_ATTRIBUTES];
    uint32_t inputs, outputs;
    struct tandem_tensor_desc in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc out[TANDEM_MAX_OPERANDS];
    /* Index of the input whose buffer output i overwrites, or -1. */
    int alias[TANDEM_MAX_OPERANDS];
    int64_t index_limit; /* values of integer inputs are in [0, index_limit) */
    int64_t m, n, k, batch; /* of a GEMM */
    double bytes;           /* read and written by the operator */
    uint32_t cost_class;    /* enum tandem_cost_class */
};

#define OPCASE_ERROR_BYTES 256

/* Parses a shape such as "4096x1000"; "" and "1" are one element.  Returns
 * false if the text is not a shape. */
bool shape_parse(const char *text, uint32_t *out_rank,
                 int64_t shape[TANDEM_MAX_RANK]);
#define SHAPE_TEXT_BYTES 160
/* Writes the shape to `out` (SHAPE_TEXT_BYTES bytes).  Returns `out`. */
char *shape_text(char *out, uint32_t rank, const int64_t *shape);

/* Builds the case from the example of the operator's class (op_class.h), which
 * defines the meaning of `shape`.  Returns false, with a message in `error`, if
 * the operator cannot have this shape. */
bool op_case_build(struct op_case *c, const char *name, uint32_t rank,
                   const int64_t *shape, char error[OPCASE_ERROR_BYTES]);

/* Makes the first input, a square matrix, a transposed view. */
void op_case_transpose_input(struct op_case *c);

/* Makes a reduction reduce axis i if bit i of `axes` is set. */
void op_case_reduce_axes(struct op_case *c, uint32_t axes);

double desc_bytes(const struct tandem_tensor_desc *desc);
double desc_elements(const struct tandem_tensor_desc *desc);

#endif
