/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or makes the form for the shapes of a run, and runs it; see
 * subgraph.h. */
#include <config.h>

#include "adapters/onnxruntime/subgraph.h"
#include "adapters/onnxruntime/constants.h"
#include "adapters/onnxruntime/execution.h"
#include "adapters/onnxruntime/form_cost.h"
#include "adapters/onnxruntime/fusion.h"
#include "adapters/onnxruntime/lower.h"
#include "adapters/onnxruntime/operators.h"
#include "adapters/onnxruntime/report.h"
#include "adapters/onnxruntime/weight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Forms that a subgraph keeps.  A program with more shapes than this lowers the
 * graph again, which takes about as long as one run on a CPU of a small
 * model. */
#define MAX_FORMS 32u
/* Unused executions that a form keeps, one for each thread that ran it. */
#define MAX_UNUSED_EXECUTIONS 8u

/* A form, the shapes for which it was made, and its unused executions. */
struct cached_form {
    struct cached_form *next; /* the form that was used before this one */
    struct form form;
    int64_t *key;
    size_t key_length;
    uint32_t users; /* threads that run it, and 1 while it is in the list */
    struct execution *unused;
    uint32_t unused_count;
    uint32_t device;    /* device that runs the form */
    bool compiled;      /* every step was ready on the device once */
    bool wait_reported; /* the report says that the CPU computes meanwhile */
    bool reported;      /* the placement report lists the form's steps */
};

struct subgraph {
    struct runtime *runtime;
    const struct provider_options *options;
    const struct OrtLogger *logger;
    struct graph graph;
    char name[128];        /* for messages: "group 1 (from node conv1)" */
    pthread_mutex_t mutex; /* guards what follows */
    struct cached_form *forms;
    bool constants_are_bound; /* constants_rebind has succeeded */
    bool *content_matters;    /* one for each input; see lower_graph */
};

/* The inputs of one run. */
struct run {
    struct subgraph *subgraph;
    struct OrtKernelContext *context;
    struct lower_input *inputs;
    const void **contents;
    const struct graph_node *node; /* node that was started last, or NULL */
};

static struct OrtStatus *run_failed(const struct subgraph *subgraph,
                                    enum ort_error_code code, const char *what,
                                    const char *reason)
{
    char message[1024];

    snprintf(message, sizeof(message), "TandemExecutionProvider: %.400s: %s",
             what, reason);
    return subgraph->runtime->api->CreateStatus(code, message);
}

/* ---- creation ---- */

struct OrtStatus *subgraph_create(struct runtime *runtime,
                                  const struct provider_options *options,
                                  const struct OrtLogger *logger,
                                  const struct OrtGraph *ort_graph,
                                  const struct OrtNode *fused_node,
                                  uint32_t number, struct subgraph **out)
{
    struct subgraph *subgraph = calloc(1, sizeof(*subgraph));
    struct OrtStatus *status;

    *out = NULL;
    if (subgraph == NULL)
        return runtime->api->CreateStatus(ORT_FAIL, "Tandem: out of memory");
    subgraph->runtime = runtime;
    subgraph->options = options;
    subgraph->logger = logger;
    pthread_mutex_init(&subgraph->mutex, NULL);
    status = graph_read(&subgraph->graph, runtime->api, &runtime->files,
                        ort_graph, fused_node);
    if (status != NULL) {
        subgraph_destroy(subgraph);
        return status;
    }
    operators_assign(&subgraph->graph);
    graph_fuse(&subgraph->graph);
    snprintf(subgraph->name, sizeof(subgraph->name),
             "group %" PRIu32 " (from node %.80s)", number,
             subgraph->graph.node_count > 0
                 ? node_label(&subgraph->graph.nodes[0])
                 : "?");
    subgraph->content_matters =
        calloc(subgraph->graph.input_count + 1, sizeof(bool));
    if (subgraph->content_matters == NULL ||
        constants_acquire(runtime, &subgraph->graph) != TANDEM_OK) {
        status = runtime->api->CreateStatus(
            ORT_FAIL, "Tandem: out of memory for the model's constants");
        subgraph_destroy(subgraph);
        return status;
    }
    *out = subgraph;
    return NULL;
}

static void cached_form_free(struct subgraph *subgraph,
                             struct cached_form *cached)
{
    while (cached->unused != NULL) {
        struct execution *execution = cached->unused;

        cached->unused = execution->next;
        execution_destroy(execution);
    }
    for (uint32_t i = 0; i < cached->form.storage_count; i++) {
        if (cached->form.storages[i].kind == STORAGE_FOLDED)
            weight_release(subgraph->runtime, cached->form.storages[i].weight);
    }
    form_free(&cached->form);
    free(cached->key);
    free(cached);
}

