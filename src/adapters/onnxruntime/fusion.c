/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces groups of nodes by one operator of Tandem; see fusion.h.
 *
 * A group is replaced only if no other node and no output of the graph reads
 * its intermediate values.  The last node of the group becomes the new
 * operator; the others become `removed`.  A matrix product instead takes over
 * the output of the node that follows it. */
#include <config.h>

#include "adapters/onnxruntime/fusion.h"
#include "adapters/onnxruntime/fusion_attention.h"
#include "adapters/onnxruntime/fusion_conv.h"
#include "adapters/onnxruntime/fusion_matmul.h"
#include "adapters/onnxruntime/graph_match.h"
#include "adapters/onnxruntime/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- GELU and x sigmoid(x) ---- */

/* Matches the nodes that multiply x, 1/2 and s, where `sum` computes s:
 * (x s) / 2, (x / 2) s or (s / 2) x.  Adds them to the match and returns the
 * last one, or NULL if the graph has another form. */
static struct graph_node *match_half_product(struct fusion *f,
                                             struct graph_node *sum, int32_t x,
                                             struct match *match)
{
    struct graph_node *first = node_only_reader(f, sum), *second, *half;
    int32_t other, input;

    if (!node_is_type(first, "Mul") || !match_add(match, first))
        return NULL;
    other = node_other_input(first, sum->outputs[0]);
    half = value_private_producer(f, other, 1);
    if (other != x && node_has_constant(f, half, "Mul", 0.5, &input) &&
        input == x)
        return match_add(match, half) ? first : NULL;
    second = node_only_reader(f, first);
    if (!node_is_type(second, "Mul") || !match_add(match, second))
        return NULL;
    if (other == x && node_has_constant(f, second, "Mul", 0.5, &input))
        return second;
    if (value_is_constant(f, other, 0.5) &&
        node_other_input(second, first->outputs[0]) == x)
        return second;
    return NULL;
}

/* Matches the end of a GELU, x (1 + g) / 2, where `node` computes g.  Returns
 * its last node, or NULL. */
static struct graph_node *match_gelu_end(struct fusion *f,
                                         struct graph_node *node, int32_t x,
                                         struct match *match)
{
    struct graph_node *sum = node_only_reader(f, node);
    int32_t input;

    if (!node_has_constant(f, sum, "Add", 1, &input) ||
        !match_add(match, node) || !match_add(match, sum))
        return NULL;
    return match_half_product(f, sum, x, match);
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static void fuse_gelu_erf(struct fusion *f, struct graph_node *erf)
{
    struct graph_node *scaled = value_private_producer(f, erf->inputs[0], 1),
                      *last;
    struct match match = {.count = 0};
    int32_t x = NO_VALUE;

    if (node_is_type(scaled, "Div") &&
        value_is_constant(f, scaled->inputs[1], M_SQRT2))
        x = scaled->inputs[0];
    else if (!node_has_constant(f, scaled, "Mul", M_SQRT1_2, &x))
        return;
    if (!match_add(&match, scaled))
        return;
    last = match_gelu_end(f, erf, x, &match);
    if (last != NULL)
        match_replace(f, &match, last, operator_by_type("", "Gelu"), &x, 1);
}

/* Matches x^3 as Pow(x, 3) or as x x x, and sets *x. */
static bool match_cube(struct fusion *f, int32_t value, int32_t *x,
                       struct match *match)
{
    struct graph_node *cube = value_private_producer(f, value, 1), *square;

    if (node_is_type(cube, "Pow") && value_is_constant(f, cube->inputs[1], 3)) {
        *x = cube->inputs[0];
        return match_add(match, cube);
    }
    if (!node_is_type(cube, "Mul"))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        square = value_private_producer(f, cube->inputs[i], 1);
        *x = cube->inputs[1 - i];
        if (node_is_type(square, "Mul") && square->inputs[0] == *x &&
            square->inputs[1] == *x)
            return match_add(match, cube) && match_add(match, square);
    }
    return false;
}

/* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
static void fuse_gelu_tanh(struct fusion *f, struct graph_node *tanh_node)
{
    struct graph_node *scaled =
        value_private_producer(f, tanh_node->inputs[0], 1);
    struct graph_node *sum, *term, *last;
    struct match match = {.count = 0};
    int32_t sum_value, cube_value, x;

    if (!node_has_constant(f, scaled, "Mul", sqrt(2 / M_PI), &sum_value))
        return;
    sum = value_private_producer(f, sum_value, 1);
    if (!node_is_type(sum, "Add") || !match_add(&match, scaled) ||
        !match_add(&match, sum))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        struct match found = match;

        term = value_private_producer(f, sum->inputs[i], 1);
        if (!node_has_constant(f, term, "Mul", 0.044715, &cube_value) ||
            !match_add(&found, term) ||
            !match_cube(f, cube_value, &x, &found) || sum->inputs[1 - i] != x)
            continue;
        last = match_gelu_end(f, tanh_node, x, &found);
        if (last != NULL)
            match_replace(f, &found, last,
                          operator_by_type("com.microsoft", "FastGelu"), &x, 1);
        return;
    }
}

/* x sigmoid(x) */
static void fuse_swish(struct fusion *f, struct graph_node *sigmoid)
{
    struct graph_node *product = node_only_reader(f, sigmoid);
    struct match match = {.nodes = {sigmoid, product}, .count = 2};
    const int32_t x = sigmoid->inputs[0];

    if (node_is_type(product, "Mul") &&
        node_other_input(product, sigmoid->outputs[0]) == x)
        match_replace(f, &match, product, operator_by_type("", "Swish"), &x, 1);
}

/* ---- layer normalization ---- */

/* Returns true if the node averages over the last axis of its input. */
static bool is_mean_of_rows(const struct fusion *f,
                            const struct graph_node *node)
{
    const struct graph_attribute *attribute;
    const struct graph_value *input;
    int64_t axis;

    if (!node_is_type(node, "ReduceMean") ||
        graph_integer(node, "keepdims", 1) != 1)
        return false;
    attribute = graph_attribute(node, "axes");
    input = graph_input(f->graph, node, 1);
    if (attribute != NULL && attribute->integer_count == 1)
        axis = attribute->integers[0];
    else if (input != NULL && input->constant != NULL && input->rank == 1 &&
             input->shape[0] == 1 && input->dtype == TANDEM_I64)
        axis = *(const int64_t *)input->constant;
    else
        return false;
    input = &f->graph->values[node->inputs[0]];
    return axis == -1 || (input->has_shape && axis == (int64_t)input->rank - 1);
}

/* Matches the squares of d: Pow(d, 2) or d d.  Sets *readers to how often the
 * group reads d. */
static bool is_square(const struct fusion *f, const struct graph_node *node,
                      int32_t d, uint32_t *readers)
{
    *readers = 2;
    if (node_is_type(node, "Pow"))
        return node->inputs[0] == d && value_is_constant(f, node->inputs[1], 2);
    *readers = 3;
    return node_is_type(node, "Mul") && node->inputs[0] == d &&
           node->inputs[1] == d;
}

/* Matches (x - mean x) / sqrt(mean (x - mean x)^2 + epsilon) from its last node
 * and sets x and epsilon. */
static bool match_normalize(struct fusion *f, struct graph_node *quotient,
                            struct match *match, int32_t *x, double *epsilon)
{
    const int32_t d = quotient->inputs[0];
    struct graph_node *root = value_private_producer(f, quotient->inputs[1], 1);
    struct graph_node *sum, *variance, *square, *difference, *mean;
    uint32_t readers;

