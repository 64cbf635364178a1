/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers rotary embeddings; see lower.h. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"

#include <inttypes.h>

/* Sets *out to the numbers 0 to count - 1, with the shape [1, count]. */
static bool counting_make(struct lowering *l, uint32_t dtype, int64_t count,
                          struct operand *out)
{
    const int64_t shape[] = {1, count};

    if (!lower_new_integers(l, dtype, 2, shape, out))
        return false;
    for (int64_t i = 0; i < count; i++)
        out->integers[i] = i;
    return true;
}

/* Makes positions [batch, tokens].  A single position is that of the first
 * token. */
static bool positions_make(struct lowering *l, struct operand *positions,
                           int64_t batch, int64_t tokens, struct operand *out)
{
    const int64_t shape[] = {batch, tokens};
    struct operand first = *positions, counting, sum;

    if (first.view.rank == 2) {
        *out = first;
        return true;
    }
    if (first.view.rank != 1 || first.view.shape[0] != 1)
        return lower_fail(l,
                          "the positions have rank %" PRIu32
                          "; expected 2, or one position",
                          first.view.rank);
    return counting_make(l, first.dtype, tokens, &counting) &&
           lower_binary(l, TANDEM_OP_ADD, &first, &counting, &sum) &&
           lower_expand(l, &sum, 2, shape, out);
}

/* Appends the step.  `heads` is used if x has rank 3. */
static bool rotary_append(struct lowering *l, int64_t heads,
                          struct operand *cos, struct operand *sin,
                          struct operand *positions)
{
    const struct operand *x = lower_input_operand(l, 0);
    struct form_step step = step_make(l, TANDEM_OP_ROTARY_EMBEDDING);
    struct operand rows, out, out_rows, all;

    if (!lower_heads_view(l, x, heads, &rows) ||
        !lower_new(l, TANDEM_F32, x->view.rank, x->view.shape, &out) ||
        !lower_heads_view(l, &out, heads, &out_rows))
        return false;
    step.ints[0] = graph_integer(l->node, "interleaved", 0) != 0;
    step.ints[1] = graph_integer(l->node, "rotary_embedding_dim", 0);
    step.int_count = 2;
    if (!step_add_input(l, &step, &rows) || !step_add_input(l, &step, cos) ||
        !step_add_input(l, &step, sin))
        return false;
    if (positions != NULL && (!positions_make(l, positions, rows.view.shape[0],
                                              rows.view.shape[2], &all) ||
                              !step_add_input(l, &step, &all)))
        return false;
    return lower_step(l, &step, &out_rows) && lower_output(l, 0, &out);
}

/* RotaryEmbedding of ONNX. */
bool lower_rotary_embedding(struct lowering *l)
{
    return rotary_append(l, graph_integer(l->node, "num_heads", 0),
                         lower_input_operand(l, 1), lower_input_operand(l, 2),
                         lower_input_operand(l, 3));
}

/* RotaryEmbedding of com.microsoft, where the caches tell the number of heads
 * if the attribute is absent. */
bool lower_microsoft_rotary_embedding(struct lowering *l)
{
    const struct form_view *x = &lower_input_operand(l, 0)->view;
    struct operand *cos = lower_input_operand(l, 2);
    int64_t heads = graph_integer(l->node, "num_heads", 0);

    if (cos->view.rank != 2)
        return lower_fail(l, "cos_cache has rank %" PRIu32 "; expected 2",
                          cos->view.rank);
    if (heads == 0 && x->rank == 3 && cos->view.shape[1] > 0)
        heads = x->shape[2] / (2 * cos->view.shape[1]);
    return rotary_append(l, heads, cos, lower_input_operand(l, 3),
                         lower_input_operand(l, 1));
}