void subgraph_destroy(struct subgraph *subgraph)
{
    if (subgraph == NULL)
        return;
    while (subgraph->forms != NULL) {
        struct cached_form *cached = subgraph->forms;

        subgraph->forms = cached->next;
        cached_form_free(subgraph, cached);
    }
    constants_release(subgraph->runtime, &subgraph->graph);
    graph_free(&subgraph->graph);
    pthread_mutex_destroy(&subgraph->mutex);
    free(subgraph->content_matters);
    free(subgraph);
}

/* ---- forms ---- */

static int64_t input_bytes(const struct lower_input *input)
{
    int64_t bytes = TANDEM_DTYPE_BYTES(input->dtype);

    for (uint32_t i = 0; i < input->rank; i++)
        bytes *= input->shape[i];
    return bytes;
}

/* Makes a key from the dtypes and shapes of the inputs, and the content of
 * those that matter.  The subgraph must be locked.  The caller frees the key,
 * which is NULL if memory is exhausted. */
static int64_t *key_make(const struct run *run, size_t *out_length)
{
    const uint32_t count = run->subgraph->graph.input_count;
    size_t length = 0, at = 0;
    int64_t *key;

    for (uint32_t i = 0; i < count; i++) {
        length += 1 + run->inputs[i].rank;
        if (run->subgraph->content_matters[i])
            length += (size_t)input_bytes(&run->inputs[i]) / 8 + 1;
    }
    *out_length = length;
    key = calloc(length + 1, sizeof(key[0]));
    for (uint32_t i = 0; key != NULL && i < count; i++) {
        const struct lower_input *input = &run->inputs[i];

        key[at++] = input->dtype | (int64_t)input->rank << 32 |
                    (int64_t)run->subgraph->content_matters[i] << 40;
        memcpy(&key[at], input->shape, input->rank * sizeof(key[0]));
        at += input->rank;
        if (run->subgraph->content_matters[i]) {
            memcpy(&key[at], input->content, (size_t)input_bytes(input));
            at += (size_t)input_bytes(input) / 8 + 1;
        }
    }
    return key;
}

/* Returns the form with the key and makes it the most recent one, or NULL. */
static struct cached_form *form_find(struct subgraph *subgraph,
                                     const int64_t *key, size_t length)
{
    struct cached_form **link = &subgraph->forms, *cached;

    for (; (cached = *link) != NULL; link = &cached->next) {
        if (cached->key_length != length ||
            memcmp(cached->key, key, length * sizeof(key[0])) != 0)
            continue;
        *link = cached->next;
        cached->next = subgraph->forms;
        subgraph->forms = cached;
        return cached;
    }
    return NULL;
}

/* Removes the least recent form if there are too many. */
static void forms_limit(struct subgraph *subgraph)
{
    struct cached_form **link = &subgraph->forms;
    uint32_t count = 0;

    while (*link != NULL && ++count <= MAX_FORMS)
        link = &(*link)->next;
    if (*link != NULL) {
        struct cached_form *last = *link;

        *link = NULL;
        if (--last->users == 0)
            cached_form_free(subgraph, last);
    }
}

/* Acquires weights for the constants that lowering computed. */
static enum tandem_status keep_folded(struct subgraph *subgraph,
                                      struct form *form)
{
    for (uint32_t i = 0; i < form->storage_count; i++) {
        struct form_storage *storage = &form->storages[i];
        const struct weight_content content = {
            .memory = WEIGHT_COPIED,
            .dtype = storage->dtype,
            .bytes = (uint64_t)storage->elements *
                     TANDEM_DTYPE_BYTES(storage->dtype),
            .content = storage->content,
        };
        enum tandem_status status;

        if (storage->kind != STORAGE_FOLDED || !storage->used)
            continue;
        status = weight_acquire(subgraph->runtime, &content, &storage->weight);
        if (status != TANDEM_OK)
            return status;
    }
    return TANDEM_OK;
}

/* Returns the device for a form: the session's, or the one with the lowest
 * predicted time. */
static uint32_t choose_device(const struct subgraph *subgraph,
                              const struct form *form)
{
    struct tandem_context *context = subgraph->runtime->context;
    struct form_cost cost;
    uint32_t cpu;

    if (subgraph->options->device != TANDEM_ANY_DEVICE)
        return subgraph->options->device;
    form_cost_predict(context, subgraph->options, form, &cost);
    if (cost.device != TANDEM_ANY_DEVICE && cost.device_ns < cost.cpu_ns)
        return cost.device;
    return tandem_device_find(context, "cpu", &cpu) == TANDEM_OK ? cpu : 0;
}

