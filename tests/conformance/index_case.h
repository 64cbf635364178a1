/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index tensors of gather and scatter. An operator whose name ends with _nd has
 * index vectors, which address the axes of operand 0 from number `axis` on;
 * another operator addresses axis number `axis`, which may be negative. In
 * index_case.c.
 */
#ifndef TANDEM_CONFORMANCE_INDEX_CASE_H
#define TANDEM_CONFORMANCE_INDEX_CASE_H

#include "suite_class.h"

/*
 * Returns the number of the element at a position in data, or -1 if a
 * coordinate is out of range. Negative coordinates count from the end.
 */
int64_t element_find(const struct dense *data, const int64_t *position);

/*
 * Fills the operand with indices in range, counted from either end. In one call
 * of three, some are just or far out of range.
 */
void indices_fill(struct call *call, uint32_t place, int64_t axis);

/* Draws a number of indices. It may be large if data is small. */
int64_t index_count_draw(struct random *random, const struct shape *data);
/* Shortens all axes to at most this length. */
void shape_limit(struct shape *shape, int64_t length);
/* Draws the shape of indices of data's rank, for an axis. */
struct shape element_indices_draw(struct random *random,
                                  const struct shape *data, int64_t axis);
/* Draws the shape of index vectors, after `batch` axes that data share. */
struct shape vector_indices_draw(struct random *random,
                                 const struct shape *data, uint32_t batch);

#endif
