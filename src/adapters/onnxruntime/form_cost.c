/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a form takes on each device; see form_cost.h. */
#include <config.h>

#include "adapters/onnxruntime/form_cost.h"
#include "adapters/onnxruntime/execution.h"
#include "adapters/onnxruntime/runtime.h"

#include <math.h>
#include <stdio.h>

/* The default costs of the CPU plugin are an upper bound. With 16 threads, they
 * predict 1.9 to 2.3 times the time of ONNX Runtime's CPU provider for
 * ResNet-50, BERT-base and MobileNet v2, and 1.6 times that for YOLOv8n. */
#define CPU_DEFAULT_COST_FACTOR 2

/* Predicted times by device, without transfers. */
struct device_times {
    /* Times of the steps that the device supports. Infinite if a step cannot
     * run for another reason. */
    double ns[TANDEM_MAX_DEVICES];
    uint32_t unsupported[TANDEM_MAX_DEVICES]; /* number of other steps */
    uint32_t unmeasured; /* mask of devices without measured costs of a step */
    uint32_t cpu;        /* the CPU plugin's device */
};
_Static_assert(TANDEM_MAX_DEVICES <= 32, "`unmeasured` has a bit per device");

static enum tandem_status explain_step(const struct execution *query,
                                       const struct provider_options *options,
                                       uint32_t step,
                                       struct tandem_explanation *out)
{
    *out = (struct tandem_explanation){.struct_size = sizeof(*out)};
    return execution_explain(
        query,
        (struct step_arguments){.step = step,
                                .device = TANDEM_ANY_DEVICE,
                                .flags = options->gemm_flags},
        out);
}

/* Returns the device's entry of an explanation, or NULL. */
static const struct tandem_candidate *
find_candidate(const struct tandem_explanation *explanation, uint32_t device)
{
    for (uint32_t i = 0; i < explanation->candidate_count; i++) {
        if (explanation->candidates[i].device == device)
            return &explanation->candidates[i];
    }
    return NULL;
}

/* Returns true if the device does not run the call.  A plugin that is older
 * than libtandem may find calls invalid that libtandem accepts. */
static bool is_unsupported(const struct tandem_candidate *candidate)
{
    return candidate != NULL && (candidate->status == TANDEM_UNSUPPORTED ||
                                 candidate->status == TANDEM_INVALID_ARGUMENT);
}

/* Adds one step to the times of all devices. */
static void add_step(const struct tandem_explanation *explanation,
                     struct device_times *times)
{
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        const struct tandem_candidate *candidate =
            find_candidate(explanation, i);

        if (is_unsupported(candidate)) {
            times->unsupported[i]++;
        } else if (candidate != NULL && candidate->status == TANDEM_OK) {
            times->ns[i] += candidate->launch_ns + candidate->execute_ns;
            times->unmeasured |= (uint32_t)!candidate->calibrated << i;
        } else {
            times->ns[i] = INFINITY;
        }
    }
}

static enum tandem_status add_steps(const struct execution *query,
                                    const struct provider_options *options,
                                    struct device_times *times,
                                    const struct graph_node **out_invalid)
{
    for (uint32_t i = 0; i < query->form->step_count; i++) {
        struct tandem_explanation explanation;
        const enum tandem_status status =
            explain_step(query, options, i, &explanation);

        if (status == TANDEM_INVALID_ARGUMENT || status == TANDEM_UNSUPPORTED)
            *out_invalid = query->form->steps[i].node;
        if (status != TANDEM_OK)
            return status;
        add_step(&explanation, times);
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

/* Returns the mask of the devices to compare with the CPU: those with measured
 * costs, and if no GPU has measured costs of all steps, the GPUs with default
 * costs, like the chooser (docs/choosing-a-device.md). */
static uint32_t comparable_devices(struct tandem_context *context,
                                   const struct provider_options *options,
                                   const struct device_times *times)
{
    uint32_t measured = 0, measured_gpus = 0, gpus = 0;

    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        struct tandem_device_info info = {.struct_size = sizeof(info)};
        const uint32_t bit = 1u << i;

        if (i == times->cpu || isinf(times->ns[i]) ||
            (options->device != TANDEM_ANY_DEVICE && options->device != i) ||
            tandem_device_describe(context, i, &info) != TANDEM_OK)
            continue;
        measured |= bit & ~times->unmeasured;
        if (info.kind != TANDEM_DEVICE_GPU)
            continue;
        gpus |= bit;
        if (times->unsupported[i] == 0)
            measured_gpus |= bit & ~times->unmeasured;
    }
    return measured_gpus != 0 ? measured : measured | gpus;
}

/* Returns the first GPU, or TANDEM_ANY_DEVICE. */
static uint32_t gpu_find(struct tandem_context *context)
{
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        struct tandem_device_info info = {.struct_size = sizeof(info)};

        if (tandem_device_describe(context, i, &info) == TANDEM_OK &&
            info.kind == TANDEM_DEVICE_GPU)
            return i;
    }
    return TANDEM_ANY_DEVICE;
}

