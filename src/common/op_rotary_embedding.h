/* SPDX-License-Identifier: Apache-2.0 */
/* A rotary embedding in the form that both plugins use. Pure functions. */
#ifndef TANDEM_COMMON_OP_ROTARY_EMBEDDING_H
#define TANDEM_COMMON_OP_ROTARY_EMBEDDING_H

#include "common/op_class.h"

/* The strides are in elements. */
struct rotary_embedding {
    int64_t batch, heads, tokens, width;
    int64_t pairs; /* of the rotated elements of a row */
    /* Axes of x and the output: batch, heads, tokens and the last axis. */
    const int64_t *x, *out;
    /* cos, then sin: batch (0 with positions), tokens or positions, and the
     * last axis. */
    int64_t caches[2][3];
    const struct tandem_tensor_desc *positions; /* or NULL */
    int64_t length; /* number of positions in the caches */
    bool interleaved;
};

/* Describes a checked call. Refers to the strides of the tensors. */
void rotary_embedding_read(struct rotary_embedding *out,
                           const struct tandem_op *op,
                           const struct tandem_tensor_desc *const *inputs,
                           uint32_t input_count,
                           const struct tandem_tensor_desc *output);

#endif
