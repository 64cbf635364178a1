/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements cl-probe --verify, which runs the program tandem-conformance on
 * each device, in a child process; see verify.h.
 */
#include <config.h>

#include "child_process.h"
#include "device_list.h"
#include "op_blocklist_update.h"
#include "profile_directory.h"
#include "report.h"
#include "report_file.h"
#include "verify.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERIFY_LIMIT_S 1800u
#define FAILURES_KEPT 50
/* The exit status of tandem-conformance if every case was skipped. */
#define SUITE_NOTHING_PASSED 4

struct verification {
    const struct probe_options *options;
    const char *backend;
    uint32_t device; /* of the backend */
    char plugin[VERIFY_PATH_BYTES];
    const char *program; /* tandem-conformance's path */
    const char *only;    /* its argument OP, or NULL */
    /* The program's results. */
    json_t *groups, *failures;
    json_int_t passed, failed, skipped;
    char last_case[160]; /* "GROUP: CASE", the last that ended */
    char last_words[256];
};

/* ---- where the plugin and the program are ---- */

/* Sets v->plugin, for which it loads the plugin, in the child.  On failure,
 * reports the error to the parent and returns false. */
static bool plugin_locate(struct verification *v, struct child_link *link)
{
    struct tandem_context *context;
    const struct tandem_backend *backend;
    struct tandem_device *device;
    Dl_info file = {.dli_fname = NULL};
    enum tandem_status status = probe_context(v->options, v->backend, &context);

    if (status == TANDEM_OK)
        status = tandem_device_backend(context, v->device, &backend, &device);
    if (status != TANDEM_OK) {
        child_fail(link, "%s", tandem_last_error());
    } else if (dladdr((const void *)(uintptr_t)backend->gemm, &file) == 0 ||
               strlen(file.dli_fname) >= sizeof v->plugin) {
        child_fail(link, "the plugin's file is not known");
        file.dli_fname = NULL;
    } else {
        strcpy(v->plugin, file.dli_fname);
    }
    tandem_context_destroy(context);
    return file.dli_fname != NULL;
}

