/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers attention that fusion_attention.c recognised; see lower.h.
 *
 * Inputs: q, k, v, a mask that is added to the scores, and the condition of a
 * Where that masks scores.  q, k, v and the masks broadcast as they do in the
 * products and sums that the attention replaces. */
#include <config.h>

#include "adapters/onnxruntime/lower_ops.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

/* Axes of the operator: batch, heads, queries or keys, and the last axis. */
#define AXES 4u

/* The scores have the axes [..., queries, keys]. */
struct fused_attention {
    struct operand q, k, v;
    struct operand *added, *chosen; /* masks, or NULL */
    struct operand mask;            /* not present if the step has no mask */
    bool causal;
    uint32_t rank; /* of the scores */
    int64_t shape[TANDEM_MAX_RANK];
    int64_t queries, keys;
};

/* Returns the operand with the lengths of its last two axes. */
static struct operand operand_shaped(const struct operand *operand,
                                     int64_t rows, int64_t columns)
{
    struct operand shaped = *operand;

    shaped.view.shape[shaped.view.rank - 2] = rows;
    shaped.view.shape[shaped.view.rank - 1] = columns;
    return shaped;
}

/* Computes the shape of the scores. */
static bool scores_shape(struct lowering *l, struct fused_attention *a)
{
    struct operand q =
        operand_shaped(&a->q, a->q.view.shape[a->q.view.rank - 2], 1);
    struct operand k =
        operand_shaped(&a->k, 1, a->k.view.shape[a->k.view.rank - 2]);
    struct operand v = operand_shaped(&a->v, 1, 1);
    struct operand *operands[5] = {&q, &k, &v};
    uint32_t count = 3;

    if (a->added != NULL)
        operands[count++] = a->added;
    if (a->chosen != NULL)
        operands[count++] = a->chosen;
    if (!lower_broadcast(l, operands, count, &a->rank, a->shape))
        return false;
    a->queries = a->shape[a->rank - 2];
    a->keys = a->shape[a->rank - 1];
    return true;
}

/* Reads q, k and v, and checks their widths. */
static bool attention_init(struct lowering *l, struct fused_attention *a)
{
    uint32_t last;

    a->q = *lower_input_operand(l, 0);
    a->k = *lower_input_operand(l, 1);
    a->v = *lower_input_operand(l, 2);
    a->added = lower_input_operand(l, 3);
    a->chosen = lower_input_operand(l, 4);
    if (a->q.view.rank < 2 || a->k.view.rank < 2 || a->v.view.rank < 2)
        return lower_fail(l, "an operand has fewer than two axes");
    last = a->k.view.rank - 1;
    if (graph_integer(l->node, "keys_are_rows", 0) == 0) {
        struct form_view *view = &a->k.view;
        const int64_t shape = view->shape[last], stride = view->strides[last];

        view->shape[last] = view->shape[last - 1];
        view->strides[last] = view->strides[last - 1];
        view->shape[last - 1] = shape;
        view->strides[last - 1] = stride;
    }
    if (a->q.view.shape[a->q.view.rank - 1] != a->k.view.shape[last])
        return lower_fail(l,
                          "the queries have %" PRId64 " columns and the keys "
                          "%" PRId64,
                          a->q.view.shape[a->q.view.rank - 1],
                          a->k.view.shape[last]);
    if (!scores_shape(l, a))
        return false;
    if (a->v.view.shape[a->v.view.rank - 2] != a->keys)
        return lower_fail(l,
                          "there are %" PRId64 " keys and %" PRId64 " values",
                          a->keys, a->v.view.shape[a->v.view.rank - 2]);
    return true;
}

/* Repeats an operand along the first axes of the scores, and its last two axes
 * to the given lengths. */
static bool operand_expand(struct lowering *l, const struct fused_attention *a,
                           int64_t rows, int64_t columns,
                           struct operand *operand)
{
    const struct operand source = *operand;
    struct operand scores = {.view = {.rank = a->rank}};

    for (uint32_t i = 0; i < a->rank; i++)
        scores.view.shape[i] = a->shape[i];
    scores = operand_shaped(&scores, rows, columns);
    return lower_expand(l, &source, a->rank, scores.view.shape, operand);
}

