/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, strides and the memory that they touch. */
#include <stdlib.h>

#include "common/check.h"
#include "common/extent.h"
#include "common/message.h"
#include "common/operator.h"

enum tandem_status check_shape(const char *what, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, int64_t *out_elements)
{
    uint32_t bytes = dtype_bytes(dtype);
    int64_t elements = 1, limit = 1;
    if (bytes == 0)
        return message_set(TANDEM_INVALID_ARGUMENT, "%s: unknown dtype 0x%x",
                           what, (unsigned)dtype);
    if (rank > TANDEM_MAX_RANK)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: rank %u is above the maximum %u", what,
                           (unsigned)rank, TANDEM_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return message_set(TANDEM_INVALID_ARGUMENT,
                               "%s: axis %u has the negative size %lld", what,
                               (unsigned)i, (long long)shape[i]);
        elements *= shape[i] != 0;
        if (shape[i] != 0 && __builtin_mul_overflow(limit, shape[i], &limit))
            limit = INT64_MAX;
    }
    if (limit > INT64_MAX / bytes)
        return message_set(TANDEM_INVALID_ARGUMENT,
                           "%s: the shape has too many elements to address",
                           what);
    if (out_elements != NULL)
        *out_elements = elements * limit;
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
    for (uint32_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] == 0)
            return true;
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
            return false;
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

/* The axes of more than one element by rising stride magnitude; how many. */
static uint32_t sort_axes(const struct tandem_tensor_desc *tensor,
                          uint32_t *order)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] <= 1)
            continue;
        uint32_t at = count++;
        while (at > 0 && llabs(tensor->strides[order[at - 1]]) >
                             llabs(tensor->strides[i])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return count;
}

bool tensor_overlaps_itself(const struct tandem_tensor_desc *tensor)
{
    uint32_t order[TANDEM_MAX_RANK];
    uint32_t count = sort_axes(tensor, order);
    int64_t reach = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t stride = llabs(tensor->strides[order[i]]);
        if (stride <= reach)
            return true;
        reach += stride * (tensor->shape[order[i]] - 1);
    }
    return false;
}

/* Whether distance is a sum of strides[i] * v[i] with -below[i] <= v[i] <=
 * above[i]; strides positive and falling.  Gives up, and says yes, where the
 * search would be long. */
static bool reachable(int64_t distance, uint32_t count, const int64_t *strides,
                      const int64_t *below, const int64_t *above)
{
    int64_t least = 0, most = 0;
    if (count == 0)
        return distance == 0;
    for (uint32_t i = 1; i < count; i++) {
        least -= strides[i] * below[i];
        most += strides[i] * above[i];
    }
    int64_t first = (distance - most) / strides[0] - 1;
    int64_t last = (distance - least) / strides[0] + 1;
    first = first < -below[0] ? -below[0] : first;
    last = last > above[0] ? above[0] : last;
    if (last - first > 8)
        return true;
    for (int64_t v = first; v <= last; v++)
        if (reachable(distance - v * strides[0], count - 1, strides + 1,
                      below + 1, above + 1))
            return true;
    return false;
}

bool tensors_interleave(const struct tandem_tensor_desc *a,
                        const struct tandem_tensor_desc *b,
                        int64_t distance_bytes)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(a->dtype);
    int64_t strides[TANDEM_MAX_RANK], below[TANDEM_MAX_RANK];
    int64_t above[TANDEM_MAX_RANK];
    uint32_t count = 0;
    if (a->rank != b->rank || TANDEM_DTYPE_BYTES(b->dtype) != (uint64_t)bytes ||
        distance_bytes % bytes != 0)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] <= 1 && b->shape[i] <= 1)
            continue;
        if (a->strides[i] != b->strides[i] || a->strides[i] <= 0)
            return false;
        uint32_t at = count++;
        for (; at > 0 && strides[at - 1] < a->strides[i]; at--) {
            strides[at] = strides[at - 1];
            below[at] = below[at - 1];
            above[at] = above[at - 1];
        }
        strides[at] = a->strides[i];
        below[at] = a->shape[i] - 1;
        above[at] = b->shape[i] - 1;
    }
    /* Element x of a and y of b are the same where the sum of strides times
     * (y - x) is the distance from b's start to a's, here a - b. */
    return !reachable(distance_bytes / bytes, count, strides, below, above);
}

bool tensors_same(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b)
{
    if (a->buffer != b->buffer || a->byte_offset != b->byte_offset ||
        a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i] ||
            (a->shape[i] > 1 && a->strides[i] != b->strides[i]))
            return false;
    return true;
}

enum tandem_status check_range(const char *what, uint64_t offset,
                               uint64_t bytes, uint64_t buffer_bytes)
{
    if (offset <= buffer_bytes && bytes <= buffer_bytes - offset)
        return TANDEM_OK;
    return message_set(TANDEM_INVALID_ARGUMENT,
                       "%s: bytes %llu + %llu lie outside the buffer's %llu",
                       what, (unsigned long long)offset,
                       (unsigned long long)bytes,
                       (unsigned long long)buffer_bytes);
}
