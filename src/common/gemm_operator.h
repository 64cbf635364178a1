/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between the two forms of a matrix product in backend.h: the operator
 * GEMM, with operands of any rank, and struct tandem_gemm, which is like a call
 * of BLAS.  Pure functions that any thread may call. */
#ifndef TANDEM_COMMON_GEMM_OPERATOR_H
#define TANDEM_COMMON_GEMM_OPERATOR_H

#include "common/op_class.h"

/* Integer and float attributes of the operator. */
enum { GEMM_ACTIVATION, GEMM_RESIDUAL, GEMM_INTS };
enum { GEMM_ALPHA, GEMM_BETA, GEMM_ACTIVATION_PARAMETER, GEMM_FLOATS = 4 };

/* Inputs a, b, bias and residual, and the output. */
#define MAX_GEMM_OPERANDS 5u

/* Returns the number of the residual, an input, or UINT32_MAX if the call of
 * the operator has none. */
uint32_t gemm_residual_input(const struct op_call *call);

/* Describes a call of the operator whose attributes and shapes were checked.
 * The buffers and offsets are those of the tensors.  alpha and beta are rounded
 * to f32; beta is 0 without a residual.  The residual is not part of *out: c is
 * the output.  An empty product has m = n = k = 0 and batch 1.  Returns
 * TANDEM_UNSUPPORTED if the strides of an operand cannot be described. */
enum tandem_status gemm_from_call(const struct op_call *call,
                                  struct tandem_gemm *out);

/* Return true if the operator supports the strides of an input matrix, of the
 * output, and of the bias. */
bool gemm_input_supports(const struct tandem_tensor_desc *tensor);
bool gemm_output_supports(const struct tandem_tensor_desc *tensor);
bool gemm_bias_supports(const struct tandem_tensor_desc *bias);

/* Returns the flags of the operator for the flags of a struct tandem_gemm. */
uint32_t gemm_operator_flags(uint32_t gemm_flags);

/* A struct tandem_gemm as a call of the operator.  The pointers are into the
 * struct. */
struct gemm_operator {
    struct tandem_op op;
    int64_t ints[GEMM_INTS];
    double floats[GEMM_FLOATS];
    uint32_t input_count;
    struct tandem_operand_desc operands[MAX_GEMM_OPERANDS];
    const struct tandem_operand_desc *pointers[MAX_GEMM_OPERANDS];
    struct tandem_memory memory[MAX_GEMM_OPERANDS];
};

/* `gemm` was checked and normalized.  Alignments are 0. */
void gemm_operator_make(struct gemm_operator *out,
                        const struct tandem_gemm *gemm);

#endif
