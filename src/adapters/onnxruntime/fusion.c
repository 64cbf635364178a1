/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces groups of nodes by one operator of Tandem; see fusion.h.
 *
 * A group is replaced only if no other node and no output of the graph reads
 * its intermediate values.  The last node of the group becomes the new
 * operator; the others become `removed`.  A matrix product instead takes over
 * the output of the node that follows it. */
#include <config.h>

#include "adapters/onnxruntime/fusion.h"
#include "adapters/onnxruntime/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUP_NODES 16u
/* Exporters write constants such as sqrt(2) as f32, with varying digits. */
#define CONSTANT_TOLERANCE 1e-5

struct fusion {
    struct graph *graph;
    int32_t *reader; /* a node that reads each value, or NO_VALUE */
};

/* The nodes of a group that has been found. */
struct group {
    struct graph_node *nodes[MAX_GROUP_NODES];
    uint32_t count;
};

/* ---- looking at the graph ---- */

static bool is_type(const struct graph_node *node, const char *type)
{
    return node != NULL && !node->removed && strcmp(node->type, type) == 0 &&
           node->domain[0] == '\0';
}

/* Returns the node that computes a value, or NULL. */
static struct graph_node *producer(const struct fusion *f, int32_t value)
{
    const int32_t index =
        value == NO_VALUE ? NO_VALUE : f->graph->values[value].producer;

    return index == NO_VALUE ? NULL : &f->graph->nodes[index];
}

/* Returns the producer of a value that `readers` node inputs read and that is
 * no output. */
static struct graph_node *private_producer(const struct fusion *f,
                                           int32_t value, uint32_t readers)
{
    if (value == NO_VALUE || f->graph->values[value].readers != readers ||
        f->graph->values[value].is_output)
        return NULL;
    return producer(f, value);
}

/* Returns the node that reads the first output of `node`, if it is the only
 * one. */
static struct graph_node *only_reader(const struct fusion *f,
                                      const struct graph_node *node)
{
    const int32_t value = node->output_count > 0 ? node->outputs[0] : NO_VALUE;

    if (value == NO_VALUE || f->graph->values[value].readers != 1 ||
        f->graph->values[value].is_output || f->reader[value] == NO_VALUE)
        return NULL;
    return &f->graph->nodes[f->reader[value]];
}

/* Returns true if the value is a constant f32 with one element. */
static bool constant_scalar(const struct fusion *f, int32_t index, double *out)
{
    const struct graph_value *value;

    if (index == NO_VALUE)
        return false;
    value = &f->graph->values[index];
    if (value->constant == NULL || !value->has_shape ||
        (value->dtype != TANDEM_F32 && value->dtype != TANDEM_I64))
        return false;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (value->shape[i] != 1)
            return false;
    }
    *out = value->dtype == TANDEM_F32
               ? *(const float *)value->constant
               : (double)*(const int64_t *)value->constant;
    return true;
}

static bool constant_is(const struct fusion *f, int32_t value, double expected)
{
    double found;

    return constant_scalar(f, value, &found) &&
           fabs(found - expected) <= CONSTANT_TOLERANCE * fabs(expected);
}

/* Returns the input of a node with two inputs that is not `value`. */
static int32_t other_input(const struct graph_node *node, int32_t value)
{
    if (node->input_count != 2)
        return NO_VALUE;
    if (node->inputs[0] == value)
        return node->inputs[1];
    return node->inputs[1] == value ? node->inputs[0] : NO_VALUE;
}

/* Returns true if the node is a sum or product (`type`) with a constant, and
 * sets *out to its other input. */
static bool is_with_constant(const struct fusion *f,
                             const struct graph_node *node, const char *type,
                             double expected, int32_t *out)
{
    if (!is_type(node, type) || node->input_count != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (constant_is(f, node->inputs[i], expected)) {
            *out = node->inputs[1 - i];
            return true;
        }
    }
    return false;
}

/* ---- changing the graph ---- */

static bool group_add(struct group *group, struct graph_node *node)
{
    if (node == NULL || group->count == MAX_GROUP_NODES)
        return false;
    group->nodes[group->count++] = node;
    return true;
}

static void node_remove(struct fusion *f, struct graph_node *node)
{
    node->removed = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NO_VALUE)
            f->graph->values[node->inputs[i]].readers--;
    }
}

