/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes of a model the provider takes; see claim.h. */
#include <config.h>

#include "adapters/onnxruntime/claim.h"
#include "adapters/onnxruntime/partition.h"

#include <inttypes.h>
#include <stdlib.h>

/* A group of nodes of the model, in ascending order. */
struct group {
    uint32_t *nodes;
    uint32_t count;
};

static struct OrtStatus *group_claim(struct runtime *runtime,
                                     const struct graph *graph,
                                     const struct group *group,
                                     struct OrtEpGraphSupportInfo *info)
{
    const struct ort_fusion_options options = {
        .version = runtime->version,
        .drop_constant_initializers = true,
    };
    const struct OrtNode **nodes = calloc(group->count, sizeof(nodes[0]));
    struct OrtStatus *status;

    if (nodes == NULL)
        return runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    for (uint32_t i = 0; i < group->count; i++)
        nodes[i] = graph->ort_nodes[group->nodes[i]];
    status = runtime->ep_api->EpGraphSupportInfo_AddNodesToFuse(
        info, nodes, group->count, &options);
    free(nodes);
    return status;
}

/* Returns true if the group is worth the transfers of its inputs. */
static bool group_is_wanted(const struct graph *graph,
                            const struct group *group,
                            const struct provider_options *options)
{
    if (options->claim == CLAIM_ALL)
        return true;
    for (uint32_t i = 0; i < group->count; i++) {
        if (node_does_work(&graph->nodes[group->nodes[i]]))
            return true;
    }
    return false;
}

/* Collects the nodes of a group. */
static void group_init(const struct graph *graph,
                       const struct partition *partition, uint32_t number,
                       struct group *group)
{
    group->count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (partition->group[i] == number)
            group->nodes[group->count++] = i;
    }
}

static struct OrtStatus *claim_groups(struct runtime *runtime,
                                      const struct provider_options *options,
                                      const struct graph *graph,
                                      const struct partition *partition,
                                      struct OrtEpGraphSupportInfo *info)
{
    struct group group = {
        .nodes = calloc(graph->node_count + 1, sizeof(uint32_t))};
    struct OrtStatus *status = NULL;

    if (group.nodes == NULL)
        return runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    for (uint32_t i = 0; i < partition->group_count && status == NULL; i++) {
        group_init(graph, partition, i, &group);
        if (group_is_wanted(graph, &group, options))
            status = group_claim(runtime, graph, &group, info);
    }
    free(group.nodes);
    return status;
}

struct OrtStatus *claim_nodes(struct runtime *runtime,
                              const struct provider_options *options,
                              const struct OrtLogger *logger,
                              const struct OrtGraph *ort_graph,
                              struct OrtEpGraphSupportInfo *info)
{
    struct graph graph;
    struct partition partition;
    struct OrtStatus *status =
        graph_read(&graph, runtime->api, ort_graph, NULL);

    if (status != NULL)
        return status;
    if (partition_make(&graph, &partition))
        status = claim_groups(runtime, options, &graph, &partition, info);
    else
        status = runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    log_write(runtime, logger, ORT_LOG_INFO,
              "%" PRIu32 " nodes form %" PRIu32 " groups", graph.node_count,
              partition.group_count);
    partition_free(&partition);
    graph_free(&graph);
    return status;
}
