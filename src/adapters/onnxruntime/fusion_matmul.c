/* SPDX-License-Identifier: Apache-2.0 */
/* Merges matrix products and gives them the operators that follow them; see
 * fusion_matmul.h. */
#include <config.h>

#include "adapters/onnxruntime/fusion_matmul.h"
#include "adapters/onnxruntime/operators.h"

#include <math.h>
#include <string.h>

/* At most this many products are merged. Attention has three. */
#define MAX_MERGED 8u

static bool is_matmul(const struct graph_node *node)
{
    return !node->removed && node->op != NULL &&
           node->op->tandem_op == TANDEM_OP_GEMM;
}

/* Returns the factor by which a node multiplies the product, or 0 if it does
 * something else or changes the rank. */
static double constant_factor(const struct fusion *f,
                              const struct graph_node *product,
                              const struct graph_node *node)
{
    const bool divides = node_is_type(node, "Div");
    const struct graph_value *output;
    double factor;
    int32_t other;

    if (!divides && !node_is_type(node, "Mul"))
        return 0;
    other = node_other_input(node, product->outputs[0]);
    output = &f->graph->values[product->outputs[0]];
    if (!value_constant(f, other, &factor) || !isnormal((float)factor) ||
        !isnormal((float)(1 / factor)) ||
        f->graph->values[other].dtype != TANDEM_F32 ||
        (f->graph->values[other].rank > 0 &&
         !(output->has_shape &&
           output->rank >= f->graph->values[other].rank)) ||
        (divides && node->inputs[0] != product->outputs[0]))
        return 0;
    return divides ? 1 / factor : factor;
}

static void absorb_scale(struct fusion *f, struct graph_node *product)
{
    struct graph_node *next = node_only_reader(f, product);
    const double factor = strcmp(product->type, "MatMul") == 0
                              ? constant_factor(f, product, next)
                              : 0;

    if (factor == 0)
        return;
    product->epilogue.scale = factor;
    node_absorb(f, product, next);
}

/* Returns true if the value is a constant vector with one element for each
 * column of the product. */
static bool is_bias(const struct fusion *f, const struct graph_node *product,
                    int32_t index)
{
    const struct graph *graph = f->graph;
    const struct graph_value *bias, *b, *output;

    if (index == NO_VALUE)
        return false;
    bias = &graph->values[index];
    b = &graph->values[product->inputs[1]];
    output = &graph->values[product->outputs[0]];
    return bias->constant != NULL && bias->dtype == TANDEM_F32 &&
           bias->rank == 1 && b->has_shape && b->rank >= 2 &&
           output->has_shape && output->rank >= 1 &&
           output->shape[output->rank - 1] == bias->shape[0];
}

/* Returns true if both values are constants with the same content. */
static bool constants_are_equal(const struct graph_value *a,
                                const struct graph_value *b)
{
    size_t bytes = TANDEM_DTYPE_BYTES(a->dtype);

    if (a->constant == NULL || b->constant == NULL || a->dtype != b->dtype ||
        a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return false;
        bytes *= (size_t)a->shape[i];
    }
    return memcmp(a->constant, b->constant, bytes) == 0;
}

static void absorb_bias(struct fusion *f, struct graph_node *product)
{
    struct graph_node *next = node_only_reader(f, product);
    int32_t bias;

    if (!node_is_type(next, "Add") || graph_input(f->graph, product, 2) != NULL)
        return;
    bias = node_other_input(next, product->outputs[0]);
    if (!is_bias(f, product, bias))
        return;
    product->epilogue.bias = bias;
    f->graph->values[bias].readers++;
    node_absorb(f, product, next);
}

/* An activation may follow a product at once or after a reshape. */
static void absorb_activation(struct fusion *f, struct graph_node *product)
{
    struct graph_node *last = product;
    struct graph_node *next = node_only_reader(f, product);

    if (node_is_type(next, "Reshape")) {
        last = next;
        next = node_only_reader(f, last);
    }
    if (next != NULL && !next->removed &&
        node_activation(f->graph, next, &product->epilogue.activation,
                        product->epilogue.parameters))
        node_absorb(f, last, next);
}

