/* SPDX-License-Identifier: Apache-2.0 */
/* Detects whether tensors share bytes. Pure functions; the descriptors must
 * have passed argument_check.h. Axes of size 1 are ignored, and an empty
 * tensor shares nothing.
 *
 * The answer "disjoint" is always correct. All disjoint views of one row-major
 * tensor are recognized if they come from slicing, slicing with a step,
 * reversing and permuting axes. For other pairs the search may give up, and
 * they count as overlapping. Callers should compare extents first. */
#ifndef TANDEM_COMMON_TENSOR_OVERLAP_H
#define TANDEM_COMMON_TENSOR_OVERLAP_H

#include <tandem/backend.h>

/* Returns true if two elements of the tensor have the same address. */
bool tensor_overlaps_itself(const struct tandem_tensor_desc *tensor);

/* Returns true if no byte belongs to both tensors. distance_bytes is the
 * address of a's element (0, ...) minus that of b's. Takes 30 to 60 ns. */
bool tensors_disjoint(const struct tandem_tensor_desc *a,
                      const struct tandem_tensor_desc *b,
                      int64_t distance_bytes);

/* Returns true if buffer, offset, dtype, shape and strides of a and b agree. */
bool tensors_same(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b);

#endif
