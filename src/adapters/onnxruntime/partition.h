/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the nodes that the provider serves into groups that can each become
 * one node. */
#ifndef TANDEM_ONNXRUNTIME_PARTITION_H
#define TANDEM_ONNXRUNTIME_PARTITION_H

#include "adapters/onnxruntime/graph.h"

#define NO_GROUP UINT32_MAX

struct partition {
    uint32_t *group; /* group of each node, or NO_GROUP */
    uint32_t group_count;
};

/* Finds the groups.  No path leads from a group through another node back to
 * the group, and the content of every shape that a node needs is known before
 * its group runs.  Returns false if memory is exhausted. */
bool partition_make(const struct graph *graph, struct partition *out);
void partition_free(struct partition *partition);

/* Returns true if the node computes elements, and not only shapes or views. */
bool node_does_work(const struct graph_node *node);

#endif