/* ---- products that share their left operand ---- */

/* Returns true if the node is a product with a constant matrix whose result can
 * be a part of a wider product. */
static bool is_mergeable(const struct fusion *f, const struct graph_node *node)
{
    const struct graph *graph = f->graph;
    const struct graph_value *b, *c = graph_input(graph, node, 2);
    const bool gemm = node_is_type(node, "Gemm");

    if (node->removed || (!gemm && !node_is_type(node, "MatMul")) ||
        node->epilogue.scale != 0 ||
        node->epilogue.activation != TANDEM_OP_INVALID)
        return false;
    b = &graph->values[node->inputs[1]];
    if (b->constant == NULL || b->rank != 2 || b->dtype != TANDEM_F32)
        return false;
    if (!gemm)
        return true;
    return graph_real(node, "alpha", 1) == 1 &&
           graph_real(node, "beta", 1) == 1 &&
           graph_integer(node, "transA", 0) == 0 &&
           (c == NULL ||
            (c->constant != NULL && c->rank == 1 && c->dtype == TANDEM_F32));
}

static bool is_transposed(const struct graph_node *node)
{
    return node_is_type(node, "Gemm") && graph_integer(node, "transB", 0) != 0;
}

/* Returns the value that is added to each row of the product, or NO_VALUE. */
static int32_t matmul_bias(const struct graph_node *node)
{
    if (node->epilogue.bias != NO_VALUE)
        return node->epilogue.bias;
    return node->input_count > 2 ? node->inputs[2] : NO_VALUE;
}

static int64_t matmul_columns(const struct fusion *f,
                              const struct graph_node *node)
{
    return f->graph->values[node->inputs[1]].shape[is_transposed(node) ? 0 : 1];
}

/* Returns true if the product can join `first`. A bias must have one element
 * for each column. */
static bool can_merge(const struct fusion *f, const struct graph_node *first,
                      const struct graph_node *node)
{
    const struct graph_value *values = f->graph->values;
    const int32_t bias = matmul_bias(node);
    const uint32_t k_axis = is_transposed(first) ? 1 : 0;

    return is_mergeable(f, node) && node->op == first->op &&
           node->inputs[0] == first->inputs[0] &&
           is_transposed(node) == is_transposed(first) &&
           values[node->inputs[1]].shape[k_axis] ==
               values[first->inputs[1]].shape[k_axis] &&
           (bias == NO_VALUE) == (matmul_bias(first) == NO_VALUE) &&
           (bias == NO_VALUE ||
            values[bias].shape[0] == matmul_columns(f, node));
}

/* Adds a constant to the graph: the concatenation of the products' right
 * operands, or of their biases.  Returns its index, or NO_VALUE. */
static int32_t concatenation(struct fusion *f, const struct match *match,
                             bool of_biases)
{
    struct graph *graph = f->graph;
    const int32_t index = graph_add_value(graph);
    struct constant_parts *parts =
        arena_allocate(&graph->arena, 1, sizeof(*parts));
    int32_t *values =
        arena_allocate(&graph->arena, match->count, sizeof(values[0]));
    struct graph_value *value;
    const struct graph_value *first;

    if (index == NO_VALUE || parts == NULL || values == NULL)
        return NO_VALUE;
    for (uint32_t i = 0; i < match->count; i++)
        values[i] = of_biases ? matmul_bias(match->nodes[i])
                              : match->nodes[i]->inputs[1];
    *parts = (struct constant_parts){.count = match->count, .values = values};
    parts->axis = of_biases || is_transposed(match->nodes[0]) ? 0 : 1;
    value = &graph->values[index];
    first = &graph->values[values[0]];
    value->dtype = first->dtype;
    value->rank = first->rank;
    value->has_shape = true;
    memcpy(value->shape, first->shape, sizeof(value->shape));
    for (uint32_t i = 1; i < match->count; i++)
        value->shape[parts->axis] +=
            graph->values[values[i]].shape[parts->axis];
    value->constant = first->constant;
    value->parts = parts;
    return index;
}

