/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the arguments of a call against the rules of backend.h: attributes,
 * dtypes, shapes, extents and aliasing.  A failed check sets the last error,
 * which names the operator, the argument and its value.  Callable from any
 * thread; allocates no memory. */
#ifndef TANDEM_COMMON_ARGUMENT_CHECK_H
#define TANDEM_COMMON_ARGUMENT_CHECK_H

#include <tandem/backend.h>

/* Address range of a buffer, in bytes. The backend chooses the address space;
 * different memory must have different addresses in it. */
struct memory_span {
    uint64_t base, bytes;
};

/* Checks that the buffer is live and belongs to the device, and writes its
 * address range to *out. On failure, sets the last error and returns its
 * status. user is the pointer that was passed to check_op or check_gemm. */
typedef enum tandem_status (*address_range_fn)(
    const void *user, const struct tandem_buffer *buffer,
    struct memory_span *out);

/* Checks a call of launch. If span is NULL (in supports, prepare and ready),
 * the buffers are not checked. For TANDEM_OP_GEMM, checks op->gemm. */
enum tandem_status check_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, address_range_fn span,
                            const void *user);

enum tandem_status check_gemm(const struct tandem_gemm *gemm,
                              address_range_fn span, const void *user);
/* Returns the dtype of c and bias. */
uint32_t gemm_c_dtype(const struct tandem_gemm *gemm);
/* Returns alpha or beta rounded to f32, as the kernels use it. */
double gemm_factor(double value);
/* Copies a gemm that check_gemm accepted, with any struct_size. The copy has
 * all fields of this version, a nonzero c_dtype, and alpha and beta rounded to
 * f32, so that all readers agree on which is 0. Unused strides become
 * minimal. */
void gemm_args_normalize(struct tandem_gemm *out,
                         const struct tandem_gemm *gemm);

/* Returns TANDEM_INVALID_ARGUMENT and sets the last error if flags has a bit
 * outside known. what names the call in messages, as in "upload". */
enum tandem_status check_flags(const char *what, uint32_t flags,
                               uint32_t known);

/* Checks the byte range of a transfer against a buffer's size. */
enum tandem_status check_range(const char *what, uint64_t offset,
                               uint64_t bytes, uint64_t buffer_bytes);

/* Checks the dtype, rank and shape only. out_elements may be NULL. */
enum tandem_status check_shape(const char *what, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, int64_t *out_elements);

/* Computes the range [first, end) of bytes that a tensor touches, relative to
 * its buffer. An empty tensor has first == end. Returns false on overflow or
 * if the range starts before the buffer. */
bool tensor_extent(const struct tandem_tensor_desc *tensor, uint64_t *out_first,
                   uint64_t *out_end);

/* Returns the number of elements of a valid shape. */
int64_t shape_elements(uint32_t rank, const int64_t *shape);
static inline bool tensor_has_elements(const struct tandem_tensor_desc *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            return false;
    return true;
}
/* Writes the row-major strides of a shape, in elements. */
void shape_strides(uint32_t rank, const int64_t *shape, int64_t *strides);
/* Returns true if the strides are row-major. Strides of axes of size 1 are
 * ignored. */
bool tensor_contiguous(const struct tandem_tensor_desc *tensor);

/* Sets dtype, rank and shape of *out to those of the given output of a valid
 * call. For CAST, the caller sets out->dtype. For COPY, the result has the
 * input's shape, although the output may be a broadcast of it. */
enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out);

#endif
