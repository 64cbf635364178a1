/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a graph takes on each device; see claim_cost.h. */
#include <config.h>

#include "adapters/onnxruntime/claim_cost.h"
#include "adapters/onnxruntime/execution.h"
#include "adapters/onnxruntime/lower.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSUMED_BATCH 1
#define ASSUMED_LENGTH 128

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

/* Predicted times by device, without transfers. */
struct device_times {
    double ns[TANDEM_MAX_DEVICES]; /* infinite if a step cannot run there */
    uint32_t cpu;                  /* the CPU plugin's device */
};

/* Returns the time of a step, which is infinite if the device cannot run it or
 * its costs were not measured. Defaults count for the CPU plugin only. */
static double candidate_ns(const struct tandem_explanation *explanation,
                           uint32_t device, uint32_t cpu)
{
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        const struct tandem_candidate *candidate = &explanation->candidates[i];

        if (candidate->device == device && candidate->status == TANDEM_OK &&
            (candidate->calibrated || device == cpu))
            return candidate->launch_ns + candidate->execute_ns;
    }
    return INFINITY;
}

static enum tandem_status add_steps(const struct execution *query,
                                    const struct provider_options *options,
                                    struct device_times *times)
{
    for (uint32_t i = 0; i < query->form->step_count; i++) {
        struct tandem_explanation explanation = {.struct_size =
                                                     sizeof(explanation)};
        const enum tandem_status status = execution_explain(
            query,
            (struct step_arguments){.step = i,
                                    .device = TANDEM_ANY_DEVICE,
                                    .flags = options->gemm_flags},
            &explanation);

        if (status != TANDEM_OK)
            return status;
        for (uint32_t k = 0; k < TANDEM_MAX_DEVICES; k++)
            times->ns[k] += candidate_ns(&explanation, k, times->cpu);
    }
    return TANDEM_OK;
}

static void add_curve(struct tandem_context *context, uint32_t device,
                      const char *curve, double bytes, double *ns)
{
    double cost = INFINITY;

    if (tandem_device_predict_cost(context, device, curve, bytes, &cost) !=
        TANDEM_OK)
        cost = INFINITY;
    *ns += cost;
}

/* Adds the transfers of inputs and outputs. */
static void add_transfers(struct tandem_context *context,
                          const struct form *form, uint32_t device, double *ns)
{
    for (uint32_t i = 0; i < form->storage_count; i++) {
        const struct form_storage *storage = &form->storages[i];

        if (storage->kind == STORAGE_INPUT && storage->used)
            add_curve(context, device, "upload",
                      (double)storage->elements *
                          TANDEM_DTYPE_BYTES(storage->dtype),
                      ns);
    }
    for (uint32_t i = 0; i < form->output_count; i++) {
        if (form->outputs[i].view != NO_VIEW)
            add_curve(context, device, "download",
                      (double)form->outputs[i].bytes, ns);
    }
}

/* Compares the devices. */
static void choose(struct tandem_context *context,
                   const struct provider_options *options,
                   const struct form *form, struct device_times *times,
                   struct claim_cost *out)
{
    out->cpu_ns = times->ns[times->cpu];
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        if (i == times->cpu || isinf(times->ns[i]) ||
            (options->device != TANDEM_ANY_DEVICE && options->device != i))
            continue;
        add_transfers(context, form, i, &times->ns[i]);
        if (times->ns[i] < out->device_ns) {
            out->device_ns = times->ns[i];
            out->device = i;
        }
    }
    if (out->device == TANDEM_ANY_DEVICE)
        snprintf(out->reason, sizeof(out->reason),
                 "no device except the CPU has measured costs for all of its "
                 "operators; run cl-probe --calibrate");
}

void claim_cost_predict(struct tandem_context *context,
                        const struct provider_options *options,
                        const struct graph *graph, struct claim_cost *out)
{
    struct device_times times = {.cpu = 0};
    struct execution *query = NULL;
    struct form form;

    *out = (struct claim_cost){
        .device = TANDEM_ANY_DEVICE, .device_ns = INFINITY, .cpu_ns = INFINITY};
    if (!lower_assumed(graph, &form, out->reason))
        return;
    if (tandem_device_find(context, "cpu", &times.cpu) != TANDEM_OK ||
        execution_create_query(context, &form, &query) != TANDEM_OK ||
        add_steps(query, options, &times) != TANDEM_OK)
        snprintf(out->reason, sizeof(out->reason), "%.200s",
                 tandem_last_error());
    else
        choose(context, options, &form, &times, out);
    execution_destroy(query);
    form_free(&form);
}
