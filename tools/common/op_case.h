/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator with plain arguments of a shape: what a name and "4096x1000"
 * mean on the command line.  Pure data, no device.
 */
#ifndef TOOLS_OPCASE_H
#define TOOLS_OPCASE_H

#include <tandem/host.h>

/* op points into the struct: never copy one.  Operands are row-major, their
 * buffers NULL.  A product has in[0] = a [m][k], in[1] = b [k][n] and
 * out[0] = c [m][n], with the batch before them where there is one. */
struct op_case {
    struct tandem_op op;
    const struct tandem_op_info *info;
    int64_t ints[TANDEM_MAX_RANK];
    double floats[TANDEM_MAX_OPERANDS];
    uint32_t inputs, outputs;
    struct tandem_tensor_desc in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor_desc out[TANDEM_MAX_OPERANDS];
    /* The input that output i is written over; -1: none. */
    int alias[TANDEM_MAX_OPERANDS];
    int64_t index_limit; /* integer inputs are in [0, index_limit) */
    int64_t m, n, k, batch;
    double bytes;        /* read and written */
};

#define OPCASE_ERROR_BYTES 256

/* "4096x1000"; "" and "1" are one element.  false where it is no shape. */
bool shape_parse(const char *text, uint32_t *out_rank,
                 int64_t shape[TANDEM_MAX_RANK]);
/* Into room for 160 bytes, which it returns. */
char *shape_text(char *out, uint32_t rank, const int64_t *shape);

/* Element-wise operators, reductions (over the last axis), softmax (along
 * it), copies, transposes (all axes reversed): the shape of the input.
 * gather: of the data, with as many row indices as rows.  softmax_cross_...:
 * of the logits.  gemm: m, n, k or batch, m, n, k.  false: error says what
 * the operator wants. */
bool op_case_build(struct op_case *c, const char *name, uint32_t rank,
                   const int64_t *shape, char error[OPCASE_ERROR_BYTES]);

/* Makes the first input, a square, a transposed view. */
void op_case_transpose_input(struct op_case *c);

/* Lets a reduction of the case take the axes of the mask instead. */
void op_case_reduce_axes(struct op_case *c, uint32_t axes);

double desc_bytes(const struct tandem_tensor_desc *desc);
double desc_elements(const struct tandem_tensor_desc *desc);

#endif
