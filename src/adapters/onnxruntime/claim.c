/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes of a model the provider takes; see claim.h. */
#include <config.h>

#include "adapters/onnxruntime/claim.h"
#include "adapters/onnxruntime/assumed_shapes.h"
#include "adapters/onnxruntime/form_cost.h"
#include "adapters/onnxruntime/fusion.h"
#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/operators.h"
#include "adapters/onnxruntime/partition.h"
#include "adapters/onnxruntime/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes that are removed from groups because they can never run.  Each removal
 * plans the groups of the model again. */
#define MAX_SPLITS 16u

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

/* Returns true if a node of the group computes elements. */
static bool group_does_work(const struct graph *graph,
                            const struct group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        if (node_does_work(&graph->nodes[group->nodes[i]]))
            return true;
    }
    return false;
}

/* Finds the first typical assumption under which a device is predicted to win,
 * or else the one under which it comes closest; if the group cannot run at
 * typical sizes, the first size at which it can.  Returns false, with a reason,
 * if the group never runs; *out_failed is then the node that fails last. */
static bool predict(struct runtime *runtime,
                    const struct provider_options *options,
                    const struct graph *part, struct form_cost *out,
                    char out_text[256], uint32_t *out_failed)
{
    struct assumption assumptions[MAX_ASSUMPTIONS];
    uint32_t typical, failed, farthest = 0;
    const uint32_t count =
        assumptions_list(part, assumptions, &typical);
    bool found = false;
    struct form form;

    *out_failed = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        struct form_cost cost;
        char text[256], problem[256];

        if (i >= typical && found)
            break;
        if (!assumption_lower(part, options, &assumptions[i], &form, text,
                              &failed, problem)) {
            if (failed != UINT32_MAX && failed >= farthest && !found) {
                *out_failed = farthest = failed;
                memcpy(out->reason, problem, sizeof(problem));
            }
            continue;
        }
        form_cost_predict(runtime->context, options, &form, &cost);
        form_free(&form);
        if (!found || (cost.reason[0] == '\0' &&
                       (out->reason[0] != '\0' ||
                        cost.device_ns * out->cpu_ns <
                            out->device_ns * cost.cpu_ns))) {
            *out = cost;
            memcpy(out_text, text, sizeof(text));
        }
        found = true;
        if (out->reason[0] == '\0' && out->device_ns < out->cpu_ns)
            break;
        if (text[0] == '\0')
            break; /* nothing is open, so all assumptions are equal */
    }
    return found;
}

/* Predicts the times of a group.  Returns false if the group never runs. */
static bool group_predict(struct runtime *runtime,
                          const struct provider_options *options,
                          const struct graph *graph, const struct group *group,
                          struct form_cost *out, char out_text[256],
                          uint32_t *out_failed)
{
    struct graph part;
    bool runs;

    *out = (struct form_cost){.device = TANDEM_ANY_DEVICE};
    out_text[0] = '\0';
    *out_failed = UINT32_MAX;
    if (!graph_extract(&part, graph, group->nodes, group->count)) {
        snprintf(out->reason, sizeof(out->reason), "out of memory");
        return true;
    }
    graph_fuse(&part);
    runs = predict(runtime, options, &part, out, out_text, out_failed);
    graph_free(&part);
    if (!runs && out->reason[0] == '\0')
        snprintf(out->reason, sizeof(out->reason), "it cannot be planned");
    if (*out_failed != UINT32_MAX)
        *out_failed = group->nodes[*out_failed];
    return runs;
}

/* Decides about a group and reports the decision. */
static bool group_is_wanted(struct runtime *runtime,
                            const struct provider_options *options,
                            const struct graph *graph,
                            const struct group *group)
{
    const char *first = graph->nodes[group->nodes[0]].name;
    struct form_cost cost;
    const char *backend = "?";
    char assumed[256];
    uint32_t number = 0, failed;
    bool wanted;

    if (options->claim == CLAIM_ALL) {
        report_write(runtime, options,
                     "%" PRIu32 " nodes from \"%s\": taken (claim=all)",
                     group->count, first);
        return true;
    }
    if (!group_does_work(graph, group))
        return false;
    group_predict(runtime, options, graph, group, &cost, assumed, &failed);
    if (cost.reason[0] != '\0') {
        report_write(runtime, options,
                     "%" PRIu32 " nodes from \"%s\": left to ONNX Runtime: %s",
                     group->count, first, cost.reason);
        return false;
    }
    wanted = cost.device_ns < cost.cpu_ns;
    if (tandem_device_name(runtime->context, cost.device, &backend, &number) !=
        TANDEM_OK)
        backend = "?";
    report_write(runtime, options,
                 "%" PRIu32 " nodes from \"%s\": %s: predicted %.0f us on "
                 "%s:%" PRIu32 " with transfers, %.0f us on the CPU%s%s",
                 group->count, first, wanted ? "taken" : "left to ONNX Runtime",
                 cost.device_ns / 1e3, backend, number, cost.cpu_ns / 1e3,
                 assumed[0] != '\0' ? "; assumed shapes " : "", assumed);
    return wanted;
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

/* Returns true if ONNX Runtime can run the graph with the provider's groups. */
static bool host_can_mix(const struct runtime *runtime,
                         const struct provider_options *options,
                         const struct graph *graph,
                         const struct partition *partition)
{
    if (!runtime->takes_whole_graphs_only)
        return true;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (partition->group[i] == NO_GROUP)
            return false;
    }
    return options->claim == CLAIM_ALL || partition->group_count == 1;
}

