/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of a call against the rules of backend.h: attributes,
 * dtypes, shapes, extents and aliasing. A failed check sets the last error,
 * which names the operator, the argument and its value. The functions may be
 * called from any thread and allocate no memory. */
#ifndef TANDEM_COMMON_ARGUMENT_CHECK_H
#define TANDEM_COMMON_ARGUMENT_CHECK_H

#include "common/op_activation.h"
#include "common/struct_size.h"
#include "common/tensor_extent.h"

#include "common/tensor_desc.h"

/* Address range of a buffer, in bytes. The backend chooses the addresses.
 * Different memory must have different addresses. */
struct address_range {
    uint64_t base, bytes;
    bool is_sealed; /* see buffer_seal in backend.h */
};

/* Callback that checks that a buffer is live and belongs to the device, and
 * writes the buffer's address range to *out. If the check fails, sets the last
 * error and returns its status. `user` is the argument that the caller passed
 * to check_op or check_gemm. */
typedef enum tandem_status (*address_range_fn)(
    const void *user, const struct tandem_buffer *buffer,
    struct address_range *out);

/* Checks the arguments of a call of an operator. If span is NULL, does
 * not check buffers. */
enum tandem_status check_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, address_range_fn span,
                            const void *user);

/* Sets dtype, rank, shape and row-major strides of the outputs of a call, and
 * checks the call with them.  The caller sets the dtype of an output of CAST
 * and RANGE, for which the other arguments determine none. */
enum tandem_status infer_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            struct tandem_tensor_desc *outputs,
                            uint32_t output_count);

struct operator_info;
/* Checks that the operator exists and sets *out_info to its row of the operator
 * table.  Checks the number of attributes, but not their values. */
enum tandem_status operator_check(const struct tandem_op *op,
                                  const struct operator_info **out_info);

/* Checks that the pointer and the size of the struct are valid. */
enum tandem_status gemm_check_size(const struct tandem_gemm *gemm);
enum tandem_status check_gemm(const struct tandem_gemm *gemm,
                              address_range_fn span, const void *user);
/* Returns the activation of a GEMM. */
struct activation gemm_activation(const struct tandem_gemm *gemm);
/* Returns the dtype of the operands c and bias of a GEMM. */
uint32_t gemm_c_dtype(const struct tandem_gemm *gemm);
/* Returns a GEMM's alpha or beta rounded to f32, as the kernels use it. */
double gemm_factor(double value);
/* Copies a GEMM descriptor that has any version of the struct. The copy has all
 * fields of the current version and a nonzero c_dtype. Strides that affect no
 * address get their smallest valid value. alpha and beta stay the same, because
 * rounding them could raise an exception in a host that traps floating-point
 * exceptions. */
void gemm_args_complete(struct tandem_gemm *out,
                        const struct tandem_gemm *gemm);
/* Like gemm_args_complete, but also rounds alpha and beta to f32, so that all
 * code agrees on whether they are 0. check_gemm must have accepted the GEMM. */
void gemm_args_normalize(struct tandem_gemm *out,
                         const struct tandem_gemm *gemm);

#endif