static const struct onnx_operator *operator_by_type(const char *domain,
                                                    const char *type)
{
    const struct onnx_operator *row;

    for (size_t i = 0; (row = operator_row(i)) != NULL; i++) {
        if (strcmp(row->type, type) == 0 && strcmp(row->domain, domain) == 0)
            return row;
    }
    return NULL;
}

/* Removes the group's nodes except `last`, which becomes an operator with the
 * given inputs. */
static void group_replace(struct fusion *f, const struct group *group,
                          struct graph_node *last,
                          const struct onnx_operator *op, const int32_t *inputs,
                          uint32_t input_count)
{
    struct graph *graph = f->graph;
    int32_t *copy = arena_allocate(&graph->arena, input_count, sizeof(*copy));

    if (copy == NULL || op == NULL)
        return;
    memcpy(copy, inputs, input_count * sizeof(*copy));
    for (uint32_t i = 0; i < group->count; i++)
        node_remove(f, group->nodes[i]);
    last->removed = false;
    last->op = op;
    last->type = op->type;
    last->domain = op->domain;
    last->inputs = copy;
    last->input_count = input_count;
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i] == NO_VALUE)
            continue;
        graph->values[inputs[i]].readers++;
        f->reader[inputs[i]] = (int32_t)(last - graph->nodes);
    }
}

/* ---- GELU and x sigmoid(x) ---- */

/* Matches the product of x, 1/2 and the sum 1 + g in any order:
 * (x s) / 2, (x / 2) s or (s / 2) x.  Returns the last node. */
static struct graph_node *match_half_product(struct fusion *f,
                                             struct graph_node *sum, int32_t x,
                                             struct group *group)
{
    struct graph_node *first = only_reader(f, sum), *second, *half;
    int32_t other, input;

    if (!is_type(first, "Mul") || !group_add(group, first))
        return NULL;
    other = other_input(first, sum->outputs[0]);
    half = private_producer(f, other, 1);
    if (other != x && is_with_constant(f, half, "Mul", 0.5, &input) &&
        input == x)
        return group_add(group, half) ? first : NULL;
    second = only_reader(f, first);
    if (!is_type(second, "Mul") || !group_add(group, second))
        return NULL;
    if (other == x && is_with_constant(f, second, "Mul", 0.5, &input))
        return second;
    if (constant_is(f, other, 0.5) &&
        other_input(second, first->outputs[0]) == x)
        return second;
    return NULL;
}

/* Matches 1 + g, where `node` computes g, and the product that follows. */
static struct graph_node *match_gelu_end(struct fusion *f,
                                         struct graph_node *node, int32_t x,
                                         struct group *group)
{
    struct graph_node *sum = only_reader(f, node);
    int32_t input;

    if (!is_with_constant(f, sum, "Add", 1, &input) ||
        !group_add(group, node) || !group_add(group, sum))
        return NULL;
    return match_half_product(f, sum, x, group);
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static void fuse_gelu_erf(struct fusion *f, struct graph_node *erf)
{
    struct graph_node *scaled = private_producer(f, erf->inputs[0], 1), *last;
    struct group group = {.count = 0};
    int32_t x = NO_VALUE;

    if (is_type(scaled, "Div") && constant_is(f, scaled->inputs[1], M_SQRT2))
        x = scaled->inputs[0];
    else if (!is_with_constant(f, scaled, "Mul", M_SQRT1_2, &x))
        return;
    if (!group_add(&group, scaled))
        return;
    last = match_gelu_end(f, erf, x, &group);
    if (last != NULL)
        group_replace(f, &group, last, operator_by_type("", "Gelu"), &x, 1);
}

/* Matches x^3 as Pow(x, 3) or as x x x, and sets *x. */
static bool match_cube(struct fusion *f, int32_t value, int32_t *x,
                       struct group *group)
{
    struct graph_node *cube = private_producer(f, value, 1), *square;

    if (is_type(cube, "Pow") && constant_is(f, cube->inputs[1], 3)) {
        *x = cube->inputs[0];
        return group_add(group, cube);
    }
    if (!is_type(cube, "Mul"))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        square = private_producer(f, cube->inputs[i], 1);
        *x = cube->inputs[1 - i];
        if (is_type(square, "Mul") && square->inputs[0] == *x &&
            square->inputs[1] == *x)
            return group_add(group, cube) && group_add(group, square);
    }
    return false;
}

/* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
static void fuse_gelu_tanh(struct fusion *f, struct graph_node *tanh_node)
{
    struct graph_node *scaled = private_producer(f, tanh_node->inputs[0], 1);
    struct graph_node *sum, *term, *last;
    struct group group = {.count = 0};
    int32_t sum_value, cube_value, x;

    if (!is_with_constant(f, scaled, "Mul", sqrt(2 / M_PI), &sum_value))
        return;
    sum = private_producer(f, sum_value, 1);
    if (!is_type(sum, "Add") || !group_add(&group, scaled) ||
        !group_add(&group, sum))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        struct group found = group;

        term = private_producer(f, sum->inputs[i], 1);
        if (!is_with_constant(f, term, "Mul", 0.044715, &cube_value) ||
            !group_add(&found, term) ||
            !match_cube(f, cube_value, &x, &found) || sum->inputs[1 - i] != x)
            continue;
        last = match_gelu_end(f, tanh_node, x, &found);
        if (last != NULL)
            group_replace(f, &found, last,
                          operator_by_type("com.microsoft", "FastGelu"), &x, 1);
        return;
    }
}

/* x sigmoid(x) */
static void fuse_swish(struct fusion *f, struct graph_node *sigmoid)
{
    struct graph_node *product = only_reader(f, sigmoid);
    struct group group = {.nodes = {sigmoid, product}, .count = 2};
    const int32_t x = sigmoid->inputs[0];

    if (is_type(product, "Mul") &&
        other_input(product, sigmoid->outputs[0]) == x)
        group_replace(f, &group, product, operator_by_type("", "Swish"), &x, 1);
}

/* ---- layer normalization ---- */

/* Returns true if the node averages over the last axis of its input. */
static bool is_mean_of_rows(const struct fusion *f,
                            const struct graph_node *node)
{
    const struct graph_attribute *attribute;
    const struct graph_value *input;
    int64_t axis;

    if (!is_type(node, "ReduceMean") || graph_integer(node, "keepdims", 1) != 1)
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
    if (is_type(node, "Pow"))
        return node->inputs[0] == d && constant_is(f, node->inputs[1], 2);
    *readers = 3;
    return is_type(node, "Mul") && node->inputs[0] == d && node->inputs[1] == d;
}

/* Matches (x - mean x) / sqrt(mean (x - mean x)^2 + epsilon) from its last node
 * and sets x and epsilon. */
static bool match_normalize(struct fusion *f, struct graph_node *quotient,
                            struct group *group, int32_t *x, double *epsilon)
{
    const int32_t d = quotient->inputs[0];
    struct graph_node *root = private_producer(f, quotient->inputs[1], 1);
    struct graph_node *sum, *variance, *square, *difference, *mean;
    uint32_t readers;

    if (!is_type(root, "Sqrt"))
        return false;
    sum = private_producer(f, root->inputs[0], 1);
    if (!is_type(sum, "Add") || !constant_scalar(f, sum->inputs[1], epsilon))
        return false;
    variance = private_producer(f, sum->inputs[0], 1);
    if (variance == NULL || !is_mean_of_rows(f, variance))
        return false;
    square = private_producer(f, variance->inputs[0], 1);
    if (!is_square(f, square, d, &readers))
        return false;
    difference = private_producer(f, d, readers);
    if (!is_type(difference, "Sub"))
        return false;
    *x = difference->inputs[0];
    mean = private_producer(f, difference->inputs[1], 1);
    return mean != NULL && is_mean_of_rows(f, mean) && mean->inputs[0] == *x &&
           group_add(group, root) && group_add(group, sum) &&
           group_add(group, variance) && group_add(group, square) &&
           group_add(group, difference) && group_add(group, mean);
}

/* Follows a product or sum of the group's result with a constant vector, which
 * is the scale or bias of the normalization. */
static struct graph_node *match_parameter(struct fusion *f,
                                          struct graph_node *last,
                                          const char *type, int32_t x,
                                          struct group *group, int32_t *out)
{
    const struct graph_value *rows = &f->graph->values[x];
    struct graph_node *next = only_reader(f, last);
    int32_t other;

    *out = NO_VALUE;
    if (!is_type(next, type))
        return last;
    other = other_input(next, last->outputs[0]);
    if (other == NO_VALUE || f->graph->values[other].constant == NULL ||
        f->graph->values[other].rank != 1 || !rows->has_shape ||
        rows->rank == 0 ||
        rows->shape[rows->rank - 1] != f->graph->values[other].shape[0] ||
        !group_add(group, next))
        return last;
    *out = other;
    return next;
}

