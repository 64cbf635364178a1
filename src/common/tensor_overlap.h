/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether checked tensors share bytes.  Pure functions; axes of one element do
 * not matter, and a tensor without elements shares nothing.
 *
 * "Disjoint" is always true where it is said.  It is said of every disjoint
 * pair of views that slicing, step slicing, reversing and permuting the axes
 * of one row-major tensor make; of others, the search may be given up, and
 * then they count as overlapping.  Extents are the caller's to compare first.
 */
#ifndef TANDEM_COMMON_TENSOR_OVERLAP_H
#define TANDEM_COMMON_TENSOR_OVERLAP_H

#include <tandem/backend.h>

/* Whether two of its elements lie in the same place. */
bool tensor_overlaps_itself(const struct tandem_tensor_desc *tensor);

/* Whether no byte belongs to both.  distance_bytes: from b's element (0, ...)
 * to a's.  30 to 60 ns a pair. */
bool tensors_disjoint(const struct tandem_tensor_desc *a,
                      const struct tandem_tensor_desc *b,
                      int64_t distance_bytes);

/* Same buffer, offset, dtype, shape and strides. */
bool tensors_same(const struct tandem_tensor_desc *a,
                  const struct tandem_tensor_desc *b);

#endif