/* Replaces the products of the match, which have the same left operand, by one
 * product with the concatenated right operands and biases. */
static void merge(struct fusion *f, const struct match *match)
{
    struct graph_node *first = match->nodes[0];
    int32_t *outputs =
        arena_allocate(&f->graph->arena, match->count, sizeof(outputs[0]));
    int64_t *parts =
        arena_allocate(&f->graph->arena, match->count, sizeof(parts[0]));
    int32_t b, bias = NO_VALUE;

    if (outputs == NULL || parts == NULL)
        return;
    for (uint32_t i = 0; i < match->count; i++) {
        outputs[i] = match->nodes[i]->outputs[0];
        parts[i] = matmul_columns(f, match->nodes[i]);
    }
    b = concatenation(f, match, false);
    if (b == NO_VALUE)
        return;
    if (matmul_bias(first) != NO_VALUE) {
        bias = concatenation(f, match, true);
        if (bias == NO_VALUE)
            return;
    }
    for (uint32_t i = 0; i < match->count; i++) {
        node_remove(f, match->nodes[i]);
        f->graph->values[outputs[i]].producer =
            (int32_t)(first - f->graph->nodes);
    }
    first->removed = false;
    f->graph->values[first->inputs[0]].readers++;
    f->graph->values[b].readers++;
    first->inputs[1] = b;
    first->input_count = 2;
    first->epilogue.bias = bias;
    if (bias != NO_VALUE)
        f->graph->values[bias].readers++;
    first->outputs = outputs;
    first->output_count = match->count;
    first->epilogue.parts = parts;
}

/* Merges the product with later ones that have the same left operand. */
static void merge_matmuls(struct fusion *f, uint32_t index)
{
    struct graph *graph = f->graph;
    struct graph_node *first = &graph->nodes[index];
    struct match match = {.nodes = {first}, .count = 1};

    if (!is_mergeable(f, first) || !can_merge(f, first, first))
        return;
    for (uint32_t i = index + 1;
         i < graph->node_count && match.count < MAX_MERGED; i++) {
        if (can_merge(f, first, &graph->nodes[i]))
            match_add(&match, &graph->nodes[i]);
    }
    if (match.count > 1)
        merge(f, &match);
}

/* ONNX Runtime puts a reshape of its own before each of several products. Lets
 * all readers of equal reshapes read the first one. */
static void merge_reshapes(struct fusion *f, uint32_t index)
{
    struct graph *graph = f->graph;
    struct graph_node *first = &graph->nodes[index];

    if (!node_is_type(first, "Reshape") ||
        graph->values[first->inputs[1]].constant == NULL)
        return;
    for (uint32_t i = index + 1; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];

        if (!node_is_type(node, "Reshape") ||
            node->inputs[0] != first->inputs[0] ||
            graph->values[node->outputs[0]].is_output ||
            !constants_are_equal(&graph->values[first->inputs[1]],
                                 &graph->values[node->inputs[1]]) ||
            graph_integer(node, "allowzero", 0) !=
                graph_integer(first, "allowzero", 0))
            continue;
        node_remove(f, node);
        value_replace(f, node->outputs[0], first->outputs[0]);
    }
}

void fuse_matmuls(struct fusion *f)
{
    struct graph *graph = f->graph;

    for (uint32_t i = 0; i < graph->node_count; i++)
        merge_reshapes(f, i);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (is_matmul(&graph->nodes[i])) {
            absorb_scale(f, &graph->nodes[i]);
            absorb_bias(f, &graph->nodes[i]);
            absorb_activation(f, &graph->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        merge_matmuls(f, i);
}
