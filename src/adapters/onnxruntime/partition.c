/* SPDX-License-Identifier: Apache-2.0 */
/* Finds groups of nodes; see partition.h.
 *
 * Nodes are visited in waves.  Each wave first visits all nodes that are not
 * served and whose inputs are computed, again and again until none is left,
 * then all served nodes in the same way.  A node that is not served can only
 * use results of earlier waves, so no path leaves the served nodes of a wave
 * and returns to them.  The connected parts of a wave's served nodes are its
 * groups. */
#include <config.h>

#include "adapters/onnxruntime/partition.h"
#include "adapters/onnxruntime/onnx_operator.h"

#include <stdlib.h>
#include <string.h>

#define NOT_VISITED UINT32_MAX

struct search {
    const struct graph *graph;
    uint32_t *wave;   /* wave of each node, or NOT_VISITED */
    bool *served;     /* was visited as a served node */
    bool *known;      /* computes integers that are known when lowered */
    uint32_t *parent; /* union-find forest of served nodes */
    uint32_t current; /* number of the wave */
};

/* Returns the node that computes input k, or NULL for inputs of the graph,
 * constants and absent inputs. */
static const struct graph_node *
producer(const struct search *s, const struct graph_node *node, uint32_t k)
{
    const struct graph_value *value = graph_input(s->graph, node, k);

    return value != NULL && value->producer != NO_VALUE
               ? &s->graph->nodes[value->producer]
               : NULL;
}

static bool inputs_are_visited(const struct search *s,
                               const struct graph_node *node)
{
    for (uint32_t k = 0; k < node->input_count; k++) {
        const struct graph_node *from = producer(s, node, k);

        if (from != NULL && s->wave[from - s->graph->nodes] == NOT_VISITED)
            return false;
    }
    return true;
}

/* Returns true if a node's content is known while the wave's groups are
 * lowered: it is constant or computed from known content in this wave. */
static bool input_is_known(const struct search *s,
                           const struct graph_node *node, uint32_t k)
{
    const struct graph_value *value = graph_input(s->graph, node, k);
    const struct graph_node *from = producer(s, node, k);

    if (value == NULL || value->constant != NULL)
        return true;
    return from != NULL && s->known[from - s->graph->nodes] &&
           s->wave[from - s->graph->nodes] == s->current;
}

/* Returns true if the node computes integers and all of them are known. */
static bool output_is_known(const struct search *s,
                            const struct graph_node *node)
{
    if (!node_computes_integers(s->graph, node))
        return false;
    for (uint32_t k = 0; k < node->input_count; k++) {
        const bool only_shape =
            node->op->rule == RULE_SHAPE && !(node->op->parameters >> k & 1);

        if (!only_shape && !input_is_known(s, node, k))
            return false;
    }
    return true;
}

/* Returns true if the content of each parameter is known, or is an input of the
 * wave's groups, which is known when they run. */
static bool parameters_are_known(const struct search *s,
                                 const struct graph_node *node)
{
    for (uint32_t k = 0; k < node->input_count && k < 32; k++) {
        const struct graph_node *from = producer(s, node, k);

        if ((node->op->parameters >> k & 1) && from != NULL &&
            s->wave[from - s->graph->nodes] == s->current &&
            s->served[from - s->graph->nodes] && !input_is_known(s, node, k))
            return false;
    }
    return true;
}

static bool node_can_join(const struct search *s, const struct graph_node *node)
{
    return node->op != NULL &&
           (output_is_known(s, node) || (node_runs_on_device(s->graph, node) &&
                                         parameters_are_known(s, node)));
}

static uint32_t root(struct search *s, uint32_t node)
{
    while (s->parent[node] != node) {
        s->parent[node] = s->parent[s->parent[node]];
        node = s->parent[node];
    }
    return node;
}

static void visit(struct search *s, uint32_t index, bool served)
{
    const struct graph_node *node = &s->graph->nodes[index];

    s->wave[index] = s->current;
    s->served[index] = served;
    if (!served)
        return;
    s->known[index] = output_is_known(s, node);
    for (uint32_t k = 0; k < node->input_count; k++) {
        const struct graph_node *from = producer(s, node, k);
        const uint32_t other = (uint32_t)(from - s->graph->nodes);

        if (from != NULL && s->served[other] && s->wave[other] == s->current)
            s->parent[root(s, other)] = root(s, index);
    }
}

/* Visits all nodes that can be visited now.  Nodes are in topological order, so
 * one pass finds them all.  Returns their number.  A node that can run on a
 * device but not in the current wave waits for the next one. */
static uint32_t visit_ready(struct search *s, bool served)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->graph->node_count; i++) {
        const struct graph_node *node = &s->graph->nodes[i];

        if (s->wave[i] != NOT_VISITED || !inputs_are_visited(s, node))
            continue;
        if (served ? !node_can_join(s, node)
                   : node->op != NULL && (node_runs_on_device(s->graph, node) ||
                                          output_is_known(s, node)))
            continue;
        visit(s, i, served);
        count++;
    }
    return count;
}

/* Numbers the groups by their first nodes. */
static void number_groups(struct search *s, struct partition *out)
{
    const uint32_t count = s->graph->node_count;
    /* The number of a group is kept with its root.  No longer needed as wave.
     */
    uint32_t *const number = s->wave;

    for (uint32_t i = 0; i < count; i++)
        number[i] = NO_GROUP;
    for (uint32_t i = 0; i < count; i++) {
        out->group[i] = NO_GROUP;
        if (!s->served[i])
            continue;
        if (number[root(s, i)] == NO_GROUP)
            number[root(s, i)] = out->group_count++;
        out->group[i] = number[root(s, i)];
    }
}

bool partition_make(const struct graph *graph, struct partition *out)
{
    const size_t count = graph->node_count + 1;
    struct search s = {
        .graph = graph,
        .wave = malloc(count * sizeof(uint32_t)),
        .served = calloc(count, sizeof(bool)),
        .known = calloc(count, sizeof(bool)),
        .parent = malloc(count * sizeof(uint32_t)),
    };
    bool done = false;
    uint32_t visited;

    *out = (struct partition){.group = malloc(count * sizeof(uint32_t))};
    if (s.wave != NULL && s.served != NULL && s.known != NULL &&
        s.parent != NULL && out->group != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            s.wave[i] = NOT_VISITED;
            s.parent[i] = i;
        }
        do {
            visited = visit_ready(&s, false);
            visited += visit_ready(&s, true);
            s.current++;
        } while (visited > 0);
        number_groups(&s, out);
        done = true;
    }
    free(s.wave);
    free(s.served);
    free(s.known);
    free(s.parent);
    if (!done)
        partition_free(out);
    return done;
}

void partition_free(struct partition *partition)
{
    free(partition->group);
    *partition = (struct partition){.group = NULL};
}

bool node_does_work(const struct graph_node *node)
{
    return node->op != NULL && node->op->rule != RULE_MOVE &&
           node->op->rule != RULE_SHAPE;
}
