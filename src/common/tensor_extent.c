/* SPDX-License-Identifier: Apache-2.0 */
/* Checks shapes and computes strides and extents; see tensor_extent.h. */
#include "common/tensor_extent.h"
#include "common/last_error.h"
#include "common/operator_table.h"

enum tandem_status check_shape(const char *what, uint32_t dtype, uint32_t rank,
                               const int64_t *shape)
{
    uint32_t bytes = dtype_bytes(dtype);
    int64_t limit = 1; /* product of the nonzero extents */
    if (bytes == 0)
        return last_error_set(TANDEM_UNSUPPORTED, "%s: unknown dtype 0x%x",
                              what, dtype);
    if (rank > TANDEM_MAX_RANK)
        return argument_error("%s: rank %u is above the maximum %u", what, rank,
                              TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return argument_error("%s: axis %u has the negative size %lld",
                                  what, i, (long long)shape[i]);
        if (shape[i] != 0 && __builtin_mul_overflow(limit, shape[i], &limit))
            limit = INT64_MAX;
    }
    if (limit > INT64_MAX / bytes)
        return argument_error("%s: the shape has more than %lld elements of %u "
                              "bytes, which cannot be addressed",
                              what, (long long)(INT64_MAX / bytes), bytes);
    return TANDEM_OK;
}

int64_t shape_elements(uint32_t rank, const int64_t *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        elements *= shape[i];
    return elements;
}

void shape_strides(uint32_t rank, const int64_t *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i] > 1 ? shape[i] : 1;
    }
}

bool tensor_contiguous(const struct tandem_tensor_desc *tensor)
{
    int64_t stride = 1;
    if (!tensor_has_elements(tensor))
        return true;
    for (uint32_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->shape[i];
    }
    return true;
}

bool tensor_extent(const struct tandem_tensor_desc *tensor, uint64_t *out_first,
                   uint64_t *out_end)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(tensor->dtype);
    int64_t low = 0, high = 0, first = 0, end = 0;
    *out_first = *out_end = tensor->byte_offset;
    if (tensor->byte_offset > INT64_MAX)
        return false;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t reach = 0;
        if (tensor->shape[i] == 0)
            return true;
        if (__builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i],
                                   &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach,
                                   reach < 0 ? &low : &high))
            return !tensor_has_elements(tensor);
    }
    if (__builtin_mul_overflow(low, bytes, &first) ||
        __builtin_add_overflow(first, (int64_t)tensor->byte_offset, &first) ||
        __builtin_add_overflow(high, 1, &high) ||
        __builtin_mul_overflow(high, bytes, &end) ||
        __builtin_add_overflow(end, (int64_t)tensor->byte_offset, &end) ||
        first < 0)
        return false;
    *out_first = (uint64_t)first;
    *out_end = (uint64_t)end;
    return true;
}

enum tandem_status check_range(const char *what, uint64_t offset,
                               uint64_t bytes, uint64_t buffer_bytes)
{
    if (offset <= buffer_bytes && bytes <= buffer_bytes - offset)
        return TANDEM_OK;
    return argument_error("%s: bytes %llu + %llu lie outside the buffer's %llu",
                          what, (unsigned long long)offset,
                          (unsigned long long)bytes,
                          (unsigned long long)buffer_bytes);
}

enum tandem_status check_fill(uint64_t offset, uint64_t bytes,
                              const void *pattern, uint32_t pattern_bytes)
{
    if (pattern == NULL)
        return argument_error("fill: the pattern is NULL");
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
        pattern_bytes != 8)
        return argument_error(
            "fill: the pattern has %u bytes; expected 1, 2, 4 or 8",
            pattern_bytes);
    if (offset % pattern_bytes != 0 || bytes % pattern_bytes != 0)
        return argument_error("fill: offset %llu and size %llu must be "
                              "multiples of the pattern's %u bytes",
                              (unsigned long long)offset,
                              (unsigned long long)bytes, pattern_bytes);
    return TANDEM_OK;
}

enum tandem_status sealed_error(const char *what)
{
    return argument_error("%s: the buffer is sealed, so it cannot be written",
                          what);
}

enum tandem_status copy_overlap_error(uint64_t source_offset,
                                      uint64_t target_offset, uint64_t bytes)
{
    return argument_error(
        "copy: the source range (%llu bytes at offset %llu) and the target "
        "range (offset %llu) overlap",
        (unsigned long long)bytes, (unsigned long long)source_offset,
        (unsigned long long)target_offset);
}