/* ---- masks -------------------------------------------------------------- */

/* Returns the content of a constant of bools, or NULL. */
static const uint8_t *constant_bools(const struct lowering *l,
                                     const struct operand *mask)
{
    const struct form_storage *storage;

    if (mask->view.storage == NO_STORAGE)
        return NULL;
    storage = &l->form->storages[mask->view.storage];
    if (storage->kind != STORAGE_CONSTANT && storage->kind != STORAGE_FOLDED)
        return NULL;
    return storage->content;
}

/* Returns true if the content of the condition is known, and if it is true for
 * the keys 0 to i + keys - queries of query i. */
static bool condition_is_causal(const struct lowering *l,
                                const struct fused_attention *a)
{
    const struct form_view *view = &a->chosen->view;
    const int64_t *integers = a->chosen->integers;
    const uint8_t *bools = constant_bools(l, a->chosen);
    const int64_t queries = a->queries, keys = a->keys;

    if ((integers == NULL && bools == NULL) || view->rank < 2 ||
        queries > keys || view->shape[view->rank - 2] != queries ||
        view->shape[view->rank - 1] != keys)
        return false;
    for (uint32_t i = 0; i + 2 < view->rank; i++) {
        if (view->shape[i] != 1)
            return false;
    }
    for (int64_t i = 0; i < queries; i++) {
        for (int64_t k = 0; k < keys; k++) {
            const bool visible =
                integers != NULL
                    ? integers[i * keys + k] != 0
                    : bools[view->first_element +
                            i * view->strides[view->rank - 2] +
                            k * view->strides[view->rank - 1]] != 0;

            if (visible != (k <= i + keys - queries))
                return false;
        }
    }
    return true;
}

/* Appends out = condition ? x : y. */
static bool append_where(struct lowering *l, struct operand *condition,
                         struct operand *x, struct operand *y,
                         struct operand *out)
{
    struct operand *const operands[] = {condition, x, y};
    struct form_step step = step_make(l, TANDEM_OP_WHERE);
    int64_t shape[TANDEM_MAX_RANK];
    struct operand aligned;
    uint32_t rank;

    if (!lower_broadcast(l, operands, 3, &rank, shape))
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        aligned = operand_align(operands[i], rank);
        if (!step_add_input(l, &step, &aligned))
            return false;
    }
    return lower_new(l, TANDEM_F32, rank, shape, out) &&
           lower_step(l, &step, out);
}

/* Makes a mask that is added to the scores from a condition and, if any, a mask
 * that is added before or after the condition is applied.
 *
 * Only the softmax reads masked scores.  If a query has other keys, all scores
 * of at most -1e4 have the weight 0.  If all keys of a query are masked, all of
 * them have the same finite score and weight, as with -FLT_MAX, which absorbs
 * the score that it is added to. */
static bool mask_merge(struct lowering *l, const struct fused_attention *a,
                       struct operand *mask)
{
    const bool keeps = graph_integer(l->node, "keeps", 1) != 0;
    const bool last = graph_integer(l->node, "chooses_last", 0) != 0;
    const double masked = graph_real(l->node, "masked", -INFINITY);
    struct operand zero, low, *other = &zero;

    if (!lower_new_constant(l, 0, 0, NULL, &zero) ||
        !lower_new_constant(l, masked == -INFINITY ? masked : -FLT_MAX, 0, NULL,
                            &low))
        return false;
    if (a->added != NULL && last)
        other = a->added;
    return append_where(l, a->chosen, keeps ? other : &low,
                        keeps ? &low : other, mask) &&
           (a->added == NULL || last ||
            lower_binary(l, TANDEM_OP_ADD, mask, a->added, mask));
}

