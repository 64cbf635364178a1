/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises attention that was written as matrix products and a softmax; see
 * fusion_attention.h.
 *
 * The search starts at the softmax.  The scores before it are a product of
 * matrices, then a scale, then masks, each of which may be absent.  A mask is
 * a sum with a tensor, or a Where that puts a constant in place of scores.
 * Exporters write the scale as a factor of the scores or of q and k. */
#include <config.h>

#include "adapters/onnxruntime/fusion_attention.h"
#include "adapters/onnxruntime/lower_ops.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <math.h>
#include <string.h>

/* A score of at most this masks a key: the softmax gives it the weight 0 if
 * another score is above -9800. */
#define MAX_MASKED_SCORE (-1e4)

/* The attention that a group of nodes computes. */
struct attention_pattern {
    struct match match;
    int32_t q, k, v;
    int32_t added;      /* mask that is added to the scores, or NO_VALUE */
    int32_t chosen;     /* condition of a Where, or NO_VALUE */
    bool keeps;         /* the condition is true for scores that remain */
    bool chooses_last;  /* the Where follows the sum */
    double masked;      /* score of the other keys */
    double scale;       /* factor of the scores */
    bool keys_are_rows; /* k has the axes [..., keys, width] */
};

/* ---- nodes -------------------------------------------------------------- */

/* Returns true if the node is a product of two matrices, which may multiply its
 * result by *out_scale.  Sets *out_transposed if it transposes b. */
static bool is_product(const struct graph_node *node, double *out_scale,
                       bool *out_transposed)
{
    const bool fused = node != NULL && !node->removed && node->op != NULL &&
                       node->op->lower == lower_fused_matmul &&
                       graph_integer(node, "transA", 0) == 0;

    *out_scale = fused ? graph_real(node, "alpha", 1) : 1;
    *out_transposed = fused && graph_integer(node, "transB", 0) != 0;
    return fused || (node_is_type(node, "MatMul") && node->op != NULL);
}

/* Returns true if the value has 2 to 4 axes.  ONNX Runtime reports rank 0 if it
 * does not know the rank. */
static bool has_matrices(const struct fusion *f, int32_t index)
{
    const struct graph_value *value = &f->graph->values[index];

    return value->has_shape && value->rank >= 2 && value->rank <= 4;
}

/* Returns true if the value may have 2 to 4 axes.  The rank of masks that are
 * computed is often unknown. */
static bool may_have_matrices(const struct fusion *f, int32_t index)
{
    const struct graph_value *value = &f->graph->values[index];

    return !value->has_shape || value->rank == 0 || has_matrices(f, index);
}

static bool is_row_softmax(const struct fusion *f,
                           const struct graph_node *node)
{
    const int64_t axis =
        graph_integer(node, "axis", node->since_version >= 13 ? -1 : 1);

    return node->op != NULL && may_have_matrices(f, node->outputs[0]) &&
           (axis == -1 ||
            (has_matrices(f, node->outputs[0]) &&
             axis == (int64_t)f->graph->values[node->outputs[0]].rank - 1));
}

/* Returns the factor by which a node multiplies *out_other, or 0 if the node
 * does something else. */
static double node_factor(const struct fusion *f, const struct graph_node *node,
                          int32_t *out_other)
{
    const bool divides = node_is_type(node, "Div");
    double factor;

    if ((!divides && !node_is_type(node, "Mul")) || node->op == NULL ||
        node->input_count != 2)
        return 0;
    for (uint32_t i = divides ? 1 : 0; i < 2; i++) {
        *out_other = node->inputs[1 - i];
        if (value_constant(f, node->inputs[i], &factor) &&
            f->graph->values[node->inputs[i]].dtype == TANDEM_F32 &&
            has_matrices(f, *out_other))
            return divides ? 1 / factor : factor;
    }
    return 0;
}

/* ---- masks -------------------------------------------------------------- */

/* Returns the number of the input of a Where that is a constant of at most
 * MAX_MASKED_SCORE.  Returns 0 if neither input is one. */
