/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --explain, which prints the device that the chooser would
 * select for an operator, and the costs.  A child process asks the library.
 */
#include <config.h>

#include "../common/device_session.h"
#include "../common/op_case.h"
#include "../common/text_table.h"
#include "../common/text_wrap.h"
#include "child_process.h"
#include "device_list.h"
#include "explain.h"

#include "common/operator_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPLAIN_LIMIT_S 120u

/* An operator and its tensors, in the child. */
struct question {
    const struct probe_options *options;
    const char *backends; /* plugins that did not crash */
    struct op_case c;
    struct tandem_context *context;
    struct tandem_tensor *in[TANDEM_MAX_OPERANDS];
    struct tandem_tensor *out[TANDEM_MAX_OPERANDS];
    const char
        *problem; /* error message; NULL for the last error of the library */
};

/* Returns the name of the device that holds the data, or NULL for the host. */
static const char *resident_device(const struct probe_options *options)
{
    const char *name = options->resident;

    return name != NULL && strcmp(name, "host") != 0 ? name : NULL;
}

/* Makes a tensor valid only on the device, by copying one element to all. */
static enum tandem_status place_on(struct question *q, uint32_t device,
                                   const struct tandem_tensor_desc *desc,
                                   struct tandem_tensor *tensor)
{
    static uint64_t zero;
    struct tandem_op copy = {.struct_size = sizeof copy, .id = TANDEM_OP_COPY};
    struct tandem_tensor *one;
    enum tandem_status status =
        tandem_tensor_wrap(q->context, &zero, desc->dtype, 0, NULL, NULL,
                           TANDEM_TENSOR_READ_ONLY, &one);

    if (status == TANDEM_OK)
        status = tandem_run(q->context, &copy, &one, 1, &tensor, 1,
                            TANDEM_RUN_ON(device));
    if (status == TANDEM_OK)
        status =
            tandem_context_synchronize(q->context, TANDEM_TIMEOUT_INFINITE);
    tandem_tensor_destroy(one);
    return status;
}

static enum tandem_status make_input(struct question *q, uint32_t i,
                                     uint32_t device)
{
    const struct tandem_tensor_desc *desc = &q->c.in[i];
    enum tandem_status status;
    void *memory;

    if (device != TANDEM_ANY_DEVICE) {
        status = tandem_tensor_create(q->context, desc->dtype, desc->rank,
                                      desc->shape, &q->in[i]);
        return status == TANDEM_OK ? place_on(q, device, desc, q->in[i])
                                   : status;
    }
    /* Only reserves addresses.  Nobody reads the memory; the process ends soon.
     */
    memory = mmap(NULL, (size_t)desc_bytes(desc) + 64, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        q->problem = "an operand is too large for this machine's addresses";
        return TANDEM_OUT_OF_MEMORY;
    }
    return tandem_tensor_wrap(q->context, memory, desc->dtype, desc->rank,
                              desc->shape, NULL, 0, &q->in[i]);
}

static enum tandem_status make_tensors(struct question *q)
{
    uint32_t device = TANDEM_ANY_DEVICE;
    enum tandem_status status = TANDEM_OK;

    if (resident_device(q->options) != NULL)
        status = tandem_device_find(q->context, q->options->resident, &device);
    for (uint32_t i = 0; i < q->c.inputs && status == TANDEM_OK; i++)
        status = make_input(q, i, device);
    for (uint32_t i = 0; i < q->c.outputs && status == TANDEM_OK; i++) {
        const struct tandem_tensor_desc *desc = &q->c.out[i];

        if (q->c.alias[i] >= 0)
            q->out[i] = q->in[q->c.alias[i]];
        else
            status = tandem_tensor_create(q->context, desc->dtype, desc->rank,
                                          desc->shape, &q->out[i]);
    }
    return status;
}

static enum tandem_status ask(struct question *q,
                              struct tandem_explanation *out)
{
    out->struct_size = sizeof *out;
    if (q->c.op.id == TANDEM_OP_GEMM)
        return tandem_explain_matmul(q->context, NULL, q->in[0], q->in[1],
                                     q->out[0], out);
    return tandem_explain_op(q->context, &q->c.op, q->in, q->c.inputs, q->out,
                             q->c.outputs, out);
}