/* Lowers the graph and adds the form to the list.  The subgraph must be
 * locked. */
static struct OrtStatus *form_make(const struct run *run,
                                   struct cached_form **out)
{
    struct subgraph *subgraph = run->subgraph;
    struct cached_form *cached = calloc(1, sizeof(*cached));
    struct OrtStatus *status;
    char problem[256];

    *out = NULL;
    if (cached == NULL)
        return run_failed(subgraph, ORT_FAIL, "lowering the graph",
                          "out of memory");
    /* No form uses the weights before the first form is made. */
    status = subgraph->constants_are_bound
                 ? NULL
                 : constants_rebind(subgraph->runtime, &subgraph->graph,
                                    run->context);
    if (status != NULL) {
        free(cached);
        return status;
    }
    subgraph->constants_are_bound = true;
    if (!lower_graph(&subgraph->graph, run->inputs, subgraph->content_matters,
                     &cached->form, NULL, problem)) {
        free(cached);
        return run_failed(subgraph, ORT_INVALID_ARGUMENT, "these input shapes",
                          problem);
    }
    cached->key = key_make(run, &cached->key_length);
    if (cached->key == NULL ||
        keep_folded(subgraph, &cached->form) != TANDEM_OK) {
        cached_form_free(subgraph, cached);
        return run_failed(subgraph, ORT_FAIL, "lowering the graph",
                          "out of memory");
    }
    cached->device = choose_device(subgraph, &cached->form);
    cached->users = 1;
    cached->next = subgraph->forms;
    subgraph->forms = cached;
    *out = cached;
    return NULL;
}

/* Returns the form for the run's inputs.  The caller gives it back. */
static struct OrtStatus *form_take(const struct run *run,
                                   struct cached_form **out)
{
    struct subgraph *subgraph = run->subgraph;
    struct OrtStatus *status = NULL;
    size_t length;
    int64_t *key;

    *out = NULL;
    pthread_mutex_lock(&subgraph->mutex);
    key = key_make(run, &length);
    if (key != NULL)
        *out = form_find(subgraph, key, length);
    free(key);
    if (*out == NULL)
        status = form_make(run, out);
    if (*out != NULL) {
        (*out)->users++;
        forms_limit(subgraph);
    }
    pthread_mutex_unlock(&subgraph->mutex);
    return status;
}

static void form_give_back(struct subgraph *subgraph,
                           struct cached_form *cached)
{
    pthread_mutex_lock(&subgraph->mutex);
    if (--cached->users == 0)
        cached_form_free(subgraph, cached);
    pthread_mutex_unlock(&subgraph->mutex);
}

static enum tandem_status execution_take(struct subgraph *subgraph,
                                         struct cached_form *cached,
                                         struct execution **out)
{
    pthread_mutex_lock(&subgraph->mutex);
    *out = cached->unused;
    if (*out != NULL) {
        cached->unused = (*out)->next;
        cached->unused_count--;
    }
    pthread_mutex_unlock(&subgraph->mutex);
    if (*out != NULL)
        return TANDEM_OK;
    return execution_create(subgraph->runtime->context, &cached->form, out);
}

static void execution_give_back(struct subgraph *subgraph,
                                struct cached_form *cached,
                                struct execution *execution)
{
    pthread_mutex_lock(&subgraph->mutex);
    if (cached->unused_count < MAX_UNUSED_EXECUTIONS) {
        execution->next = cached->unused;
        cached->unused = execution;
        cached->unused_count++;
        execution = NULL;
    }
    pthread_mutex_unlock(&subgraph->mutex);
    execution_destroy(execution);
}

/* ---- running ---- */

static struct OrtStatus *read_input(struct run *run, uint32_t index)
{
    const struct ort_api *api = run->subgraph->runtime->api;
    struct lower_input *input = &run->inputs[index];
    const struct OrtValue *value = NULL;
    struct OrtTensorTypeAndShapeInfo *info = NULL;
    enum onnx_dtype type = 0;
    size_t rank = 0;
    struct OrtStatus *status =
        api->KernelContext_GetInput(run->context, index, &value);

