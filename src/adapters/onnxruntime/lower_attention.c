/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers attention operators; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <inttypes.h>
#include <math.h>

/* The inputs of an attention; NULL if absent.  Queries, keys and values have
 * the axes [batch, heads, tokens, width]. */
struct attention {
    struct operand q, k, v;
    struct operand *mask, *past_key, *past_value;
    double scale, softcap; /* scale 0: 1 / sqrt(width) */
    bool causal;
};

bool lower_heads_view(struct lowering *l, const struct operand *x,
                      int64_t heads, struct operand *out)
{
    const struct form_view *from = &x->view;
    struct form_view *to = &out->view;

    *out = *x;
    if (from->rank == 4)
        return true;
    if (from->rank != 3 || heads < 1 || from->shape[2] % heads != 0)
        return lower_fail(l,
                          "an input has rank %" PRIu32 " and its last axis "
                          "does not divide into %" PRId64 " heads",
                          from->rank, heads);
    to->rank = 4;
    to->shape[1] = heads;
    to->shape[2] = from->shape[1];
    to->shape[3] = from->shape[2] / heads;
    to->strides[1] = to->shape[3] * from->strides[2];
    to->strides[2] = from->strides[1];
    to->strides[3] = from->strides[2];
    return true;
}

/* Puts the past tokens before those of *x, and sets output `index`. */
static bool past_join(struct lowering *l, struct operand *past, uint32_t index,
                      struct operand *x)
{
    struct form_step step = step_make(l, TANDEM_OP_CONCAT);
    struct operand joined = *x;
    int64_t shape[4];

    if (past != NULL) {
        for (uint32_t i = 0; i < 4; i++)
            shape[i] = x->view.shape[i];
        if (past->view.rank != 4)
            return lower_fail(l, "the past has rank %" PRIu32, past->view.rank);
        shape[2] += past->view.shape[2];
        step.ints[0] = 2;
        step.int_count = 1;
        if (!lower_new(l, x->dtype, 4, shape, &joined) ||
            !step_add_input(l, &step, past) || !step_add_input(l, &step, x) ||
            !lower_step(l, &step, &joined))
            return false;
        *x = joined;
    }
    return index >= l->node->output_count ||
           l->node->outputs[index] == NO_VALUE ||
           lower_output(l, index, &joined);
}

/* A mask for fewer keys hides the others. */
static bool mask_extend(struct lowering *l, int64_t keys, struct operand *mask)
{
    const uint32_t rank = mask->view.rank;
    struct form_step step = step_make(l, TANDEM_OP_PAD);
    int64_t shape[TANDEM_MAX_RANK];
    struct operand out;

    if (rank < 1 || rank > 4)
        return lower_fail(l, "the mask has rank %" PRIu32, rank);
    if (mask->view.shape[rank - 1] >= keys)
        return true;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = mask->view.shape[i];
    step.ints[2 + 2 * rank - 1] = keys - shape[rank - 1];
    step.int_count = 2 + 2 * rank;
    step.floats[0] = -INFINITY;
    step.float_count = 1;
    shape[rank - 1] = keys;
    if (!lower_new(l, mask->dtype, rank, shape, &out) ||
        !step_add_input(l, &step, mask) || !lower_step(l, &step, &out))
        return false;
    *mask = out;
    return true;
}

/* Appends the attention. `tokens_first` is true if the output has the axes
 * [batch, tokens, heads * width]. */
static bool attention_append(struct lowering *l, struct attention *a,
                             bool tokens_first)
{
    struct form_step step = step_make(l, TANDEM_OP_ATTENTION);
    const int64_t batch = a->q.view.shape[0], heads = a->q.view.shape[1];
    const int64_t tokens = a->q.view.shape[2], width = a->v.view.shape[3];
    const int64_t whole[] = {batch, heads, tokens, width};
    const int64_t rows[] = {batch, tokens, heads * width};
    const int64_t past = a->past_key != NULL ? a->past_key->view.shape[2] : 0;
    struct operand out, seen, mask;

    if (!past_join(l, a->past_key, 1, &a->k) ||
        !past_join(l, a->past_value, 2, &a->v) ||
        !lower_new(l, TANDEM_F32, tokens_first ? 3 : 4,
                   tokens_first ? rows : whole, &out) ||
        !lower_heads_view(l, &out, heads, &seen))
        return false;
    step.ints[0] = a->causal;
    step.ints[1] = past;
    step.int_count = 2;
    step.floats[0] =
        a->scale != 0 ? a->scale : 1 / sqrt((double)a->q.view.shape[3]);
    step.floats[1] = a->softcap;
    step.float_count = 2;
    if (!step_add_input(l, &step, &a->q) || !step_add_input(l, &step, &a->k) ||
        !step_add_input(l, &step, &a->v))
        return false;
    if (a->mask != NULL) {
        mask = *a->mask;
        if (!mask_extend(l, a->k.view.shape[2], &mask) ||
            !step_add_input(l, &step, &mask))
            return false;
    }
    return lower_step(l, &step, &seen) && lower_output(l, 0, &out);
}

/* Attention of ONNX. */
bool lower_attention(struct lowering *l)
{
    const int64_t heads = graph_integer(l->node, "q_num_heads", 0);
    const int64_t key_heads = graph_integer(l->node, "kv_num_heads", heads);
    const struct operand *q = lower_input_operand(l, 0);
    struct attention a = {.mask = lower_input_operand(l, 3),
                          .past_key = lower_input_operand(l, 4),
                          .past_value = lower_input_operand(l, 5),
                          .scale = graph_real(l->node, "scale", 0),
                          .softcap = graph_real(l->node, "softcap", 0),
                          .causal =
                              graph_integer(l->node, "is_causal", 0) != 0};

    return lower_heads_view(l, q, heads, &a.q) &&
           lower_heads_view(l, lower_input_operand(l, 1), key_heads, &a.k) &&
           lower_heads_view(l, lower_input_operand(l, 2), key_heads, &a.v) &&
           attention_append(l, &a, q->view.rank == 3);
}

/* MultiHeadAttention of com.microsoft without bias and padding mask. */
bool lower_multi_head_attention(struct lowering *l)
{
    const int64_t heads = graph_integer(l->node, "num_heads", 0);
    struct attention a = {.mask = lower_input_operand(l, 5),
                          .past_key = lower_input_operand(l, 6),
                          .past_value = lower_input_operand(l, 7),
                          .scale = graph_real(l->node, "scale", 0),
                          .causal =
                              graph_integer(l->node, "unidirectional", 0) != 0};

    return lower_heads_view(l, lower_input_operand(l, 0), heads, &a.q) &&
           lower_heads_view(l, lower_input_operand(l, 1), heads, &a.k) &&
           lower_heads_view(l, lower_input_operand(l, 2), heads, &a.v) &&
           attention_append(l, &a, true);
}
