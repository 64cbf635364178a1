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
    int64_t past;          /* number of past tokens in k and v */
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

/* Puts the past tokens before those of k and v, and sets outputs 1 and 2. */
static bool pasts_join(struct lowering *l, struct attention *a)
{
    if (a->past_key != NULL && a->past_key->view.rank == 4)
        a->past = a->past_key->view.shape[2];
    return past_join(l, a->past_key, 1, &a->k) &&
           past_join(l, a->past_value, 2, &a->v);
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
    struct operand out, seen, mask;

    if (!lower_new(l, TANDEM_F32, tokens_first ? 3 : 4,
                   tokens_first ? rows : whole, &out) ||
        !lower_heads_view(l, &out, heads, &seen))
        return false;
    step.ints[0] = a->causal;
    step.ints[1] = a->past;
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
           pasts_join(l, &a) && attention_append(l, &a, q->view.rank == 3);
}

/* ---- com.microsoft ------------------------------------------------------ */

/* Sets *out to the bools x > 0. */
static bool integer_is_positive(struct lowering *l, struct operand *x,
                                struct operand *out)
{
    struct form_step step = step_make(l, TANDEM_OP_GREATER);

    step.floats[0] = 0;
    step.float_count = 1;
    return step_add_input(l, &step, x) && step_add_input(l, &step, NULL) &&
           lower_new(l, TANDEM_BOOL, x->view.rank, x->view.shape, out) &&
           lower_step(l, &step, out);
}

/* Makes a mask that is added to the scores from a padding mask of i32, which is
 * positive for keys that count and has the axes [batch, keys] or [batch,
 * queries, keys], and from the attention bias. Both may be NULL. Sets *out to
 * NULL if both are. */
static bool padding_make(struct lowering *l, struct operand *padding,
                         struct operand *bias, int64_t keys,
                         struct operand *space, struct operand **out)
{
    const double masked = graph_real(l->node, "mask_filter_value", -10000);
    struct form_step step = step_make(l, TANDEM_OP_WHERE);
    struct operand zero, low, positive;
    struct form_view *view = &positive.view;
    int64_t shape[4];
    uint32_t rank;

    *out = bias;
    if (padding == NULL)
        return true;
    rank = padding->view.rank;
    if (rank != 2 && rank != 3)
        return lower_fail(l, "the mask has rank %" PRIu32 "; expected 2 or 3",
                          rank);
    if (padding->view.shape[rank - 1] != keys)
        return lower_fail(l, "the mask has %" PRId64 " keys; expected %" PRId64,
                          padding->view.shape[rank - 1], keys);
    if (!lower_new_constant(l, 0, 0, NULL, &zero) ||
        !lower_new_constant(l, masked, 0, NULL, &low) ||
        !integer_is_positive(l, padding, &positive))
        return false;
    /* Adds axes for the heads and, if necessary, the queries. */
    view->shape[3] = view->shape[rank - 1];
    view->strides[3] = view->strides[rank - 1];
    view->shape[2] = rank == 3 ? view->shape[1] : 1;
    view->strides[2] = rank == 3 ? view->strides[1] : 0;
    view->shape[1] = 1;
    view->strides[1] = 0;
    view->rank = 4;
    for (uint32_t i = 0; i < 4; i++)
        shape[i] = view->shape[i];
    zero = operand_align(&zero, 4);
    low = operand_align(&low, 4);
    *out = space;
    return step_add_input(l, &step, &positive) &&
           step_add_input(l, &step, &zero) && step_add_input(l, &step, &low) &&
           lower_new(l, TANDEM_F32, 4, shape, space) &&
           lower_step(l, &step, space) &&
           (bias == NULL || lower_binary(l, TANDEM_OP_ADD, space, bias, space));
}

/* Returns a view of `count` columns of a tensor. */
static struct operand columns_view(const struct operand *x, int64_t first,
                                   int64_t count)
{
    const uint32_t last = x->view.rank - 1;
    struct operand out = *x;

    out.view.first_element += first * x->view.strides[last];
    out.view.shape[last] = count;
    return out;
}

/* Adds columns of the bias, from `*first` on, to an input of rank 3.  The bias
 * may be NULL. */
static bool bias_add(struct lowering *l, const struct operand *bias,
                     int64_t *first, const struct operand *x,
                     struct operand *out)
{
    struct operand source = *x, part;
    int64_t columns;

    *out = *x;
    if (bias == NULL)
        return true;
    columns = x->view.shape[x->view.rank - 1];
    if (x->view.rank != 3 || bias->view.rank != 1 ||
        columns > bias->view.shape[0] - *first)
        return lower_fail(
            l, "the bias does not fit inputs of %" PRId64 " columns", columns);
    part = columns_view(bias, *first, columns);
    *first += columns;
    return lower_binary(l, TANDEM_OP_ADD, &source, &part, out);
}