static uint32_t masked_input(const struct fusion *f,
                             const struct graph_node *node, double *out)
{
    for (uint32_t i = 1; i < 3; i++) {
        if (value_constant(f, node->inputs[i], out) && *out <= MAX_MASKED_SCORE)
            return i;
    }
    return 0;
}

/* Lets a condition be the mask if the sum's tensor is Where(condition, 0,
 * -infinity). */
static void absorb_condition(struct fusion *f, struct attention_pattern *p)
{
    struct graph_node *where;
    double masked;

    if (p->added == NO_VALUE || p->chosen != NO_VALUE)
        return;
    where = value_private_producer(f, p->added, 1);
    if (!node_is_type(where, "Where") || where->op == NULL ||
        !value_is_constant(f, where->inputs[1], 0) ||
        masked_input(f, where, &masked) != 2 || masked != -INFINITY ||
        !match_add(&p->match, where))
        return;
    p->chosen = where->inputs[0];
    p->keeps = true;
    p->masked = masked;
    p->added = NO_VALUE;
}

/* ---- the scores --------------------------------------------------------- */

/* Lets *value be the input of a product with a constant, whose factor the scale
 * gets. */
static void absorb_factor(struct fusion *f, struct attention_pattern *p,
                          int32_t *value)
{
    struct graph_node *node = value_private_producer(f, *value, 1);
    int32_t input = NO_VALUE;
    const double factor = node_factor(f, node, &input);

    if (!isnormal((float)(p->scale * factor)) || !match_add(&p->match, node))
        return;
    p->scale *= factor;
    *value = input;
}

/* Matches the scale and the product. */
static bool match_product(struct fusion *f, int32_t value,
                          struct attention_pattern *p)
{
    struct graph_node *node;
    double factor;

    absorb_factor(f, p, &value);
    node = value_private_producer(f, value, 1);
    if (!is_product(node, &factor, &p->keys_are_rows) ||
        !match_add(&p->match, node))
        return false;
    p->scale *= factor;
    p->q = node->inputs[0];
    p->k = node->inputs[1];
    if (p->q != p->k) {
        absorb_factor(f, p, &p->q);
        absorb_factor(f, p, &p->k);
    }
    return isnormal((float)p->scale) && has_matrices(f, p->q) &&
           has_matrices(f, p->k);
}

static bool match_scores(struct fusion *f, int32_t value,
                         struct attention_pattern *p);

/* Matches a sum of scores and a mask. */
static bool match_sum(struct fusion *f, const struct graph_node *sum,
                      struct attention_pattern *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct attention_pattern found = *p;

        found.added = sum->inputs[1 - i];
        found.chooses_last = p->chosen != NO_VALUE;
        if (match_scores(f, sum->inputs[i], &found)) {
            *p = found;
            return true;
        }
    }
    return false;
}

/* Matches the scores before the softmax from their last node. */
static bool match_scores(struct fusion *f, int32_t value,
                         struct attention_pattern *p)
{
    struct graph_node *node = value_private_producer(f, value, 1);
    uint32_t masked;

    if (node == NULL || node->op == NULL)
        return false;
    if (node_is_type(node, "Add") && p->added == NO_VALUE)
        return match_add(&p->match, node) && match_sum(f, node, p);
    if (!node_is_type(node, "Where") || p->chosen != NO_VALUE)
        return match_product(f, value, p);
    masked = masked_input(f, node, &p->masked);
    if (masked == 0 || !match_add(&p->match, node))
        return false;
    p->chosen = node->inputs[0];
    p->keeps = masked == 2;
    return match_scores(f, node->inputs[3 - masked], p);
}

/* ---- the weights -------------------------------------------------------- */

/* PyTorch replaces NaN, the weights of a query without keys, by 0, which the
 * operator does as well.  Returns the last node that computes the weights. */
static struct graph_node *match_nan_guard(struct fusion *f,
                                          struct graph_node *softmax,
                                          struct match *match)
{
    const int32_t weights = softmax->outputs[0];
    const struct graph_value *value = &f->graph->values[weights];
    struct graph_node *where, *test;