    if (status == NULL)
        status = api->GetTensorTypeAndShape(value, &info);
    if (status == NULL)
        status = api->GetTensorElementType(info, &type);
    if (status == NULL)
        status = api->GetDimensionsCount(info, &rank);
    if (status == NULL && rank > TANDEM_MAX_RANK)
        status =
            run_failed(run->subgraph, ORT_INVALID_ARGUMENT,
                       "reading the inputs", "an input has more than 8 axes");
    if (status == NULL)
        status = api->GetDimensions(info, input->shape, rank);
    if (status == NULL)
        status = api->GetTensorData(value, &input->content);
    if (info != NULL)
        api->ReleaseTensorTypeAndShapeInfo(info);
    input->dtype = dtype_from_onnx(type);
    input->rank = (uint32_t)rank;
    run->contents[index] = input->content;
    return status;
}

static struct OrtStatus *read_inputs(struct run *run)
{
    const struct subgraph *subgraph = run->subgraph;
    const uint32_t count = subgraph->graph.input_count;

    run->inputs = calloc(count + 1, sizeof(run->inputs[0]));
    run->contents = calloc(count + 1, sizeof(run->contents[0]));
    if (run->inputs == NULL || run->contents == NULL)
        return run_failed(subgraph, ORT_FAIL, "reading the inputs",
                          "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        struct OrtStatus *status;

        if (subgraph->graph.inputs[i] == NO_VALUE)
            continue;
        status = read_input(run, i);
        if (status != NULL)
            return status;
    }
    return NULL;
}

static struct OrtStatus *write_output(const struct run *run,
                                      struct execution *execution,
                                      uint32_t index,
                                      enum tandem_status *out_status)
{
    const struct form_output *output = &execution->form->outputs[index];
    const struct ort_api *api = run->subgraph->runtime->api;
    struct OrtValue *value = NULL;
    void *memory = NULL;
    struct OrtStatus *status = api->KernelContext_GetOutput(
        run->context, index, output->shape, output->rank, &value);

    if (status == NULL && value != NULL)
        status = api->GetTensorMutableData(value, &memory);
    if (status == NULL && value != NULL)
        *out_status = execution_read_output(execution, index, memory);
    return status;
}

static struct OrtStatus *write_outputs(const struct run *run,
                                       struct execution *execution,
                                       enum tandem_status *out_status)
{
    struct OrtStatus *status = NULL;

    for (uint32_t i = 0; i < execution->form->output_count &&
                         *out_status == TANDEM_OK && status == NULL;
         i++) {
        if (run->subgraph->graph.outputs[i] != NO_VALUE)
            status = write_output(run, execution, i, out_status);
    }
    return status;
}

/* Runs all steps on the device and writes the outputs. An error of Tandem is in
 * *out_status, one of ONNX Runtime is returned. With `report`, writes where
 * each step runs. */
static struct OrtStatus *run_on_device(struct run *run,
                                       struct execution *execution,
                                       uint32_t device, bool report,
                                       enum tandem_status *out_status)
{
    const struct subgraph *subgraph = run->subgraph;
    struct step_arguments arguments = {.device = device,
                                       .flags = subgraph->options->gemm_flags};

    *out_status = execution_write_inputs(execution, run->contents);
    for (; arguments.step < execution->form->step_count &&
           *out_status == TANDEM_OK;
         arguments.step++) {
        run->node = execution->form->steps[arguments.step].node;
        *out_status = execution_run(execution, arguments);
        if (report && *out_status == TANDEM_OK)
            report_step(subgraph->runtime, subgraph->options,
                        &execution->form->steps[arguments.step]);
    }
    return write_outputs(run, execution, out_status);
}

/* Returns the number of steps that have to be compiled for the form's device.
 * Starts to compile them. */
static uint32_t form_compile(struct subgraph *subgraph,
                             struct cached_form *cached)
{
    struct step_arguments arguments = {.device = cached->device,
                                       .flags = subgraph->options->gemm_flags};
    struct execution *query;
    uint32_t compiling = 0;

    if (execution_create_query(subgraph->runtime->context, &cached->form,
                               &query) != TANDEM_OK)
        return 0; /* the run waits for the compiler */
    for (; arguments.step < cached->form.step_count; arguments.step++) {
        if (execution_prepare(query, arguments) == TANDEM_NOT_READY)
            compiling++;
    }
    execution_destroy(query);
    return compiling;
}

/* Returns the device for the run: the form's, or the CPU plugin's while kernels
 * for the form's device are compiled. With first_run=wait, the first run starts
 * all compilations, too, so that they run at the same time, and waits for each
 * when it needs it. */
static uint32_t run_device(struct subgraph *subgraph,
                           struct cached_form *cached)
{
    const uint32_t device = cached->device;
    uint32_t cpu, compiling = 0;
    bool compiled, report;