/* Sets the mask, or makes the attention causal. */
static bool mask_make(struct lowering *l, struct fused_attention *a)
{
    const bool keeps = graph_integer(l->node, "keeps", 1) != 0;

    if (a->chosen == NULL && a->added == NULL)
        return true;
    if (a->chosen == NULL) {
        a->mask = *a->added;
    } else if (a->added == NULL && keeps && condition_is_causal(l, a)) {
        a->causal = true;
        return true;
    } else if (a->added == NULL && keeps &&
               graph_real(l->node, "masked", 0) == -INFINITY) {
        a->mask = *a->chosen;
    } else if (!mask_merge(l, a, &a->mask)) {
        return false;
    }
    return a->rank <= AXES ||
           operand_expand(l, a, a->queries, a->keys, &a->mask);
}

/* ---- the attention ------------------------------------------------------ */

/* Makes the output.  Stores the axes [batch, tokens, heads, width] if the next
 * node exchanges heads and tokens. */
static bool output_make(struct lowering *l, const struct fused_attention *a,
                        struct operand *out)
{
    struct form_view *view = &out->view;
    int64_t shape[TANDEM_MAX_RANK], stride;

    for (uint32_t i = 0; i < a->rank; i++)
        shape[i] = a->shape[i];
    shape[a->rank - 1] = a->v.view.shape[a->v.view.rank - 1];
    if (a->rank != AXES || graph_integer(l->node, "tokens_first", 0) == 0)
        return lower_new(l, TANDEM_F32, a->rank, shape, out);
    shape[1] = a->shape[2];
    shape[2] = a->shape[1];
    if (!lower_new(l, TANDEM_F32, a->rank, shape, out))
        return false;
    stride = view->strides[1];
    view->shape[1] = a->shape[1];
    view->shape[2] = a->shape[2];
    view->strides[1] = view->strides[2];
    view->strides[2] = stride;
    return true;
}

/* Returns part `index` of an operand: the last four axes.  Parts are counted in
 * row-major order of the other axes. */
static struct operand operand_part(const struct operand *operand, int64_t index)
{
    const struct form_view *from = &operand->view;
    struct operand part = *operand;

    if (from->rank <= AXES)
        return operand_align(operand, AXES);
    for (uint32_t i = from->rank - AXES; i-- > 0;) {
        part.view.first_element += index % from->shape[i] * from->strides[i];
        index /= from->shape[i];
    }
    part.view.rank = AXES;
    for (uint32_t i = 0; i < AXES; i++) {
        part.view.shape[i] = from->shape[from->rank - AXES + i];
        part.view.strides[i] = from->strides[from->rank - AXES + i];
    }
    return part;
}

/* Appends the attention of a part of all operands. */
static bool append_part(struct lowering *l, struct fused_attention *a,
                        const struct operand *out, int64_t index)
{
    struct operand *const inputs[] = {&a->q, &a->k, &a->v, &a->mask};
    const struct operand out_part = operand_part(out, index);
    struct form_step step = step_make(l, TANDEM_OP_ATTENTION);
    struct operand part;

    step.ints[0] = a->causal;
    step.ints[1] = a->causal ? a->keys - a->queries : 0;
    step.int_count = 2;
    step.floats[0] = graph_real(l->node, "scale", 1);
    step.float_count = 2;
    for (uint32_t i = 0; i < 4 && inputs[i]->present; i++) {
        part = operand_part(inputs[i], index);
        if (!step_add_input(l, &step, &part))
            return false;
    }
    return lower_step(l, &step, &out_part);
}

bool lower_fused_attention(struct lowering *l)
{
    struct fused_attention a = {.causal = false};
    struct operand out;
    int64_t parts = 1;

    if (!attention_init(l, &a) || !mask_make(l, &a) ||
        !output_make(l, &a, &out) ||
        !operand_expand(l, &a, a.queries, a.q.view.shape[a.q.view.rank - 1],
                        &a.q) ||
        !operand_expand(l, &a, a.keys, a.k.view.shape[a.k.view.rank - 1],
                        &a.k) ||
        !operand_expand(l, &a, a.keys, a.v.view.shape[a.v.view.rank - 1], &a.v))
        return false;
    for (uint32_t i = 0; i + AXES < a.rank; i++)
        parts *= a.shape[i];
    for (int64_t i = 0; i < parts; i++) {
        if (!append_part(l, &a, &out, i))
            return false;
    }
    return lower_output(l, 0, &out);
}