static void fuse_layer_norm(struct fusion *f, struct graph_node *quotient)
{
    struct group group = {.nodes = {quotient}, .count = 1};
    struct graph_node *last;
    struct graph_attribute *attributes;
    int32_t inputs[3];
    double epsilon;

    if (!match_normalize(f, quotient, &group, &inputs[0], &epsilon))
        return;
    last = match_parameter(f, quotient, "Mul", inputs[0], &group, &inputs[1]);
    inputs[2] = NO_VALUE;
    if (last != quotient)
        last = match_parameter(f, last, "Add", inputs[0], &group, &inputs[2]);
    attributes = arena_allocate(&f->graph->arena, 1, sizeof(attributes[0]));
    if (attributes == NULL)
        return;
    attributes[0] = (struct graph_attribute){
        .name = "epsilon", .type = ORT_ATTRIBUTE_FLOAT, .real = (float)epsilon};
    last->attributes = attributes;
    last->attribute_count = 1;
    group_replace(f, &group, last, operator_by_type("", "LayerNormalization"),
                  inputs, 3);
}

/* ---- matrix products ---- */

static bool is_product(const struct graph_node *node)
{
    return !node->removed && node->op != NULL &&
           node->op->tandem_op == TANDEM_OP_GEMM;
}

/* The product takes over the output of `next`, which reads it. */
static void product_absorb(struct fusion *f, struct graph_node *product,
                           struct graph_node *next)
{
    const int32_t output = next->outputs[0];
    struct graph_value *value = &f->graph->values[output];

    node_remove(f, next);
    product->outputs[0] = output;
    value->producer = (int32_t)(product - f->graph->nodes);
}

/* Returns the factor by which a node multiplies the product, or 0 if it does
 * something else or changes the rank. */
static double constant_factor(const struct fusion *f,
                              const struct graph_node *product,
                              const struct graph_node *node)
{
    const bool divides = is_type(node, "Div");
    const struct graph_value *output;
    double factor;
    int32_t other;

    if (!divides && !is_type(node, "Mul"))
        return 0;
    other = other_input(node, product->outputs[0]);
    output = &f->graph->values[product->outputs[0]];
    if (!constant_scalar(f, other, &factor) || !isnormal(factor) ||
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
    struct graph_node *next = only_reader(f, product);
    const double factor = strcmp(product->type, "MatMul") == 0
                              ? constant_factor(f, product, next)
                              : 0;

    if (factor == 0)
        return;
    product->epilogue.scale = factor;
    product_absorb(f, product, next);
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

static void absorb_bias(struct fusion *f, struct graph_node *product)
{
    struct graph_node *next = only_reader(f, product);
    int32_t bias;

    if (!is_type(next, "Add") || graph_input(f->graph, product, 2) != NULL)
        return;
    bias = other_input(next, product->outputs[0]);
    if (!is_bias(f, product, bias))
        return;
    product->epilogue.bias = bias;
    product_absorb(f, product, next);
}

static void absorb_activation(struct fusion *f, struct graph_node *product)
{
    struct graph_node *next = only_reader(f, product);
    uint32_t activation;

    if (next == NULL || next->removed || next->op == NULL ||
        graph_input(f->graph, next, 1) != NULL)
        return;
    activation = next->op->tandem_op;
    switch (activation) {
    case TANDEM_OP_RELU:
    case TANDEM_OP_SIGMOID:
    case TANDEM_OP_TANH:
        break;
    case TANDEM_OP_LEAKY_RELU:
        product->epilogue.parameter = graph_real(next, "alpha", 0.01);
        break;
    case TANDEM_OP_GELU:
        product->epilogue.parameter = gelu_is_approximate(next);
        break;
    case TANDEM_OP_SWISH:
        if (graph_real(next, "alpha", 1) != 1)
            return;
        break;
    default:
        return;
    }
    product->epilogue.activation = activation;
    product_absorb(f, product, next);
}

/* ---- the whole graph ---- */

static void fuse_node(struct fusion *f, struct graph_node *node)
{
    if (is_type(node, "Erf"))
        fuse_gelu_erf(f, node);
    else if (is_type(node, "Tanh"))
        fuse_gelu_tanh(f, node);
    else if (is_type(node, "Sigmoid"))
        fuse_swish(f, node);
    else if (is_type(node, "Div") && node->input_count == 2)
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
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];

        if (!is_product(node))
            continue;
        absorb_scale(&f, node);
        absorb_bias(&f, node);
        absorb_activation(&f, node);
    }
    free(f.reader);
}
