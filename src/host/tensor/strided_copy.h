/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between layouts of host memory.  Strides count elements.  Stateless;
 * any thread may call these functions. */
#ifndef TANDEM_HOST_TENSOR_STRIDED_COPY_H
#define TANDEM_HOST_TENSOR_STRIDED_COPY_H

#include <stdbool.h>
#include <stdint.h>

/* Copies a tensor between two memory layouts of the same shape. */
void strided_copy(char *target, const int64_t *target_strides,
                  const char *source, const int64_t *source_strides,
                  uint32_t rank, const int64_t *shape, uint32_t element_bytes);
/* Returns true if a tensor's elements fill contiguous memory in any order,
 * without gaps or overlaps.  Strides may be negative. */
bool strides_are_dense(uint32_t rank, const int64_t *shape,
                       const int64_t *strides);

#endif