/* MultiHeadAttention with separate queries, keys and values. */
bool lower_multi_head_attention(struct lowering *l)
{
    const int64_t heads = graph_integer(l->node, "num_heads", 0);
    const struct operand *bias = lower_input_operand(l, 3);
    struct attention a = {.past_key = lower_input_operand(l, 6),
                          .past_value = lower_input_operand(l, 7),
                          .scale = graph_real(l->node, "scale", 0),
                          .causal =
                              graph_integer(l->node, "unidirectional", 0) != 0};
    struct operand q, k, v, space;
    int64_t first = 0;

    return bias_add(l, bias, &first, lower_input_operand(l, 0), &q) &&
           bias_add(l, bias, &first, lower_input_operand(l, 1), &k) &&
           bias_add(l, bias, &first, lower_input_operand(l, 2), &v) &&
           lower_heads_view(l, &q, heads, &a.q) &&
           lower_heads_view(l, &k, heads, &a.k) &&
           lower_heads_view(l, &v, heads, &a.v) && pasts_join(l, &a) &&
           padding_make(l, lower_input_operand(l, 4), lower_input_operand(l, 5),
                        a.k.view.shape[2], &space, &a.mask) &&
           attention_append(l, &a, true);
}

/* Multiplies the input by the weights, and adds the bias. */
static bool projection_make(struct lowering *l, struct operand *out)
{
    struct form_step step = step_make(l, TANDEM_OP_GEMM);
    struct operand *x = lower_input_operand(l, 0);
    struct operand *weights = lower_input_operand(l, 1);
    struct operand *bias = lower_input_operand(l, 2), rows, product;
    int64_t shape[3], matrix[2];

    if (x->view.rank != 3 || weights->view.rank != 2 ||
        x->view.shape[2] != weights->view.shape[0] ||
        (bias != NULL && (bias->view.rank != 1 ||
                          bias->view.shape[0] != weights->view.shape[1])))
        return lower_fail(l, "the weights or bias do not fit the input");
    for (uint32_t i = 0; i < 2; i++)
        shape[i] = x->view.shape[i];
    shape[2] = matrix[1] = weights->view.shape[1];
    matrix[0] = shape[0] * shape[1];
    return lower_reshape(l, x, 2, (int64_t[]){matrix[0], x->view.shape[2]},
                         &rows) &&
           lower_new(l, TANDEM_F32, 2, matrix, &product) &&
           step_add_input(l, &step, &rows) &&
           step_add_input(l, &step, weights) &&
           step_add_input(l, &step, bias) && lower_step(l, &step, &product) &&
           lower_reshape(l, &product, 3, shape, out);
}

/* Returns half `index` of a tensor [2, ...]. */
static struct operand half_view(const struct operand *x, int64_t index)
{
    struct operand out = *x;

    out.view.rank--;
    out.view.first_element += index * x->view.strides[0];
    for (uint32_t i = 0; i < out.view.rank; i++) {
        out.view.shape[i] = x->view.shape[i + 1];
        out.view.strides[i] = x->view.strides[i + 1];
    }
    return out;
}

/* Makes output 1, which holds the past and the new keys and values, and lets k
 * and v be its halves. */
static bool present_make(struct lowering *l, const struct operand *past,
                         struct attention *a)
{
    struct operand *const parts[] = {&a->k, &a->v};
    const int64_t *k = a->k.view.shape;
    struct operand present, to, from;
    int64_t shape[5] = {2, k[0], k[1], k[2], k[3]};

    if (past == NULL &&
        (l->node->output_count < 2 || l->node->outputs[1] == NO_VALUE))
        return true;
    if (a->v.view.shape[3] != k[3] ||
        (past != NULL &&
         (past->view.rank != 5 || past->view.shape[0] != 2 ||
          past->view.shape[1] != k[0] || past->view.shape[2] != k[1] ||
          past->view.shape[4] != k[3])))
        return lower_fail(l,
                          "the past does not fit keys and values of width "
                          "%" PRId64,
                          k[3]);
    a->past = past != NULL ? past->view.shape[3] : 0;
    shape[3] += a->past;
    if (!lower_new(l, TANDEM_F32, 5, shape, &present))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        struct form_step step = step_make(l, TANDEM_OP_CONCAT);

        to = half_view(&present, i);
        step.ints[0] = 2;
        step.int_count = 1;
        if (past == NULL) {
            if (!lower_copy(l, parts[i], &to))
                return false;
        } else {
            from = half_view(past, i);
            if (!step_add_input(l, &step, &from) ||
                !step_add_input(l, &step, parts[i]) ||
                !lower_step(l, &step, &to))
                return false;
        }
        *parts[i] = to;
    }
    return lower_output(l, 1, &present);
}

/* Attention, which projects its input to queries, keys and values. */
bool lower_microsoft_attention(struct lowering *l)
{
    const int64_t heads = graph_integer(l->node, "num_heads", 0);
    struct attention a = {.scale = graph_real(l->node, "scale", 0),
                          .causal =
                              graph_integer(l->node, "unidirectional", 0) != 0};
    struct operand *const parts[] = {&a.q, &a.k, &a.v};
    struct operand all, part, space;
    int64_t first = 0, columns;

    if (!projection_make(l, &all))
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        columns = graph_list_integer(l->node, "qkv_hidden_sizes", i,
                                     all.view.shape[2] / 3);
        if (columns < 0 || columns > all.view.shape[2] - first)
            return lower_fail(l, "qkv_hidden_sizes exceed the weights");
        part = columns_view(&all, first, columns);
        first += columns;
        if (!lower_heads_view(l, &part, heads, parts[i]))
            return false;
    }
    return present_make(l, lower_input_operand(l, 4), &a) &&
           padding_make(l, lower_input_operand(l, 3), lower_input_operand(l, 5),
                        a.k.view.shape[2], &space, &a.mask) &&
           attention_append(l, &a, true);
}