    pthread_mutex_lock(&subgraph->mutex);
    if (!cached->compiled) {
        compiling = form_compile(subgraph, cached);
        cached->compiled =
            compiling == 0 || subgraph->options->wait_for_compilation;
    }
    compiled = cached->compiled;
    report = !compiled && !cached->wait_reported;
    cached->wait_reported |= report;
    pthread_mutex_unlock(&subgraph->mutex);
    if (report)
        report_write(subgraph->runtime, subgraph->options,
                     "%s: computed on the CPU until kernels of %" PRIu32
                     " operator%s are compiled",
                     subgraph->name, compiling, plural(compiling));
    if (compiled || tandem_device_find(subgraph->runtime->context, "cpu",
                                       &cpu) != TANDEM_OK)
        return device;
    return cpu;
}

/* Returns true if the placement of the form's steps has to be reported, which
 * happens once on the form's device. */
static bool report_begin(struct subgraph *subgraph, struct cached_form *cached,
                         uint32_t device)
{
    bool report;

    if (subgraph->options->explain[0] == '\0' || device != cached->device)
        return false;
    pthread_mutex_lock(&subgraph->mutex);
    report = !cached->reported;
    cached->reported = true;
    pthread_mutex_unlock(&subgraph->mutex);
    if (report)
        report_write(subgraph->runtime, subgraph->options,
                     "%s: %" PRIu32 " operator%s", subgraph->name,
                     cached->form.step_count, plural(cached->form.step_count));
    return report;
}

/* Describes the node that failed. Work that fails after its start is noticed at
 * a later node or when an output is read. */
static void describe_node(const struct run *run, char *out, size_t bytes)
{
    if (run->node != NULL)
        snprintf(out, bytes, "%s node \"%s\" or one before it", run->node->type,
                 node_label(run->node));
    else
        snprintf(out, bytes, "writing the inputs");
}

/* Replaces an execution whose run failed. Its tensors keep the error until they
 * are written completely, which steps that write a part of them never do. */
static enum tandem_status execution_renew(struct subgraph *subgraph,
                                          struct cached_form *cached,
                                          struct execution **execution)
{
    execution_destroy(*execution);
    return execution_create(subgraph->runtime->context, &cached->form,
                            execution);
}

/* Runs the form, and on the CPU plugin with new tensors if the device fails. */
static struct OrtStatus *run_execution(struct run *run,
                                       struct cached_form *cached,
                                       struct execution **execution)
{
    struct subgraph *subgraph = run->subgraph;
    const uint32_t device = run_device(subgraph, cached);
    const bool report = report_begin(subgraph, cached, device);
    enum tandem_status failure;
    struct OrtStatus *status;
    char node[256];
    uint32_t cpu;

    status = run_on_device(run, *execution, device, report, &failure);
    if (status != NULL || failure == TANDEM_OK)
        return status;
    describe_node(run, node, sizeof(node));
    if (tandem_device_find(subgraph->runtime->context, "cpu", &cpu) !=
            TANDEM_OK ||
        device == cpu)
        return run_failed(subgraph, ORT_FAIL, node, tandem_last_error());
    log_write(subgraph->runtime, subgraph->logger, ORT_LOG_WARNING,
              "%s failed; %s is computed on the CPU: %s", node, subgraph->name,
              tandem_last_error());
    failure = execution_renew(subgraph, cached, execution);
    if (failure == TANDEM_OK)
        status = run_on_device(run, *execution, cpu, false, &failure);
    if (status != NULL || failure == TANDEM_OK)
        return status;
    describe_node(run, node, sizeof(node));
    return run_failed(subgraph, ORT_FAIL, node, tandem_last_error());
}

struct OrtStatus *subgraph_run(struct subgraph *subgraph,
                               struct OrtKernelContext *context)
{
    struct run run = {.subgraph = subgraph, .context = context};
    struct cached_form *cached = NULL;
    struct execution *execution = NULL;
    struct OrtStatus *status = read_inputs(&run);

    if (status == NULL)
        status = form_take(&run, &cached);
    if (status == NULL &&
        execution_take(subgraph, cached, &execution) != TANDEM_OK)
        status = run_failed(subgraph, ORT_FAIL, "creating tensors",
                            tandem_last_error());
    if (status == NULL)
        status = run_execution(&run, cached, &execution);
    if (status != NULL)
        execution_destroy(execution);
    else
        execution_give_back(subgraph, cached, execution);
    if (cached != NULL)
        form_give_back(subgraph, cached);
    free(run.inputs);
    free(run.contents);
    return status;
}
