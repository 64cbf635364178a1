/* SPDX-License-Identifier: Apache-2.0 */
/* An attention call in the form that both plugins use. Pure functions. */
#ifndef TANDEM_COMMON_OP_ATTENTION_H
#define TANDEM_COMMON_OP_ATTENTION_H

#include "common/op_class.h"

/* Strides of batch, heads, queries or keys, and the last axis, in elements. */
struct attention_strides {
    int64_t batch, head, row, column;
};

struct attention {
    int64_t batch, heads, queries, keys, width, value_width;
    int64_t group; /* heads of q for each head of k and v */
    struct attention_strides q, k, v, out;
    struct attention_strides mask;                /* the columns are keys */
    const struct tandem_tensor_desc *mask_tensor; /* or NULL */
    bool causal;
    int64_t past;
    float scale, softcap; /* softcap 0: none */
};

/* Describes a checked call. */
void attention_read(struct attention *out, const struct tandem_op *op,
                    const struct tandem_tensor_desc *const *inputs,
                    uint32_t input_count,
                    const struct tandem_tensor_desc *output);

/* Returns the end of the keys that a query has. */
static inline int64_t attention_key_end(const struct attention *attention,
                                        int64_t query)
{
    int64_t last;
    if (!attention->causal ||
        __builtin_add_overflow(query, attention->past, &last) ||
        last >= attention->keys)
        return attention->keys;
    return last < 0 ? 0 : last + 1;
}

#endif