static json_t *candidate_json(struct question *q,
                              const struct tandem_candidate *candidate)
{
    char name[DEVICE_NAME_BYTES] = "";
    uint32_t blocked = 0;

    device_name(q->context, candidate->device, name);
    tandem_device_is_op_blocked(q->context, candidate->device, q->c.op.id,
                                &blocked);
    return json_pack(
        "{s:s, s:s, s:b, s:b, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "device", name, "status",
        candidate->status == TANDEM_OK
            ? "ok"
            : tandem_status_name((enum tandem_status)candidate->status),
        "blocked", blocked != 0, "ready", candidate->ready != 0, "calibrated",
        candidate->calibrated != 0, "wait_ns", candidate->wait_ns,
        "transfer_ns", candidate->transfer_ns, "launch_ns",
        candidate->launch_ns, "execute_ns", candidate->execute_ns,
        "download_ns", candidate->download_ns, "compile_ns",
        candidate->compile_ns, "predicted_ns", candidate->predicted_ns);
}

/* Returns the operands as an array of texts such as "f32 4096x1000". */
static json_t *operands_json(const struct tandem_tensor_desc *operands,
                             uint32_t count)
{
    json_t *out = json_array();
    char shape[SHAPE_TEXT_BYTES];

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(
            out,
            child_text("%s %s", dtype_name(operands[i].dtype),
                       shape_text(shape, operands[i].rank, operands[i].shape)));
    return out;
}

/* Appends texts such as "axis 1" to the array.  `names`, separated by commas,
 * belong to the first values.  The values after the first `named` are lists,
 * for example "repeats (2 1)", or "lists (3 3 2 2)" if they have no name. */
static void attributes_append(json_t *out, const char *names, uint32_t named,
                              const double *values, uint32_t count)
{
    char list[512] = "";

    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strcspn(names, ","), used = strlen(list);
        const bool is_mask = length == 4 && strncmp(names, "axes", length) == 0;

        if (i >= named) {
            snprintf(list + used, sizeof list - used, "%s%.10g",
                     i == named ? "" : " ", values[i]);
            continue;
        }
        json_array_append_new(out,
                              child_text("%.*s%s %.10g", (int)length, names,
                                         is_mask ? " (mask)" : "", values[i]));
        names += length + (names[length] == ',');
    }
    if (list[0] != '\0')
        json_array_append_new(
            out, child_text("%s (%s)", *names ? names : "lists", list));
}

/* Returns the attributes as an array of texts, integers first. */
static json_t *attributes_json(const struct op_case *c)
{
    const struct operator_info *row = operator_lookup(c->op.id);
    double ints[TANDEM_MAX_ATTRIBUTES];
    json_t *out = json_array();

    for (uint32_t i = 0; i < c->op.int_count; i++)
        ints[i] = (double)c->ints[i];
    attributes_append(out, row->int_names, row->ints, ints, c->op.int_count);
    attributes_append(out, row->float_names, row->floats, c->floats,
                      c->op.float_count);
    return out;
}

