/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with which the fusions search and change a graph. */
#ifndef TANDEM_ONNXRUNTIME_GRAPH_MATCH_H
#define TANDEM_ONNXRUNTIME_GRAPH_MATCH_H

#include "adapters/onnxruntime/graph.h"

#define MAX_MATCH_NODES 16u

struct fusion {
    struct graph *graph;
    int32_t *reader; /* a node that reads each value, or NO_VALUE */
};

/* The nodes of a group that has been found. */
struct match {
    struct graph_node *nodes[MAX_MATCH_NODES];
    uint32_t count;
};

/* Returns true if the node exists, was not removed, and is of this type in
 * ONNX's default domain. */
bool node_is_type(const struct graph_node *node, const char *type);
/* Returns the producer of a value that `readers` node inputs read and that is
 * no output of the graph, or NULL. */
struct graph_node *value_private_producer(const struct fusion *f, int32_t value,
                                          uint32_t readers);
/* Returns the node that reads the first output of `node`, or NULL if there are
 * several or if that output is one of the graph. */
struct graph_node *node_only_reader(const struct fusion *f,
                                    const struct graph_node *node);
/* Returns true if the value is a constant f32 or i64 with one element. */
bool value_constant(const struct fusion *f, int32_t index, double *out);
/* Returns true if the value is such a constant and about equal to `expected`.
 */
bool value_is_constant(const struct fusion *f, int32_t value, double expected);
/* Returns the input of a node with two inputs that is not `value`, or
 * NO_VALUE. */
int32_t node_other_input(const struct graph_node *node, int32_t value);
/* Returns true if the node is a sum or product (`type`) with a constant, and
 * sets *out to its other input. */
bool node_has_constant(const struct fusion *f, const struct graph_node *node,
                       const char *type, double expected, int32_t *out);
/* Returns false if the node is NULL or the match is full. */
bool match_add(struct match *match, struct graph_node *node);
/* The node takes over the output of `next`, which reads its own. */
void node_absorb(struct fusion *f, struct graph_node *node,
                 struct graph_node *next);
/* Marks a node as removed. */
void node_remove(struct fusion *f, struct graph_node *node);
/* Lets all nodes that read `from` read `to`. */
void value_replace(struct fusion *f, int32_t from, int32_t to);
/* Removes the match's nodes except `last`, which becomes an operator with the
 * given inputs. */
void match_replace(struct fusion *f, const struct match *match,
                   struct graph_node *last, const struct onnx_operator *op,
                   const int32_t *inputs, uint32_t input_count);

#endif
