/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the class of gemm that have files of their own. */
#ifndef TANDEM_CONFORMANCE_GEMM_H
#define TANDEM_CONFORMANCE_GEMM_H

#include "suite_class.h"

/*
 * gemm_reference.c: computes the elements of c in row-major order, batches
 * outermost, from the images of the operands. inputs is not used.
 */
void gemm_reference(const struct call *call, const struct dense *inputs,
                    struct expected *out);

/* Devices must support 16-bit operands if they have the capability for them. */
void gemm_require(struct call *call, uint32_t dtype, uint32_t c_dtype);

/* gemm_random.c */
void gemm_draw(struct call *call, const struct block *block);
/* Fills a, b or bias. The last input also fills c, if c is read. */
bool gemm_fill(struct call *call, uint32_t input, const struct spread *spread);

#endif