bool verify_find_program(char out[VERIFY_PATH_BYTES])
{
    static const char *const places[] = {"", "/.."};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *folder;

    if (length < 0)
        return false;
    self[length] = '\0';
    folder = dirname(self);
    for (size_t i = 0; i < 2; i++) {
        snprintf(out, VERIFY_PATH_BYTES, "%s%s/tandem-conformance", folder,
                 places[i]);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

/* ---- the suite, in a child ---- */

/* The program is killed when `parent` dies, which is killed with cl-probe. */
_Noreturn static void program_exec(const struct verification *v, int out,
                                   pid_t parent)
{
    char index[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    snprintf(index, sizeof index, "%u", v->device);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execl(v->program, v->program, "--json", "--device", index, v->plugin,
          v->only, (char *)NULL);
    perror(v->program);
    _exit(127);
}

static void count_case(json_t *groups, const char *group, const char *result)
{
    json_t *counts = json_object_get(groups, group);

    if (counts == NULL) {
        counts = json_pack("{s:i, s:i, s:i}", "passed", 0, "failed", 0,
                           "skipped", 0);
        json_object_set_new(groups, group, counts);
    }
    json_object_set_new(
        counts, result,
        json_integer(json_integer_value(json_object_get(counts, result)) + 1));
}

static void take_case(struct verification *v, const json_t *line)
{
    const char *group = device_text(line, "group");
    const char *result = device_text(line, "result");

    snprintf(v->last_case, sizeof v->last_case, "%s: %s", group,
             device_text(line, "case"));
    count_case(v->groups, group, result);
    v->passed += strcmp(result, "passed") == 0;
    v->skipped += strcmp(result, "skipped") == 0;
    if (strcmp(result, "failed") != 0)
        return;
    v->failed++;
    if (json_array_size(v->failures) < FAILURES_KEPT)
        json_array_append_new(v->failures,
                              json_sprintf("%s: %s: %s", group,
                                           device_text(line, "case"),
                                           device_text(line, "note")));
}

/* Returns the results so far, with references to v->groups and v->failures. */
static json_t *counts_json(const struct verification *v)
{
    return json_pack("{s:I, s:I, s:I, s:O, s:O}", "passed", v->passed, "failed",
                     v->failed, "skipped", v->skipped, "groups", v->groups,
                     "failures", v->failures);
}

/* Sends the results so far, in case that the device hangs. */
static void counts_send(const struct verification *v, struct child_link *link)
{
    json_t *counts = counts_json(v);

    child_partial(link, counts);
    json_decref(counts);
}

static void take_line(struct verification *v, const char *text,
                      struct child_link *link)
{
    json_t *line = json_loads(text, 0, NULL);
    const char *group = device_text(line, "group");
    size_t groups = json_object_size(v->groups);

    if (group[0] != '\0')
        take_case(v, line);
    else if (strncmp(text, "tandem-conformance:", 19) == 0)
        snprintf(v->last_words, sizeof v->last_words, "%.*s",
                 (int)strcspn(text, "\n"), text);
    if (json_object_size(v->groups) > groups) {
        child_progress(link, (double)groups / (double)(groups + 10), group);
        counts_send(v, link);
    }
    json_decref(line);
}

static void answer(struct verification *v, struct child_link *link, int state)
{
    bool completed =
        WIFEXITED(state) &&
        (WEXITSTATUS(state) <= 1 || WEXITSTATUS(state) == SUITE_NOTHING_PASSED);
    json_t *result;

    if (!completed || v->passed + v->failed + v->skipped == 0 ||
        (WEXITSTATUS(state) == 1 && v->failed == 0)) {
        counts_send(v, link);
        child_fail(link,
                   "the conformance suite did not end well (%s %d, after %s)"
                   "%s%s",
                   WIFEXITED(state) ? "exit status" : "signal",
                   WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state),
                   v->last_case[0] != '\0' ? v->last_case : "no case",
                   v->last_words[0] != '\0' ? ": " : "", v->last_words);
        return;
    }
    result = counts_json(v);
    child_progress(link, 0.99, "writing the profile");
    op_blocklist_update(v->options, v->backend, v->device, result);
    child_answer(link, result);
}

static void verify_body(void *argument, struct child_link *link)
{
    struct verification *v = argument;
    char *line = NULL;
    size_t room = 0;
    const pid_t parent = getpid();
    int ends[2], state = 0;
    FILE *from;
    pid_t pid;

    v->groups = json_object();
    v->failures = json_array();
    if (!plugin_locate(v, link))
        return;
    if (pipe(ends) != 0 || (pid = fork()) < 0) {
        child_fail(link, "the conformance suite could not be started");
        return;
    }
    if (pid == 0)
        program_exec(v, ends[1], parent);
    close(ends[1]);
    from = fdopen(ends[0], "r");
    while (from != NULL && getline(&line, &room, from) > 0)
        take_line(v, line, link);
    waitpid(pid, &state, 0);
    answer(v, link, state);
    free(line);
}

/* ---- in the parent ---- */

json_t *verify_device(const struct probe_options *options, const json_t *device,
                      const char *program, const char *only)
{
    unsigned limit_s = options->timeout_s ? options->timeout_s : VERIFY_LIMIT_S;
    const char *name = device_text(device, "name");
    struct verification v = {
        .options = options, .program = program, .only = only};
    struct child_outcome outcome;
    struct progress progress;
    json_t *result;

    v.backend = device_text(device, "backend");
    v.device = (uint32_t)device_number(device, "index");
    progress_begin(&progress, name, options->verbose);
    child_run(verify_body, &v, limit_s, &progress, &outcome);
    progress_end(&progress);
    result = json_incref(outcome.result);
    if (result == NULL) {
        result = outcome.partial != NULL ? json_incref(outcome.partial)
                                         : json_object();
        json_object_set_new(result, "error", json_string(outcome.message));
    }
    json_object_set_new(result, "device", json_string(name));
    child_outcome_destroy(&outcome);
    return result;
}

void verify_print(const json_t *result)
{
    const char *name = device_text(result, "device");

    if (json_object_get(result, "error") != NULL) {
        printf("%s: FAILED: %s\n", name, device_text(result, "error"));
        return;
    }
    printf("%s: %.0f passed, %.0f failed, %.0f skipped, in %zu groups\n", name,
           device_number(result, "passed"), device_number(result, "failed"),
           device_number(result, "skipped"),
           json_object_size(json_object_get(result, "groups")));
    probe_print_texts("  ", json_object_get(result, "failures"), "\n  ", "\n");
    op_blocklist_print(result);
}

bool verify_good(const json_t *result)
{
    return json_object_get(result, "error") == NULL &&
           json_object_get(result, "blocklist_error") == NULL &&
           device_number(result, "failed") == 0;
}

/* Marks a result as an error if no case of an operator passed or failed. */
static void operators_require(json_t *result)
{
    const char *name;
    json_t *counts;
    double skipped = 0;

    if (json_object_get(result, "error") != NULL ||
        device_number(result, "failed") > 0)
        return;
    json_object_foreach (json_object_get(result, "groups"), name, counts) {
        if (tandem_op_by_name(name) == NULL)
            continue;
        if (device_number(counts, "passed") > 0)
            return;
        skipped += device_number(counts, "skipped");
    }
    json_object_set_new(result, "error",
                        json_sprintf("no operator was checked: the device "
                                     "declined all %.0f cases of operators",
                                     skipped));
}

static json_t *verify_all(const struct probe_options *options,
                          const json_t *devices, const char *program,
                          int *out_status)
{
    json_t *results = json_array();

    for (size_t i = 0; i < json_array_size(devices); i++) {
        json_t *result = verify_device(options, json_array_get(devices, i),
                                       program, options->op);

        operators_require(result);
        if (!verify_good(result))
            *out_status = PROBE_FAILED;
        if (!options->json)
            verify_print(result);
        fflush(stdout);
        json_array_append_new(results, result);
    }
    return results;
}

int probe_verify(const struct probe_options *options)
{
    char program[VERIFY_PATH_BYTES], why[1024];
    int status;
    json_t *found, *results;

    if (options->report != NULL && !report_file_check(options->report))
        return PROBE_FAILED;
    if (!verify_find_program(program)) {
        probe_complain("the program tandem-conformance, which --verify runs, "
                       "is not beside cl-probe");
        return PROBE_FAILED;
    }
    if (!profile_directory_check(why, sizeof why))
        probe_complain("warning: what is found wrong cannot be noted: %s", why);
    found = devices_find(options, options->device, &status);
    if (found == NULL) {
        if (options->report != NULL)
            probe_complain("no report is written; without --device, it covers "
                           "all devices and drivers");
        return status;
    }
    status = devices_status(found);
    if (json_array_size(json_object_get(found, "devices")) == 0)
        probe_complain("there is no device to verify%s; cl-probe --list says "
                       "what is missing",
                       options->report != NULL ? ", so no report is written"
                                               : "");
    results = verify_all(options, json_object_get(found, "devices"), program,
                         &status);
    if (options->json)
        probe_print_json(json_pack("{s:O}", "results", results));
    if (options->report != NULL && json_array_size(results) > 0 &&
        !report_write(options, found, results))
        status = PROBE_FAILED;
    json_decref(results);
    json_decref(found);
    return status;
}
