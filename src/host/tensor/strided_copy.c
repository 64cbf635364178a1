/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between layouts of host memory; see strided_copy.h. */
#include <config.h>

#include "host/tensor/strided_copy.h"

#include <tandem/backend.h>

#include <stdlib.h>
#include <string.h>

static void row_copy(char *target, int64_t target_stride, const char *source,
                     int64_t source_stride, int64_t count,
                     uint32_t element_bytes)
{
    if (target_stride == 1 && source_stride == 1) {
        memcpy(target, source, (size_t)count * element_bytes);
        return;
    }
    target_stride *= element_bytes;
    source_stride *= element_bytes;
    for (int64_t i = 0; i < count; i++) {
        memcpy(target, source, element_bytes);
        target += target_stride;
        source += source_stride;
    }
}

void strided_copy(char *target, const int64_t *target_strides,
                  const char *source, const int64_t *source_strides,
                  uint32_t rank, const int64_t *shape, uint32_t element_bytes)
{
    int64_t index[TANDEM_MAX_RANK] = {0};
    const uint32_t inner = rank - 1;

    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return;
    }
    if (rank == 0) {
        memcpy(target, source, element_bytes);
        return;
    }
    for (;;) {
        uint32_t axis = inner;

        row_copy(target, target_strides[inner], source, source_strides[inner],
                 shape[inner], element_bytes);
        /* Advance `index` to the next row.  The last axis changes fastest. */
        for (;;) {
            if (axis-- == 0)
                return;
            target += target_strides[axis] * element_bytes;
            source += source_strides[axis] * element_bytes;
            if (++index[axis] < shape[axis])
                break;
            target -= target_strides[axis] * shape[axis] * element_bytes;
            source -= source_strides[axis] * shape[axis] * element_bytes;
            index[axis] = 0;
        }
    }
}

bool strides_are_dense(uint32_t rank, const int64_t *shape,
                       const int64_t *strides)
{
    bool used[TANDEM_MAX_RANK] = {false};
    int64_t expected = 1;

    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return true;
        used[i] = shape[i] == 1;
    }
    for (;;) {
        uint32_t axis = rank;

        for (uint32_t i = 0; i < rank; i++) {
            if (!used[i] && llabs(strides[i]) == expected)
                axis = i;
        }
        if (axis == rank)
            break;
        used[axis] = true;
        expected *= shape[axis];
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (!used[i])
            return false;
    }
    return true;
}
