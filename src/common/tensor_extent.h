/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, strides and byte ranges of tensors. A failed check sets the last
 * error. The functions may be called from any thread and allocate no memory. */
#ifndef TANDEM_COMMON_TENSOR_EXTENT_H
#define TANDEM_COMMON_TENSOR_EXTENT_H

#include "common/tensor_desc.h"

/* Checks that the byte range of a transfer is inside the buffer. */
enum tandem_status check_range(const char *what, uint64_t offset,
                               uint64_t bytes, uint64_t buffer_bytes);
/* Checks the range and the pattern of a fill. */
enum tandem_status check_fill(uint64_t offset, uint64_t bytes,
                              const void *pattern, uint32_t pattern_bytes);
/* Sets the error of a copy within a buffer whose ranges overlap. */
enum tandem_status copy_overlap_error(uint64_t source_offset,
                                      uint64_t target_offset, uint64_t bytes);
/* Sets the error of an operation `what` that writes a sealed buffer. */
enum tandem_status sealed_error(const char *what);

/* Checks a tensor's dtype, rank and shape. */
enum tandem_status check_shape(const char *what, uint32_t dtype, uint32_t rank,
                               const int64_t *shape);

/* Computes the range [first, end) of bytes that a tensor touches, relative to
 * its buffer. An empty tensor has first == end. Returns false on overflow or
 * if the range starts before the buffer. */
bool tensor_extent(const struct tandem_tensor_desc *tensor, uint64_t *out_first,
                   uint64_t *out_end);

static inline bool shapes_equal(const struct tandem_tensor_desc *a,
                                const struct tandem_tensor_desc *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}
int64_t shape_elements(uint32_t rank, const int64_t *shape);
/* Returns the size of all elements together. */
static inline double tensor_data_bytes(const struct tandem_tensor_desc *tensor)
{
    return (double)shape_elements(tensor->rank, tensor->shape) *
           TANDEM_DTYPE_BYTES(tensor->dtype);
}
static inline bool tensor_has_elements(const struct tandem_tensor_desc *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0)
            return false;
    return true;
}
/* Writes the row-major strides of a shape, in elements. */
void shape_strides(uint32_t rank, const int64_t *shape, int64_t *strides);
/* Returns true if the tensor's strides are row-major. Strides of axes of size 1
 * are ignored. */
bool tensor_contiguous(const struct tandem_tensor_desc *tensor);

#endif