static json_t *explanation_json(struct question *q,
                                const struct tandem_explanation *e)
{
    json_t *candidates = json_array();
    char chosen[DEVICE_NAME_BYTES];
    /* If no device can run the operator, this is TANDEM_ANY_DEVICE. */
    const bool found = device_name(q->context, e->chosen, chosen) == TANDEM_OK;

    for (uint32_t i = 0; i < e->candidate_count; i++)
        json_array_append_new(candidates, candidate_json(q, &e->candidates[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:f, s:f, s:s?, s:b, s:o}",
                     "op", q->options->op, "shape", q->options->shape, "inputs",
                     operands_json(q->c.in, q->c.inputs), "outputs",
                     operands_json(q->c.out, q->c.outputs), "attributes",
                     attributes_json(&q->c), "resident",
                     q->options->resident ? q->options->resident : "host",
                     "elements", e->elements, "bytes", e->bytes, "chosen",
                     found ? chosen : NULL, "forced", e->forced != 0,
                     "candidates", candidates);
}

static void explain_body(void *argument, struct child_link *link)
{
    struct question *q = argument;
    struct tandem_explanation explanation = {0};
    enum tandem_status status =
        probe_context(q->options, q->backends, &q->context);

    child_progress(link, 0, "opening devices");
    if (status == TANDEM_OK)
        status = make_tensors(q);
    if (status == TANDEM_OK)
        status = ask(q, &explanation);
    if (status != TANDEM_OK)
        child_fail(link, "%s", q->problem ? q->problem : tandem_last_error());
    else
        child_answer(link, explanation_json(q, &explanation));
    /* This destroys the tensors, too. */
    tandem_context_destroy(q->context);
}

/* ---- in the parent ---- */

static void row_candidate(struct table *table, const json_t *answer,
                          const json_t *candidate)
{
    static const char *const parts[] = {"wait_ns",     "transfer_ns",
                                        "launch_ns",   "execute_ns",
                                        "download_ns", "predicted_ns"};
    const char *name = device_text(candidate, "device");
    bool chosen = strcmp(name, device_text(answer, "chosen")) == 0;
    char text[TEXT_BYTES];

    table_row(table);
    table_cell(table, "%s %s", chosen ? "*" : " ", name);
    if (strcmp(device_text(candidate, "status"), "ok") != 0) {
        table_text(table, "%s",
                   json_is_true(json_object_get(candidate, "blocked"))
                       ? "blocked: it failed cl-probe --verify"
                       : device_text(candidate, "status"));
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        table_cell(table, "%s",
                   text_ns(text, device_number(candidate, parts[i])));
    if (json_is_true(json_object_get(candidate, "ready")))
        table_cell(table, "yes");
    else
        table_cell(table, "compiles %s",
                   text_ns(text, device_number(candidate, "compile_ns")));
    table_cell(table, "%s",
               json_is_true(json_object_get(candidate, "calibrated"))
                   ? "yes"
                   : "guessed");
}

/* Prints a line with the texts.  Prints nothing if the array is empty. */
static void print_texts(const char *heading, const json_t *texts)
{
    char line[1024];
    const size_t indentation = strlen(heading);

    if (json_array_size(texts) == 0)
        return;
    line[0] = '\0';
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const size_t used = strlen(line);

        snprintf(line + used, sizeof line - used, "%s%s", i == 0 ? "" : ", ",
                 json_string_value(json_array_get(texts, i)));
    }
    printf("%s", heading);
    text_wrap(stdout, line, indentation, indentation, output_columns(stdout));
}

/* Returns the candidate of this name that can run the operator, or if `name` is
 * NULL the fastest one except `chosen`.  Returns NULL if no candidate matches.
 */
static const json_t *candidate_find(const json_t *candidates, const char *name,
                                    const char *chosen)
{
    const json_t *found = NULL;

    for (size_t i = 0; i < json_array_size(candidates); i++) {
        const json_t *candidate = json_array_get(candidates, i);
        const char *own = device_text(candidate, "device");

        if (strcmp(device_text(candidate, "status"), "ok") != 0 ||
            (name != NULL ? strcmp(own, name) != 0 : strcmp(own, chosen) == 0))
            continue;
        if (found == NULL || device_number(candidate, "predicted_ns") <
                                 device_number(found, "predicted_ns"))
            found = candidate;
    }
    return found;
}

static bool is_guessed(const json_t *candidate)
{
    return !json_is_true(json_object_get(candidate, "calibrated"));
}

/* Prints the predicted times in one sentence, and compares the chosen device
 * with the CPU plugin, or with the next device if the CPU was chosen.  Prints
 * nothing if only one device can run the operator. */
static void print_comparison(const json_t *answer)
{
    const char *name = device_text(answer, "chosen");
    const json_t *candidates = json_object_get(answer, "candidates");
    const json_t *chosen = candidate_find(candidates, name, NULL);
    const json_t *other = candidate_find(
        candidates, strcmp(name, "cpu") == 0 ? NULL : "cpu", name);
    char text[400], chosen_time[TEXT_BYTES], other_time[TEXT_BYTES];
    double ratio;

    if (other == NULL)
        other = candidate_find(candidates, NULL, name);
    if (chosen == NULL || other == NULL)
        return;
    ratio = device_number(other, "predicted_ns") /
            device_number(chosen, "predicted_ns");
    snprintf(text, sizeof text, "predicted: %s on %s%s, %s on %s%s",
             text_ns(chosen_time, device_number(chosen, "predicted_ns")), name,
             is_guessed(chosen) ? " (guessed)" : "",
             text_ns(other_time, device_number(other, "predicted_ns")),
             device_text(other, "device"),
             is_guessed(other) ? " (guessed)" : "");
    if (ratio > 1 && !is_guessed(chosen) && !is_guessed(other))
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 ": %s is %.1f times as fast", name, ratio);
    text_wrap(stdout, text, 0, 0, output_columns(stdout));
}

