/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix multiplication of tensors as a call of the operator GEMM. */
#ifndef TANDEM_HOST_RUN_MATMUL_H
#define TANDEM_HOST_RUN_MATMUL_H

#include "common/gemm_operator.h"
#include "host/run/call.h"

#define MATMUL_COPIES 3 /* a, b and the bias */

/* A matrix multiplication as a call of the operator GEMM.  The call points into
 * this struct, so the struct must not be moved. */
struct matmul {
    struct call call;
    struct tandem_op op;
    int64_t ints[GEMM_INTS];
    double floats[GEMM_FLOATS];
    /* a, b, the bias if any, c if it is a residual, and c. */
    struct tandem_tensor *operands[MAX_GEMM_OPERANDS];
    uint32_t copied_inputs; /* number of operands that can be copied */
    /* Contiguous copies of inputs, owned by this struct; NULL means no copy. */
    struct tandem_tensor *copies[MATMUL_COPIES];
    /* Nothing runs, so the copies have no content.  The memory of the inputs
     * may be freed at once. */
    bool is_question;
};

/* Converts a matrix multiplication to an operator call.  If GEMM does not
 * support the strides of an input, copies the input, or only creates the copy
 * for a question. */
enum tandem_status matmul_prepare(struct matmul *matmul,
                                  struct tandem_context *context,
                                  const struct tandem_matmul_options *options,
                                  struct tandem_tensor *a,
                                  struct tandem_tensor *b,
                                  struct tandem_tensor *c, bool is_question);
/* Frees the input copies.  Must be called even if
 * matmul_prepare failed. */
void matmul_finish(struct matmul *matmul);

#endif