static struct OrtStatus *claim_groups(struct runtime *runtime,
                                      const struct provider_options *options,
                                      const struct graph *graph,
                                      const struct partition *partition,
                                      struct OrtEpGraphSupportInfo *info)
{
    struct group group = {.nodes =
                              calloc(graph->node_count + 1, sizeof(uint32_t))};
    struct OrtStatus *status = NULL;

    if (group.nodes == NULL)
        return runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    if (partition->group_count == 0)
        report_write(runtime, options, "no node of the model is served");
    for (uint32_t i = 0; i < partition->group_count && status == NULL; i++) {
        group_init(graph, partition, i, &group);
        if (group_is_wanted(runtime, options, graph, &group))
            status = group_claim(runtime, graph, &group, info);
    }
    free(group.nodes);
    return status;
}

/* Leaves nodes that can never run to ONNX Runtime, and makes the partition
 * again without them.  Returns false if memory is exhausted. */
static bool split_groups(struct runtime *runtime,
                         const struct provider_options *options,
                         struct graph *graph, struct partition *partition)
{
    struct group group = {.nodes =
                              calloc(graph->node_count + 1, sizeof(uint32_t))};
    bool ok = group.nodes != NULL, changed = true;

    for (uint32_t splits = 0; ok && changed && splits < MAX_SPLITS; splits++) {
        changed = false;
        for (uint32_t i = 0; i < partition->group_count; i++) {
            struct form_cost cost;
            char assumed[256];
            uint32_t failed;

            group_init(graph, partition, i, &group);
            if (!group_does_work(graph, &group) ||
                group_predict(runtime, options, graph, &group, &cost, assumed,
                              &failed) ||
                failed == UINT32_MAX)
                continue;
            report_write(runtime, options,
                         "node \"%s\" is left to ONNX Runtime: %s",
                         graph->nodes[failed].name, cost.reason);
            graph->nodes[failed].op = NULL;
            changed = true;
        }
        if (changed) {
            partition_free(partition);
            ok = partition_make(graph, partition);
        }
    }
    free(group.nodes);
    return ok;
}

/* Sets *out to false for a branch of If in ONNX Runtime 1.23, which gives the
 * subgraphs of both branches the same name and then rejects the model.  It does
 * not tell the parent node of a graph, but branches have no inputs of their
 * own. */
static struct OrtStatus *can_take_nodes(const struct runtime *runtime,
                                        const struct OrtGraph *ort_graph,
                                        bool *out)
{
    size_t inputs = 0;
    struct OrtStatus *status =
        runtime->api->Graph_GetNumInputs(ort_graph, &inputs);

    *out = runtime->version > 23 || inputs > 0;
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
    bool can_take;
    struct OrtStatus *status = can_take_nodes(runtime, ort_graph, &can_take);

    if (status != NULL || !can_take)
        return status;
    status = graph_read(&graph, runtime->api, ort_graph, NULL);
    if (status != NULL)
        return status;
    operators_assign(&graph);
    if (!partition_make(&graph, &partition) ||
        (options->claim == CLAIM_BY_COST &&
         !split_groups(runtime, options, &graph, &partition)))
        status = runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    else if (host_can_mix(runtime, options, &graph, &partition))
        status = claim_groups(runtime, options, &graph, &partition, info);
    else
        log_write(runtime, logger, ORT_LOG_WARNING,
                  "no node is taken, because ONNX Runtime 1.23.0 cannot run "
                  "other nodes next to those of a provider like this; install "
                  "1.23.1 or newer");
    partition_free(&partition);
    graph_free(&graph);
    return status;
}
