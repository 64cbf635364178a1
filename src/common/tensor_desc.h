/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as the code of plugins and tools sees it: a struct
 * tandem_operand_desc with its memory. */
#ifndef TANDEM_COMMON_TENSOR_DESC_H
#define TANDEM_COMMON_TENSOR_DESC_H

#include <tandem/backend.h>

/* A view of a buffer.  byte_offset is the position of element (0, ..., 0).
 * Strides are in elements and may be 0 or negative.  A tensor of rank 0 has one
 * element.  If the shape contains a 0, the tensor is empty and is neither read
 * nor written. */
struct tandem_tensor_desc {
    struct tandem_buffer *buffer;
    uint64_t byte_offset;
    uint32_t dtype; /* enum tandem_dtype */
    uint32_t rank;
    int64_t shape[TANDEM_MAX_RANK];
    int64_t strides[TANDEM_MAX_RANK];
};

#endif