    if (!node_is_type(root, "Sqrt"))
        return false;
    sum = value_private_producer(f, root->inputs[0], 1);
    if (!node_is_type(sum, "Add") ||
        !value_constant(f, sum->inputs[1], epsilon))
        return false;
    variance = value_private_producer(f, sum->inputs[0], 1);
    if (variance == NULL || !is_mean_of_rows(f, variance))
        return false;
    square = value_private_producer(f, variance->inputs[0], 1);
    if (!is_square(f, square, d, &readers))
        return false;
    difference = value_private_producer(f, d, readers);
    if (!node_is_type(difference, "Sub"))
        return false;
    *x = difference->inputs[0];
    mean = value_private_producer(f, difference->inputs[1], 1);
    return mean != NULL && is_mean_of_rows(f, mean) && mean->inputs[0] == *x &&
           match_add(match, root) && match_add(match, sum) &&
           match_add(match, variance) && match_add(match, square) &&
           match_add(match, difference) && match_add(match, mean);
}

/* Follows a product or sum of the group's result with a constant vector, which
 * is the scale or bias of the normalization. */
static struct graph_node *match_parameter(struct fusion *f,
                                          struct graph_node *last,
                                          const char *type, int32_t x,
                                          struct match *match, int32_t *out)
{
    const struct graph_value *rows = &f->graph->values[x];
    struct graph_node *next = node_only_reader(f, last);
    int32_t other;

    *out = NO_VALUE;
    if (!node_is_type(next, type))
        return last;
    other = node_other_input(next, last->outputs[0]);
    if (other == NO_VALUE || f->graph->values[other].constant == NULL ||
        f->graph->values[other].rank != 1 || !rows->has_shape ||
        rows->rank == 0 ||
        rows->shape[rows->rank - 1] != f->graph->values[other].shape[0] ||
        !match_add(match, next))
        return last;
    *out = other;
    return next;
}

static void fuse_layer_norm(struct fusion *f, struct graph_node *quotient)
{
    struct match match = {.nodes = {quotient}, .count = 1};
    struct graph_node *last;
    struct graph_attribute *attributes;
    int32_t inputs[3];
    double epsilon;

    if (!match_normalize(f, quotient, &match, &inputs[0], &epsilon))
        return;
    last = match_parameter(f, quotient, "Mul", inputs[0], &match, &inputs[1]);
    inputs[2] = NO_VALUE;
    if (last != quotient)
        last = match_parameter(f, last, "Add", inputs[0], &match, &inputs[2]);
    attributes = arena_allocate(&f->graph->arena, 1, sizeof(attributes[0]));
    if (attributes == NULL)
        return;
    attributes[0] = (struct graph_attribute){
        .name = "epsilon", .type = ORT_ATTRIBUTE_FLOAT, .real = (float)epsilon};
    last->attributes = attributes;
    last->attribute_count = 1;
    match_replace(f, &match, last, operator_by_type("", "LayerNormalization"),
                  inputs, 3);
}

/* ---- the whole graph ---- */

static void fuse_node(struct fusion *f, struct graph_node *node)
{
    if (node_is_type(node, "Erf"))
        fuse_gelu_erf(f, node);
    else if (node_is_type(node, "Tanh"))
        fuse_gelu_tanh(f, node);
    else if (node_is_type(node, "Sigmoid"))
        fuse_swish(f, node);
    else if (node_is_type(node, "Div") && node->input_count == 2)
        fuse_layer_norm(f, node);
}

static void find_readers(struct fusion *f)
{
    const struct graph *graph = f->graph;

    for (uint32_t i = 0; i < graph->value_count; i++)
        f->reader[i] = NO_VALUE;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++) {
            if (graph->nodes[i].inputs[k] != NO_VALUE)
                f->reader[graph->nodes[i].inputs[k]] = (int32_t)i;
        }
    }
}

void graph_fuse(struct graph *graph)
{
    struct fusion f = {
        .graph = graph,
        .reader = malloc((graph->value_count + 1) * sizeof(f.reader[0]))};

    if (f.reader == NULL)
        return; /* slower, not wrong */
    find_readers(&f);
    for (uint32_t i = 0; i < graph->node_count; i++)
        fuse_node(&f, &graph->nodes[i]);
    fuse_attentions(&f);
    fuse_convolutions(&f);
    fuse_matmuls(&f);
    free(f.reader);
}
