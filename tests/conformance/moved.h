/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operators share that move elements of any dtype without a change of
 * their bits. In copy.c.
 */
#ifndef TANDEM_CONFORMANCE_MOVED_H
#define TANDEM_CONFORMANCE_MOVED_H

#include "suite_class.h"

/* At least one dtype of each element width. */
#define MOVED_DTYPES 9u
extern const uint32_t moved_dtypes[MOVED_DTYPES];

/* Returns the dtype of a random call. */
uint32_t moved_dtype(const struct block *block);
/* Sets the capabilities that the dtype requires. Only f32 is required. */
void moved_require(struct call *call, uint32_t dtype);
/* Fills an input of a random call with any bits. */
bool moved_fill(struct call *call, uint32_t input, const struct spread *spread);

#endif
