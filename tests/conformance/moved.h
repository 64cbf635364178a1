/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operators share that move elements of any dtype without a change of
 * their bits. In copy.c.
 */
#ifndef TANDEM_CONFORMANCE_MOVED_H
#define TANDEM_CONFORMANCE_MOVED_H

#include "suite_class.h"

/* Returns the dtype of a drawn call. A device need not support any but f32. */
uint32_t moved_dtype(struct call *call, const struct block *block);
/* Fills an input of a random call with any bits. */
bool moved_fill(struct call *call, uint32_t input, const struct spread *spread);

#endif
