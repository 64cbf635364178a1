/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes of a model the provider takes; see claim.h. */
#include <config.h>

#include "adapters/onnxruntime/claim.h"
#include "adapters/onnxruntime/assumed_shapes.h"
#include "adapters/onnxruntime/constants.h"
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

/* How often nodes that no device supports are removed from groups. */
#define MAX_SPLITS 16u
/* Sizes of open dimensions for which times are predicted. */
#define MAX_TYPICAL 2u

/* A group of nodes of the model, in ascending order. */
struct group {
    uint32_t *nodes;
    uint32_t count;
    bool predicted; /* the fields below are set */
    struct form_cost cost;
    char assumed[256]; /* shapes for which `cost` holds, or "" */
};

struct groups {
    struct group *items;
    uint32_t count;
    uint32_t *nodes; /* memory of all groups */
};

static void groups_free(struct groups *groups)
{
    free(groups->items);
    free(groups->nodes);
    *groups = (struct groups){.items = NULL};
}

/* Collects the nodes of each group.  Returns false if memory is exhausted. */
static bool groups_make(const struct graph *graph,
                        const struct partition *partition, struct groups *out)
{
    uint32_t next = 0;

    *out = (struct groups){
        .items = calloc(partition->group_count + 1, sizeof(out->items[0])),
        .count = partition->group_count,
        .nodes = calloc(graph->node_count + 1, sizeof(out->nodes[0])),
    };
    if (out->items == NULL || out->nodes == NULL) {
        groups_free(out);
        return false;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (partition->group[i] != NO_GROUP)
            out->items[partition->group[i]].count++;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        out->items[i].nodes = out->nodes + next;
        next += out->items[i].count;
        out->items[i].count = 0;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct group *group;

        if (partition->group[i] == NO_GROUP)
            continue;
        group = &out->items[partition->group[i]];
        group->nodes[group->count++] = i;
    }
    return true;
}

/* Returns true if ONNX Runtime should keep the constants of the group. */
static bool group_constants_stay(struct runtime *runtime,
                                 const struct graph *graph,
                                 const struct group *group)
{
    struct graph part;
    bool stay;

    if (!graph_extract(&part, graph, group->nodes, group->count))
        return false;
    graph_fuse(&part);
    stay = constants_should_stay(runtime, &part);
    graph_free(&part);
    return stay;
}

