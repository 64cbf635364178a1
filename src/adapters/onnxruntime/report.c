/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the placement report; see report.h. */
#include <config.h>

#include "adapters/onnxruntime/report.h"
#include "adapters/onnxruntime/operators.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void report_write(struct runtime *runtime,
                  const struct provider_options *options, const char *format,
                  ...)
{
    va_list arguments;
    FILE *file;

    if (options->explain[0] == '\0')
        return;
    pthread_mutex_lock(&runtime->mutex);
    file = fopen(options->explain, "ae");
    if (file == NULL) {
        log_write(runtime, runtime->logger, ORT_LOG_WARNING,
                  "the placement report %s cannot be written: %s",
                  options->explain, strerror(errno));
    } else {
        va_start(arguments, format);
        vfprintf(file, format, arguments);
        va_end(arguments);
        fputc('\n', file);
        fclose(file);
    }
    pthread_mutex_unlock(&runtime->mutex);
}

struct OrtStatus *report_session(struct runtime *runtime,
                                 const struct provider_options *options,
                                 const struct OrtGraph *ort_graph)
{
    const time_t now = time(NULL);
    const char *model = "";
    struct OrtStatus *status =
        runtime->api->Graph_GetModelPath(ort_graph, &model);
    char date[64] = "?";
    struct tm local;

    if (status == NULL && model[0] == '\0')
        status = runtime->api->Graph_GetName(ort_graph, &model);
    if (status != NULL)
        return status;
    if (localtime_r(&now, &local) != NULL)
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local);
    report_write(runtime, options, "session of %s, Tandem %s: model %s", date,
                 tandem_version(), model);
    return NULL;
}

/* ---- nodes that are not served ---- */

/* Kinds of nodes that report_unserved names. */
#define MAX_KINDS 8u

/* Nodes with the same operator and element type. */
struct node_kind {
    const struct graph_node *first;
    uint32_t dtype; /* enum tandem_dtype, if the text names it, or 0 */
    uint32_t count;
};

/* Returns the element type that explains why the node is not served, or 0 if
 * its operator is not served or its elements are f32 or bool. */
static uint32_t explaining_dtype(const struct graph *graph,
                                 const struct graph_node *node)
{
    const int32_t values[] = {
        node->input_count > 0 ? node->inputs[0] : NO_VALUE,
        node->output_count > 0 ? node->outputs[0] : NO_VALUE,
    };

    if (operator_by_type(node->domain, node->type) == NULL)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const uint32_t dtype =
            values[i] != NO_VALUE ? graph->values[values[i]].dtype : 0;

        if (dtype != TANDEM_F32 && dtype != TANDEM_BOOL && dtype != 0)
            return dtype;
    }
    return 0;
}

/* Returns ONNX's name of an element type. */
static const char *onnx_dtype_name(uint32_t dtype)
{
    static const struct {
        uint32_t dtype;
        const char *name;
    } names[] = {
        {TANDEM_F16, "float16"}, {TANDEM_BF16, "bfloat16"},
        {TANDEM_F64, "double"},  {TANDEM_I8, "int8"},
        {TANDEM_I16, "int16"},   {TANDEM_I32, "int32"},
        {TANDEM_I64, "int64"},   {TANDEM_U8, "uint8"},
        {TANDEM_U16, "uint16"},  {TANDEM_U32, "uint32"},
        {TANDEM_U64, "uint64"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].dtype == dtype)
            return names[i].name;
    }
    return "?";
}

/* Returns true if the node is a group that the provider has taken. ONNX Runtime
 * asks again after it has replaced nodes by functions of simpler nodes, and
 * names the types of groups after the provider. */
static bool node_is_group(const struct graph_node *node)
{
    return strncmp(node->type, PROVIDER_NAME, strlen(PROVIDER_NAME)) == 0;
}

/* Returns the kind of the node.  Adds it if it is new.  Returns NULL if there
 * are too many kinds. */
static struct node_kind *kind_find(struct node_kind kinds[MAX_KINDS],
                                   uint32_t *count, const struct graph *graph,
                                   const struct graph_node *node)
{
    const uint32_t dtype = explaining_dtype(graph, node);

    for (uint32_t i = 0; i < *count; i++) {
        if (kinds[i].dtype == dtype &&
            strcmp(kinds[i].first->type, node->type) == 0 &&
            strcmp(kinds[i].first->domain, node->domain) == 0)
            return &kinds[i];
    }
    if (*count == MAX_KINDS)
        return NULL;
    kinds[*count] = (struct node_kind){.first = node, .dtype = dtype};
    return &kinds[(*count)++];
}

void report_unserved(struct runtime *runtime,
                     const struct provider_options *options,
                     const struct graph *graph)
{
    struct node_kind kinds[MAX_KINDS];
    uint32_t kind_count = 0, others = 0, length = 0;
    char text[MAX_KINDS * 192] = "";
    bool has_f16 = false;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct node_kind *kind;

        if (graph->nodes[i].op != NULL || node_is_group(&graph->nodes[i]))
            continue;
        kind = kind_find(kinds, &kind_count, graph, &graph->nodes[i]);
        if (kind != NULL)
            kind->count++;
        else
            others++;
    }
    if (kind_count == 0)
        return;
    for (uint32_t i = 0; i < kind_count; i++) {
        has_f16 |=
            kinds[i].dtype == TANDEM_F16 || kinds[i].dtype == TANDEM_BF16;
        length += (uint32_t)snprintf(
            text + length, sizeof(text) - length,
            "%s%" PRIu32 " %.60s%s%s (\"%.60s\"%s)", i > 0 ? ", " : "",
            kinds[i].count, kinds[i].first->type,
            kinds[i].dtype != 0 ? " of " : "",
            kinds[i].dtype != 0 ? onnx_dtype_name(kinds[i].dtype) : "",
            node_label(kinds[i].first), kinds[i].count > 1 ? ", ..." : "");
    }
    if (others > 0)
        snprintf(text + length, sizeof(text) - length,
                 ", and %" PRIu32 " other%s", others, plural(others));
    report_write(runtime, options, "not served, so left to ONNX Runtime: %s%s",
                 text, has_f16 ? "; export the model in float32" : "");
}

/* ---- operators ---- */

void report_step(struct runtime *runtime,
                 const struct provider_options *options,
                 const struct form_step *step)
{
    struct tandem_explanation explanation = {.struct_size =
                                                 sizeof(explanation)};
    const struct tandem_op_info *op = tandem_op_by_id(step->op);
    char device[DEVICE_LABEL_BYTES];
    double ns = 0;

    if (tandem_explain_last(runtime->context, &explanation) != TANDEM_OK)
        return;
    device_label(runtime->context, explanation.chosen, device);
    for (uint32_t i = 0; i < explanation.candidate_count; i++) {
        if (explanation.candidates[i].device == explanation.chosen)
            ns = explanation.candidates[i].predicted_ns;
    }
    report_write(runtime, options, "  %-18s %-9s %9.1f us  %-22s %.60s",
                 op != NULL ? op->name : "?", device, ns / 1e3,
                 step->node->type, node_label(step->node));
}
