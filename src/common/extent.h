/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether checked tensors touch the same memory.  Pure functions; axes of one
 * element do not matter.
 */
#ifndef TANDEM_COMMON_EXTENT_H
#define TANDEM_COMMON_EXTENT_H

#include <tandem/backend.h>

/* Whether two of its elements lie in the same place.  Says yes too where that
 * is not plain: an axis that starts within the reach of the smaller ones. */
bool tensor_overlaps_itself(const struct tandem_tensor_desc *tensor);

/* Whether two tensors whose extents overlap share no element all the same, as
 * column blocks of one matrix do.  distance_bytes: from b's element (0, ...)
 * to a's.  Says no where that is not plain. */
bool tensors_interleave(const struct tandem_tensor_desc *a,
                        const struct tandem_tensor_desc *b,
                        int64_t distance_bytes);

/* Same buffer, offset, dtype, shape and strides. */
bool tensors_same(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b);

#endif
