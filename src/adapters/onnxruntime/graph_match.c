/* SPDX-License-Identifier: Apache-2.0 */
/* Searches and changes graphs for the fusions; see graph_match.h. */
#include <config.h>

#include "adapters/onnxruntime/graph_match.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <math.h>
#include <string.h>

/* Exporters write constants such as sqrt(2) as f32, with varying digits. */
#define CONSTANT_TOLERANCE 1e-5

/* ---- looking at the graph ---- */

bool node_is_type(const struct graph_node *node, const char *type)
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

struct graph_node *value_private_producer(const struct fusion *f, int32_t value,
                                          uint32_t readers)
{
    if (value == NO_VALUE || f->graph->values[value].readers != readers ||
        f->graph->values[value].is_output)
        return NULL;
    return producer(f, value);
}

struct graph_node *node_only_reader(const struct fusion *f,
                                    const struct graph_node *node)
{
    const int32_t value = node->output_count > 0 ? node->outputs[0] : NO_VALUE;

    if (value == NO_VALUE || f->graph->values[value].readers != 1 ||
        f->graph->values[value].is_output || f->reader[value] == NO_VALUE)
        return NULL;
    return &f->graph->nodes[f->reader[value]];
}

bool value_constant(const struct fusion *f, int32_t index, double *out)
{
    const struct graph_value *value;

    if (index == NO_VALUE)
        return false;
    value = &f->graph->values[index];
    if (value->constant == NULL || !value->has_shape || value->rank > 1 ||
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

bool value_is_constant(const struct fusion *f, int32_t value, double expected)
{
    double found;

    return value_constant(f, value, &found) &&
           fabs(found - expected) <= CONSTANT_TOLERANCE * fabs(expected);
}

int32_t node_other_input(const struct graph_node *node, int32_t value)
{
    if (node->input_count != 2)
        return NO_VALUE;
    if (node->inputs[0] == value)
        return node->inputs[1];
    return node->inputs[1] == value ? node->inputs[0] : NO_VALUE;
}

bool node_has_constant(const struct fusion *f, const struct graph_node *node,
                       const char *type, double expected, int32_t *out)
{
    if (!node_is_type(node, type) || node->input_count != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (value_is_constant(f, node->inputs[i], expected)) {
            *out = node->inputs[1 - i];
            return true;
        }
    }
    return false;
}

/* ---- changing the graph ---- */

bool match_add(struct match *match, struct graph_node *node)
{
    if (node == NULL || match->count == MAX_MATCH_NODES)
        return false;
    match->nodes[match->count++] = node;
    return true;
}

void node_remove(struct fusion *f, struct graph_node *node)
{
    node->removed = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NO_VALUE)
            f->graph->values[node->inputs[i]].readers--;
    }
}

/* Returns false if a constant of the match adds an axis to a scalar.  ONNX
 * Runtime reports rank 0 if it does not know the rank. */
static bool ranks_are_equal(const struct fusion *f, int32_t input,
                            const struct graph_node *last)
{
    const struct graph_value *x = &f->graph->values[input];
    const struct graph_value *y = &f->graph->values[last->outputs[0]];

    return !x->has_shape || !y->has_shape || x->rank == y->rank ||
           y->rank == 0;
}

void match_replace(struct fusion *f, const struct match *match,
                   struct graph_node *last, const struct onnx_operator *op,
                   const int32_t *inputs, uint32_t input_count)
{
    struct graph *graph = f->graph;
    int32_t *copy = arena_allocate(&graph->arena, input_count, sizeof(*copy));

    if (copy == NULL || op == NULL || !ranks_are_equal(f, inputs[0], last))
        return;
    memcpy(copy, inputs, input_count * sizeof(*copy));
    for (uint32_t i = 0; i < match->count; i++)
        node_remove(f, match->nodes[i]);
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

void node_absorb(struct fusion *f, struct graph_node *node,
                 struct graph_node *next)
{
    const int32_t output = next->outputs[0];
    struct graph_value *value = &f->graph->values[output];

    node_remove(f, next);
    node->outputs[0] = output;
    value->producer = (int32_t)(node - f->graph->nodes);
}

void value_replace(struct fusion *f, int32_t from, int32_t to)
{
    struct graph *graph = f->graph;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];

        for (uint32_t k = 0; k < node->input_count && !node->removed; k++) {
            if (node->inputs[k] != from)
                continue;
            node->inputs[k] = to;
            graph->values[from].readers--;
            graph->values[to].readers++;
            f->reader[to] = (int32_t)i;
        }
    }
}