/* Writes to out->reason why no device can be compared with the CPU. */
static void reason_write(struct tandem_context *context,
                         const struct provider_options *options,
                         const struct device_times *times,
                         struct form_cost *out)
{
    const uint32_t device =
        out->partial_device != TANDEM_ANY_DEVICE ? out->partial_device
        : options->device != TANDEM_ANY_DEVICE   ? options->device
                                                 : gpu_find(context);
    char label[DEVICE_LABEL_BYTES];

    device_label(context, device, label);
    if (out->partial_device != TANDEM_ANY_DEVICE)
        snprintf(out->reason, sizeof(out->reason),
                 "%s does not support all of its operators", label);
    else if (device == TANDEM_ANY_DEVICE)
        snprintf(out->reason, sizeof(out->reason),
                 "there is no GPU (cl-probe --doctor says why); claim=all "
                 "takes the nodes anyway");
    else if (device == times->cpu)
        snprintf(out->reason, sizeof(out->reason),
                 "claim=cost takes no nodes for the device cpu; claim=all "
                 "takes them");
    else if (isinf(times->ns[device]))
        snprintf(out->reason, sizeof(out->reason),
                 "no time can be predicted for %s; claim=all takes the nodes "
                 "anyway",
                 label);
    else
        snprintf(out->reason, sizeof(out->reason),
                 "%s is not a GPU and was not measured, so claim=cost does not "
                 "use it; claim=all takes the nodes anyway",
                 label);
}

/* Compares the devices. */
static void choose(struct tandem_context *context,
                   const struct provider_options *options,
                   const struct form *form, struct device_times *times,
                   struct form_cost *out)
{
    const uint32_t devices = comparable_devices(context, options, times);
    uint32_t fewest = UINT32_MAX;

    out->cpu_ns = times->ns[times->cpu];
    if (times->unmeasured >> times->cpu & 1)
        out->cpu_ns /= CPU_DEFAULT_COST_FACTOR;
    for (uint32_t i = 0; i < TANDEM_MAX_DEVICES; i++) {
        if (!(devices >> i & 1))
            continue;
        if (times->unsupported[i] > 0) {
            if (times->unsupported[i] < fewest) {
                fewest = times->unsupported[i];
                out->partial_device = i;
            }
            continue;
        }
        add_transfers(context, form, i, &times->ns[i]);
        if (times->ns[i] < out->device_ns) {
            out->device_ns = times->ns[i];
            out->device = i;
            out->is_default = times->unmeasured >> i & 1;
        }
    }
    if (out->device != TANDEM_ANY_DEVICE)
        out->partial_device = TANDEM_ANY_DEVICE;
    else
        reason_write(context, options, times, out);
}

void form_cost_predict(struct tandem_context *context,
                       const struct provider_options *options,
                       const struct form *form, struct form_cost *out)
{
    struct device_times times = {.cpu = 0};
    struct execution *query = NULL;

    *out = (struct form_cost){
        .device = TANDEM_ANY_DEVICE,
        .device_ns = INFINITY,
        .cpu_ns = INFINITY,
        .partial_device = TANDEM_ANY_DEVICE,
    };
    if (tandem_device_find(context, "cpu", &times.cpu) != TANDEM_OK ||
        execution_create_query(context, form, &query) != TANDEM_OK ||
        add_steps(query, options, &times, &out->invalid_node) != TANDEM_OK)
        snprintf(out->reason, sizeof(out->reason), "%.200s",
                 tandem_last_error());
    else
        choose(context, options, form, &times, out);
    execution_destroy(query);
}

void form_cost_mark_unsupported(struct tandem_context *context,
                                const struct provider_options *options,
                                const struct form *form,
                                const struct graph *graph, uint32_t device,
                                bool *out_nodes)
{
    struct execution *query = NULL;

    if (execution_create_query(context, form, &query) != TANDEM_OK)
        return;
    for (uint32_t i = 0; i < form->step_count; i++) {
        struct tandem_explanation explanation;

        if (explain_step(query, options, i, &explanation) != TANDEM_OK)
            continue;
        if (is_unsupported(find_candidate(&explanation, device)))
            out_nodes[form->steps[i].node - graph->nodes] = true;
    }
    execution_destroy(query);
}