    if (value->readers != 2 || value->is_output ||
        f->reader[weights] == NO_VALUE)
        return softmax;
    where = &f->graph->nodes[f->reader[weights]];
    if (!node_is_type(where, "Where") || where->inputs[2] != weights ||
        !value_is_constant(f, where->inputs[1], 0))
        return softmax;
    test = value_private_producer(f, where->inputs[0], 1);
    if (!node_is_type(test, "IsNaN") || test->inputs[0] != weights ||
        !match_add(match, where) || !match_add(match, test))
        return softmax;
    return where;
}

/* Returns true if the node exchanges heads and tokens. */
static bool exchanges_heads(const struct graph_node *node)
{
    static const int64_t order[] = {0, 2, 1, 3};
    const struct graph_attribute *perm =
        node_is_type(node, "Transpose") ? graph_attribute(node, "perm") : NULL;

    return perm != NULL && perm->integer_count == 4 &&
           memcmp(perm->integers, order, sizeof(order)) == 0;
}

/* ---- replacement -------------------------------------------------------- */

static const struct onnx_operator fused_attention = {
    .domain = "",
    .type = "Attention",
    .tandem_op = TANDEM_OP_ATTENTION,
    .rule = RULE_FUSED,
    .required_inputs = 3,
    .lower = lower_fused_attention,
};

static struct graph_attribute integer_attribute(const char *name, bool value)
{
    return (struct graph_attribute){
        .name = name, .type = ORT_ATTRIBUTE_INT, .integer = value};
}

static struct graph_attribute real_attribute(const char *name, double value)
{
    return (struct graph_attribute){
        .name = name, .type = ORT_ATTRIBUTE_FLOAT, .real = (float)value};
}

/* Lets the last product be the attention. */
static void attention_replace(struct fusion *f,
                              const struct attention_pattern *p,
                              struct graph_node *last)
{
    const int32_t inputs[] = {p->q, p->k, p->v, p->added, p->chosen};
    const struct graph_attribute attributes[] = {
        real_attribute("scale", p->scale),
        real_attribute("masked", p->masked),
        integer_attribute("keeps", p->keeps),
        integer_attribute("chooses_last", p->chooses_last),
        integer_attribute("keys_are_rows", p->keys_are_rows),
        integer_attribute("tokens_first",
                          exchanges_heads(node_only_reader(f, last))),
    };
    const uint32_t count = sizeof(attributes) / sizeof(attributes[0]);
    struct graph_attribute *copy =
        arena_allocate(&f->graph->arena, count, sizeof(copy[0]));

    if (copy == NULL)
        return;
    memcpy(copy, attributes, sizeof(attributes));
    match_replace(f, &p->match, last, &fused_attention, inputs, 5);
    if (last->op == &fused_attention) {
        last->attributes = copy;
        last->attribute_count = count;
    }
}

static void fuse_attention(struct fusion *f, struct graph_node *softmax)
{
    struct attention_pattern p = {.match = {.nodes = {softmax}, .count = 1},
                                  .added = NO_VALUE,
                                  .chosen = NO_VALUE,
                                  .scale = 1};
    struct graph_node *weights = match_nan_guard(f, softmax, &p.match);
    struct graph_node *last = node_only_reader(f, weights);
    double factor;
    bool transposed;

    if (!is_row_softmax(f, softmax) ||
        !is_product(last, &factor, &transposed) || factor != 1 || transposed ||
        last->inputs[0] != weights->outputs[0] || !match_add(&p.match, last) ||
        !may_have_matrices(f, last->outputs[0]) ||
        !has_matrices(f, last->inputs[1]) ||
        !match_scores(f, softmax->inputs[0], &p))
        return;
    p.v = last->inputs[1];
    absorb_condition(f, &p);
    attention_replace(f, &p, last);
}

void fuse_attentions(struct fusion *f)
{
    for (uint32_t i = 0; i < f->graph->node_count; i++) {
        if (node_is_type(&f->graph->nodes[i], "Softmax"))
            fuse_attention(f, &f->graph->nodes[i]);
    }
}
