/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a call by the rules of backend.h: attributes, dtypes, shapes,
 * extents and aliasing.  Every failure is last_error_set with the operator, the
 * argument and its values.  Any thread; allocates nothing.
 */
#ifndef TANDEM_COMMON_ARGUMENT_CHECK_H
#define TANDEM_COMMON_ARGUMENT_CHECK_H

#include <tandem/backend.h>

/* Where a buffer lies in an address space of the backend's choice in which
 * different memory has different addresses. */
struct memory_span {
    uint64_t base, bytes;
};

/* Judges a buffer handle (live? of this device?) and says where it lies; on
 * failure returns a status with its message set.  user: as given below. */
typedef enum tandem_status (*address_range_fn)(const void *user,
                                             const struct tandem_buffer *buffer,
                                             struct memory_span *out);

/* A call of launch.  span NULL: buffers are not looked at (supports, prepare,
 * ready).  TANDEM_OP_GEMM checks op->gemm. */
enum tandem_status check_op(const struct tandem_op *op,
                            const struct tandem_tensor_desc *const *inputs,
                            uint32_t input_count,
                            const struct tandem_tensor_desc *const *outputs,
                            uint32_t output_count, address_range_fn span,
                            const void *user);

enum tandem_status check_gemm(const struct tandem_gemm *gemm,
                              address_range_fn span, const void *user);
/* The dtype of c and bias. */
uint32_t gemm_c_dtype(const struct tandem_gemm *gemm);
/* alpha or beta as products take it: rounded to f32. */
double gemm_factor(double value);
/* A gemm that check_gemm accepted, however short its caller's: with all fields
 * of this version, c_dtype saying what it stands for, alpha and beta rounded to
 * f32, so that what is 0 to one reader is 0 to all. */
void gemm_args_normalize(struct tandem_gemm *out,
                         const struct tandem_gemm *gemm);

/* Flags of which all must be in known; what: "upload". */
enum tandem_status check_flags(const char *what, uint32_t flags,
                               uint32_t known);

/* A transfer's range against a buffer of bytes bytes. */
enum tandem_status check_range(const char *what, uint64_t offset,
                               uint64_t bytes, uint64_t buffer_bytes);

/* dtype, rank and shape alone; out_elements may be NULL. */
enum tandem_status check_shape(const char *what, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, int64_t *out_elements);

/* The bytes that a tensor touches, relative to its buffer: [first, end).
 * Empty tensor: first = end.  false on overflow or a negative start. */
bool tensor_extent(const struct tandem_tensor_desc *tensor, uint64_t *out_first,
                   uint64_t *out_end);

/* Elements of a valid shape. */
int64_t shape_elements(uint32_t rank, const int64_t *shape);
static inline bool
tensor_has_elements(const struct tandem_tensor_desc *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            return false;
    return true;
}
/* Fills row-major strides. */
void shape_strides(uint32_t rank, const int64_t *shape, int64_t *strides);
/* Whether the strides are row-major (axes of one element do not matter). */
bool tensor_contiguous(const struct tandem_tensor_desc *tensor);

/* The shape that a valid call's output has: dtype, rank and shape of
 * out->.  CAST takes dtype from out as given; COPY and TERNARY broadcast. */
enum tandem_status infer_output(const struct tandem_op *op,
                                const struct tandem_tensor_desc *const *inputs,
                                uint32_t input_count, uint32_t output,
                                struct tandem_tensor_desc *out);

#endif
