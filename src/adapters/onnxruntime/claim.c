/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes of a model the provider takes; see claim.h. */
#include <config.h>

#include "adapters/onnxruntime/claim.h"
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

/* Lengths that unknown dimensions are assumed to have. */
#define ASSUMED_BATCH 1
#define ASSUMED_LENGTH 128

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

/* Returns true if the dimension is the first of an input, or has the name of
 * one that is. */
static bool is_batch(const struct graph *graph, const char *name, uint32_t axis)
{
    if (axis == 0)
        return true;
    for (uint32_t i = 0; i < graph->value_count && name != NULL; i++) {
        const char *first = graph->values[i].dimension_names[0];

        if (first != NULL && strcmp(first, name) == 0)
            return true;
    }
    return false;
}

/* Sets the shapes that the inputs are assumed to have. */
static bool assume_inputs(const struct graph *graph, struct lower_input *inputs)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct graph_value *value = &graph->values[graph->inputs[i]];

        if (!value->has_shape)
            return false;
        inputs[i] =
            (struct lower_input){.dtype = value->dtype, .rank = value->rank};
        for (uint32_t k = 0; k < value->rank; k++) {
            inputs[i].shape[k] = value->shape[k];
            if (value->shape[k] < 0)
                inputs[i].shape[k] =
                    is_batch(graph, value->dimension_names[k], k)
                        ? ASSUMED_BATCH
                        : ASSUMED_LENGTH;
        }
    }
    return true;
}

static bool lower_assumed(const struct graph *graph, struct form *form,
                          char reason[256])
{
    struct lower_input *inputs =
        calloc(graph->input_count + 1, sizeof(inputs[0]));
    bool *content_matters = calloc(graph->input_count + 1, sizeof(bool));
    bool lowered = false;

    if (inputs == NULL || content_matters == NULL)
        snprintf(reason, 256, "out of memory");
    else if (!assume_inputs(graph, inputs))
        snprintf(reason, 256, "the rank of an input is not known");
    else
        lowered = lower_graph(graph, inputs, content_matters, form, reason);
    free(inputs);
    free(content_matters);
    return lowered;
}

static void predict(struct runtime *runtime,
                    const struct provider_options *options,
                    const struct graph *graph, const struct group *group,
                    struct form_cost *out)
{
    struct graph part;
    struct form form;

    *out = (struct form_cost){.device = TANDEM_ANY_DEVICE};
    if (!graph_extract(&part, graph, group->nodes, group->count)) {
        snprintf(out->reason, sizeof(out->reason), "out of memory");
        return;
    }
    graph_fuse(&part);
    if (lower_assumed(&part, &form, out->reason)) {
        form_cost_predict(runtime->context, options, &form, out);
        form_free(&form);
    }
    graph_free(&part);
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
    uint32_t number = 0;
    bool wanted;

    if (options->claim == CLAIM_ALL) {
        report_write(runtime, options,
                     "%" PRIu32 " nodes from \"%s\": taken (claim=all)",
                     group->count, first);
        return true;
    }
    if (!group_does_work(graph, group))
        return false;
    predict(runtime, options, graph, group, &cost);
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
                 "%s:%" PRIu32 " with transfers, %.0f us on the CPU",
                 group->count, first, wanted ? "taken" : "left to ONNX Runtime",
                 cost.device_ns / 1e3, backend, number, cost.cpu_ns / 1e3);
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
    if (!partition_make(&graph, &partition))
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