static struct OrtStatus *group_claim(struct runtime *runtime,
                                     const struct graph *graph,
                                     const struct group *group,
                                     struct OrtEpGraphSupportInfo *info)
{
    const struct ort_fusion_options options = {
        .version = runtime->version,
        .drop_constant_initializers =
            !group_constants_stay(runtime, graph, group),
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

/* ---- shapes ---- */

/* The shapes of the model at typical sizes at which it can run. */
struct model_shapes {
    struct assumed_shapes items[MAX_TYPICAL];
    uint32_t count;
};

static void model_shapes_free(struct model_shapes *shapes)
{
    for (uint32_t i = 0; i < shapes->count; i++)
        assumed_shapes_free(&shapes->items[i]);
    shapes->count = 0;
}

/* Leaves the nodes that fail to ONNX Runtime. */
static void drop_failures(struct runtime *runtime,
                          const struct provider_options *options,
                          const struct assumed_shapes *shapes,
                          struct graph *graph)
{
    for (uint32_t i = 0; i < shapes->failure_count; i++) {
        struct graph_node *node = &graph->nodes[shapes->failures[i].node];

        report_write(
            runtime, options, "node \"%s\" is left to ONNX Runtime: %s%s%s",
            node_label(node), shapes->failures[i].problem,
            shapes->text[0] != '\0' ? "; assumed shapes " : "", shapes->text);
        node->op = NULL;
    }
}

/* Finds the first sizes at which all nodes can run and no tensor becomes empty.
 * If no sizes are like this, takes those at which most nodes can run, and
 * leaves the other nodes to ONNX Runtime.  Returns false if there is no memory.
 */
static bool model_shapes_find(struct runtime *runtime,
                              const struct provider_options *options,
                              struct graph *graph, struct model_shapes *out)
{
    struct assumption assumptions[MAX_ASSUMPTIONS];
    uint32_t typical;
    const uint32_t count = assumptions_list(graph, assumptions, &typical);
    struct assumed_shapes best = {.values = NULL};
    uint32_t problems, fewest = UINT32_MAX;
    bool is_open = true;

    *out = (struct model_shapes){.count = 0};
    for (uint32_t i = 0; i < count && is_open && out->count < typical; i++) {
        struct assumed_shapes shapes;

        if (assumptions[i].last_resort && out->count > 0)
            break;
        if (!assumed_shapes_infer(graph, options, &assumptions[i], &shapes)) {
            assumed_shapes_free(&best);
            model_shapes_free(out);
            return false;
        }
        /* If nothing is open, all assumptions are equal. */
        is_open = shapes.text[0] != '\0';
        problems = shapes.failure_count + shapes.empty_count;
        if (problems == 0) {
            out->items[out->count++] = shapes;
        } else if (problems < fewest) {
            fewest = problems;
            assumed_shapes_free(&best);
            best = shapes;
        } else {
            assumed_shapes_free(&shapes);
        }
    }
    if (out->count > 0) {
        assumed_shapes_free(&best);
        return true;
    }
    drop_failures(runtime, options, &best, graph);
    out->items[out->count++] = best;
    return true;
}

/* ---- predictions ---- */

static const struct form_cost no_cost = {
    .device = TANDEM_ANY_DEVICE,
    .partial_device = TANDEM_ANY_DEVICE,
};

/* Returns true if the first prediction is better than the second. */
static bool cost_is_better(const struct form_cost *a, const struct form_cost *b)
{
    if (a->reason[0] != '\0' || b->reason[0] != '\0')
        return a->reason[0] == '\0' && b->reason[0] != '\0';
    return a->device_ns * b->cpu_ns < b->device_ns * a->cpu_ns;
}

/* Predicts the times of a group's graph for given shapes. If there is no
 * prediction because of single nodes, sets out_impossible[i] to true for them:
 * those that the most suitable device does not support, or the first one that
 * cannot run at all.  out_impossible may be NULL. */
static void predict_at(struct runtime *runtime,
                       const struct provider_options *options,
                       const struct assumed_shapes *shapes,
                       const struct graph *part, struct form_cost *out,
                       bool *out_impossible)
{
    struct form form;
    uint32_t failed;

    *out = no_cost;
    if (!assumed_shapes_lower(shapes, part, &form, &failed, out->reason)) {
        if (failed != UINT32_MAX && out_impossible != NULL)
            out_impossible[failed] = true;
        return;
    }
    form_cost_predict(runtime->context, options, &form, out);
    if (out->invalid_node != NULL && out_impossible != NULL)
        out_impossible[out->invalid_node - part->nodes] = true;
    out->invalid_node = NULL; /* belongs to `part` */
    if (out->partial_device != TANDEM_ANY_DEVICE && out_impossible != NULL)
        form_cost_mark_unsupported(runtime->context, options, &form, part,
                                   out->partial_device, out_impossible);
    form_free(&form);
}

/* Predicts the times of a group for the shapes at which the device wins, or
 * else comes closest. `part` is the group's graph. If the group cannot run at
 * any of the shapes, marks the nodes that prevent it at the first shapes. */
static void predict(struct runtime *runtime,
                    const struct provider_options *options,
                    const struct model_shapes *shapes, const struct graph *part,
                    struct group *group, bool *out_impossible)
{
    struct form_cost *best = &group->cost;

    predict_at(runtime, options, &shapes->items[0], part, best, out_impossible);
    memcpy(group->assumed, shapes->items[0].text, sizeof(group->assumed));
    for (uint32_t i = 1; i < shapes->count && !(best->reason[0] == '\0' &&
                                                best->device_ns < best->cpu_ns);
         i++) {
        struct form_cost cost;

        predict_at(runtime, options, &shapes->items[i], part, &cost, NULL);
        if (cost_is_better(&cost, best)) {
            *best = cost;
            memcpy(group->assumed, shapes->items[i].text,
                   sizeof(group->assumed));
        }
    }
}

/* Predicts the times of a group.  Returns true if the group can have no
 * prediction because of single nodes, which are then left to ONNX Runtime. */
static bool group_predict(struct runtime *runtime,
                          const struct provider_options *options,
                          const struct model_shapes *shapes,
                          struct graph *graph, struct group *group)
{
    bool *impossible = calloc(group->count + 1, sizeof(bool));
    struct graph part = {.nodes = NULL};
    char device[DEVICE_LABEL_BYTES];
    bool split = false;

    group->cost = no_cost;
    if (impossible != NULL &&
        graph_extract(&part, graph, group->nodes, group->count)) {
        graph_fuse(&part);
        predict(runtime, options, shapes, &part, group, impossible);
        graph_free(&part);
    } else {
        snprintf(group->cost.reason, sizeof(group->cost.reason),
                 "out of memory");
    }
    group->predicted = true;
    for (uint32_t i = 0; i < group->count && group->cost.reason[0] != '\0' &&
                         impossible != NULL;
         i++) {
        struct graph_node *node = &graph->nodes[group->nodes[i]];

        if (!impossible[i])
            continue;
        if (group->cost.partial_device != TANDEM_ANY_DEVICE) {
            device_label(runtime->context, group->cost.partial_device, device);
            snprintf(group->cost.reason, sizeof(group->cost.reason),
                     "%s does not support %.100s", device, node->type);
        }
        report_write(runtime, options,
                     "node \"%s\" is left to ONNX Runtime: %s",
                     node_label(node), group->cost.reason);
        node->op = NULL;
        split = true;
    }
    free(impossible);
    return split;
}

/* Decides about a group and reports the decision. */
static bool group_is_wanted(struct runtime *runtime,
                            const struct provider_options *options,
                            const struct graph *graph,
                            const struct group *group)
{
    const char *first = node_label(&graph->nodes[group->nodes[0]]);
    const char *s = plural(group->count);
    const struct form_cost *cost = &group->cost;
    char device[DEVICE_LABEL_BYTES];
    const char *separator;
    bool wanted;

    if (options->claim == CLAIM_ALL) {
        report_write(runtime, options,
                     "%" PRIu32 " node%s from \"%s\": taken (claim=all)",
                     group->count, s, first);
        return true;
    }
    if (!group->predicted)
        return false;
    separator = group->assumed[0] != '\0' ? "; assumed shapes " : "";
    if (cost->reason[0] != '\0') {
        report_write(
            runtime, options,
            "%" PRIu32 " node%s from \"%s\": left to ONNX Runtime: %s%s%s",
            group->count, s, first, cost->reason, separator, group->assumed);
        return false;
    }
    wanted = cost->device_ns < cost->cpu_ns;
    device_label(runtime->context, cost->device, device);
    report_write(
        runtime, options,
        "%" PRIu32 " node%s from \"%s\": %s: predicted %.0f us on "
        "%s with transfers%s, %.0f us on the CPU%s%s",
        group->count, s, first, wanted ? "taken" : "left to ONNX Runtime",
        cost->device_ns / 1e3, device,
        cost->is_default ? " (default costs; run cl-probe --calibrate)" : "",
        cost->cpu_ns / 1e3, separator, group->assumed);
    return wanted;
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

/* Returns the number of nodes that the provider serves. */
static uint32_t served_count(const struct graph *graph)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op != NULL;
    return count;
}

static struct OrtStatus *claim_groups(struct runtime *runtime,
                                      const struct provider_options *options,
                                      const struct graph *graph,
                                      const struct groups *groups,
                                      struct OrtEpGraphSupportInfo *info)
{
    struct OrtStatus *status = NULL;
    uint32_t others = served_count(graph);

    if (groups->count == 0)
        report_write(runtime, options, "no node of the model is served");
    for (uint32_t i = 0; i < groups->count && status == NULL; i++) {
        const struct group *group = &groups->items[i];

        if (options->claim == CLAIM_ALL || group->predicted)
            others -= group->count;
        if (group_is_wanted(runtime, options, graph, group))
            status = group_claim(runtime, graph, group, info);
    }
    if (others > 0)
        report_write(runtime, options,
                     "%" PRIu32 " other node%s left to ONNX Runtime: only "
                     "shapes are computed, or data are moved",
                     others, plural(others));
    return status;
}

/* Copies the predictions of groups that did not change. */
static void keep_predictions(const struct groups *from, struct groups *to)
{
    uint32_t k = 0;

    /* Both lists are ordered by the first nodes of the groups. */
    for (uint32_t i = 0; i < to->count; i++) {
        struct group *group = &to->items[i];
        const struct group *old;

        while (k < from->count && from->items[k].nodes[0] < group->nodes[0])
            k++;
        if (k == from->count)
            return;
        old = &from->items[k];
        if (!old->predicted || old->count != group->count ||
            memcmp(old->nodes, group->nodes,
                   group->count * sizeof(group->nodes[0])) != 0)
            continue;
        group->predicted = true;
        group->cost = old->cost;
        memcpy(group->assumed, old->assumed, sizeof(group->assumed));
    }
}

/* Predicts the times of all groups.  Leaves nodes that cannot run to ONNX
 * Runtime, and then makes the partition and the groups again.  Returns false if
 * memory is exhausted. */
static bool groups_predict(struct runtime *runtime,
                           const struct provider_options *options,
                           const struct model_shapes *shapes,
                           struct graph *graph, struct partition *partition,
                           struct groups *groups)
{
    for (uint32_t splits = 0;; splits++) {
        bool changed = false;
        struct groups old = *groups;

        for (uint32_t i = 0; i < groups->count; i++) {
            struct group *group = &groups->items[i];

            if (!group->predicted && group_does_work(graph, group))
                changed |=
                    group_predict(runtime, options, shapes, graph, group);
        }
        if (!changed || splits == MAX_SPLITS)
            return true;
        partition_free(partition);
        *groups = (struct groups){.items = NULL};
        if (partition_make(graph, partition) &&
            groups_make(graph, partition, groups))
            keep_predictions(&old, groups);
        groups_free(&old);
        if (groups->items == NULL)
            return false;
    }
}

/* Makes the groups.  With claim=cost, also predicts their times. */
static bool groups_find(struct runtime *runtime,
                        const struct provider_options *options,
                        struct graph *graph, struct partition *partition,
                        struct groups *groups)
{
    const bool by_cost = options->claim == CLAIM_BY_COST;
    struct model_shapes shapes = {.count = 0};
    bool ok =
        (!by_cost || model_shapes_find(runtime, options, graph, &shapes)) &&
        partition_make(graph, partition) &&
        groups_make(graph, partition, groups) &&
        (!by_cost ||
         groups_predict(runtime, options, &shapes, graph, partition, groups));

    model_shapes_free(&shapes);
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

/* Warns about entries of the option "shapes" that do not fit the model.  The
 * entries may name tensors of the graph around a body, so bodies are not
 * checked.  An error would not reach the program: ONNX Runtime logs it and lets
 * the provider take no nodes. */
static struct OrtStatus *shapes_check(struct runtime *runtime,
                                      const struct provider_options *options,
                                      const struct OrtLogger *logger,
                                      const struct OrtGraph *ort_graph,
                                      const struct graph *graph)
{
    const struct OrtNode *parent = NULL;
    struct OrtStatus *status =
        runtime->api->Graph_GetParentNode(ort_graph, &parent);
    int64_t shape[TANDEM_MAX_RANK];
    const char *name;
    size_t length;
    uint32_t rank;

    if (status != NULL || parent != NULL)
        return status;
    for (uint32_t i = 0;
         (rank = options_shape_entry(options, i, &name, &length, shape)) > 0;
         i++) {
        char message[512];

        if (assumed_shape_check(graph, name, length, rank, shape, message))
            continue;
        log_write(runtime, logger, ORT_LOG_WARNING, "%s", message);
        report_write(runtime, options, "%s", message);
    }
    return NULL;
}

struct OrtStatus *claim_nodes(struct runtime *runtime,
                              const struct provider_options *options,
                              const struct OrtLogger *logger,
                              const struct OrtGraph *ort_graph,
                              struct OrtEpGraphSupportInfo *info)
{
    struct graph graph;
    struct partition partition = {.group = NULL};
    struct groups groups = {.items = NULL};
    bool can_take;
    struct OrtStatus *status = can_take_nodes(runtime, ort_graph, &can_take);

    if (status != NULL || !can_take)
        return status;
    status = graph_read(&graph, runtime->api, &runtime->files, ort_graph, NULL);
    if (status != NULL)
        return status;
    status = shapes_check(runtime, options, logger, ort_graph, &graph);
    if (status != NULL) {
        graph_free(&graph);
        return status;
    }
    operators_assign(&graph);
    report_unserved(runtime, options, &graph);
    if (!groups_find(runtime, options, &graph, &partition, &groups))
        status = runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    else if (groups.count == 0 ||
             host_can_mix(runtime, options, &graph, &partition))
        status = claim_groups(runtime, options, &graph, &groups, info);
    else
        log_write(runtime, logger, ORT_LOG_WARNING,
                  "no node is taken, because ONNX Runtime 1.23.0 cannot run "
                  "other nodes next to those of a provider like this; install "
                  "1.23.1 or newer");
    groups_free(&groups);
    partition_free(&partition);
    graph_free(&graph);
    return status;
}