static void print_answer(const struct probe_options *options,
                         const json_t *answer)
{
    static const char *const headings[] = {
        "  device", "wait",      "transfer", "launch",     "execute",
        "download", "predicted", "ready",    "calibrated", NULL};
    const json_t *candidates = json_object_get(answer, "candidates");
    struct table table = {0};
    char text[TEXT_BYTES];

    printf("%s of %s, %s read and written, data on %s%s\n",
           device_text(answer, "op"), device_text(answer, "shape"),
           text_bytes(text, device_number(answer, "bytes")),
           strcmp(device_text(answer, "resident"), "host") == 0 ? "the " : "",
           device_text(answer, "resident"));
    print_texts("  inputs:     ", json_object_get(answer, "inputs"));
    print_texts("  outputs:    ", json_object_get(answer, "outputs"));
    print_texts("  attributes: ", json_object_get(answer, "attributes"));
    printf("\n");
    table_heading(&table, headings);
    for (size_t i = 0; i < json_array_size(candidates); i++)
        row_candidate(&table, answer, json_array_get(candidates, i));
    table_print(&table, stdout);
    table_destroy(&table);
    printf("\nchosen: %s%s\n",
           json_is_null(json_object_get(answer, "chosen"))
               ? "none, because no device can run it"
               : device_text(answer, "chosen"),
           json_is_true(json_object_get(answer, "forced"))
               ? options->device != NULL ? " (--device says so)"
                                         : " (TANDEM_DEVICE says so)"
               : "");
    print_comparison(answer);
}

static bool read_question(struct question *q)
{
    char error[OPCASE_ERROR_BYTES];
    int64_t shape[TANDEM_MAX_RANK];
    uint32_t rank;

    if (!shape_parse(q->options->shape, &rank, shape)) {
        probe_complain("\"%s\" is no shape: numbers with x between them, at "
                       "most %u, as in 4096x1000",
                       q->options->shape, TANDEM_MAX_RANK);
        return false;
    }
    if (!op_case_build(&q->c, q->options->op, rank, shape, error)) {
        probe_complain("%s", error);
        return false;
    }
    return true;
}

/* Returns the value of --device, or else of TANDEM_DEVICE, or NULL. */
static const char *forced_device(const struct probe_options *options)
{
    if (options->device != NULL)
        return options->device;
    return options->forced != NULL && options->forced[0] != '\0'
               ? options->forced
               : NULL;
}

static void question_run(struct question *q, struct child_outcome *out)
{
    child_run(explain_body, q,
              q->options->timeout_s ? q->options->timeout_s : EXPLAIN_LIMIT_S,
              NULL, out);
}

json_t *explain_choice(const struct probe_options *options,
                       const char *backends)
{
    struct question question = {.options = options, .backends = backends};
    struct child_outcome outcome = {.message = "no operator has this shape"};
    json_t *answer;

    if (read_question(&question))
        question_run(&question, &outcome);
    answer = outcome.result != NULL
                 ? json_incref(outcome.result)
                 : json_pack("{s:s, s:s, s:s}", "op", options->op, "shape",
                             options->shape, "error", outcome.message);
    child_outcome_destroy(&outcome);
    return answer;
}

static int explain(struct question *q)
{
    const struct probe_options *options = q->options;
    struct child_outcome outcome;

    if (forced_device(options) != NULL)
        setenv("TANDEM_DEVICE", forced_device(options), 1);
    question_run(q, &outcome);
    if (outcome.result == NULL) {
        probe_complain("%s", outcome.message);
        return PROBE_FAILED;
    }
    if (options->json)
        probe_print_json(json_incref(outcome.result));
    else
        print_answer(options, outcome.result);
    child_outcome_destroy(&outcome);
    return PROBE_OK;
}

int probe_explain(const struct probe_options *options)
{
    const char *forced = forced_device(options);
    const char *resident = resident_device(options);
    struct question question = {.options = options};
    int status = PROBE_NO_DEVICE;
    json_t *found;

    if (!read_question(&question))
        return PROBE_USAGE;
    found = devices_find(options, NULL, &status);
    question.backends = device_text(found, "backends");
    if (question.backends[0] == '\0')
        probe_complain("there is no device; cl-probe --list says what is "
                       "missing");
    else if (devices_have(found, resident, "--resident") &&
             devices_have(found, forced,
                          options->device != NULL ? "--device"
                                                  : "TANDEM_DEVICE"))
        status = explain(&question);
    json_decref(found);
    return status;
}
