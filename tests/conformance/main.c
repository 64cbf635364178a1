/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-conformance: runs the conformance suite against one device of one
 * backend plugin. It needs only the plugin and backend.h. The last line is "N
 * passed, N failed, N skipped".
 */
#include "config.h"

#include "contract.h"
#include "options.h"
#include "suite_class.h"
#include "workers.h"

#include "../../tools/common/program_output.h"
#include "../unit/host/required_entries.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct group groups[] = {
    {NULL, operators_run, NULL},
    {"device", contract_device, "the table, describe, open and close"},
    {"memory", contract_memory, "alloc, free, statistics, mapped memory"},
    {"transfer", contract_transfer, "upload, download, copy, fill"},
    {"stream", contract_stream, "streams, events and waits"},
    {"alias", contract_alias, "outputs that overlap"},
    {"ready", contract_ready, "prepare and prepared_wait"},
    {"prepared", contract_prepared, "prepared operators"},
    {"fault", contract_fault, "errors after launch returned"},
    {"invalid-memory", invalid_memory_run,
     "invalid arguments of memory and streams"},
    {"invalid-launch", invalid_launch_run,
     "invalid arguments of prepare and launch"},
    {"invalid-gemm", invalid_gemm_run, "invalid arguments of gemm"},
    {"unknown", unknown_input_run,
     "flags, fields, attributes and dtypes of later versions"},
};
const uint32_t group_count = COUNT_OF(groups);

/* A context of a driver takes some hundred MB of the device's memory, and the
 * largest operands of the cases a few more. */
#define JOB_DEVICE_BYTES (UINT64_C(2) << 30)

static const struct suite *watched;

static void text_write(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

/* Reports the case of a crash or hang. Async-signal-safe. */
static void crash_report(int number)
{
    text_write(number == SIGALRM ? "\ntandem-conformance: hangs in "
                                 : "\ntandem-conformance: crashed in ");
    if (watched != NULL) {
        text_write(watched->group);
        text_write(": ");
        text_write(watched->name);
    }
    text_write("\n");
    if (number == SIGALRM)
        _exit(EXIT_FAILED);
    signal(number, SIG_DFL);
    raise(number);
}

static void signals_watch(void)
{
    static const int numbers[] = {SIGALRM, SIGSEGV, SIGABRT,
                                  SIGFPE,  SIGBUS,  SIGILL};

    for (uint32_t i = 0; i < COUNT_OF(numbers); i++)
        signal(numbers[i], crash_report);
}

/* dlopen searches the system's directories for a name without a slash. */
static void *plugin_open(const char *path)
{
    char here[4096];

    if (strchr(path, '/') == NULL) {
        snprintf(here, sizeof(here), "./%s", path);
        path = here;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static const char *missing_entry(const struct tandem_backend *api)
{
    static const struct {
        const char *name;
        size_t offset;
    } entries[] = {
#define ENTRY(entry) {#entry, offsetof(struct tandem_backend, entry)},
        ENTRY(name) ENTRY(version) REQUIRED_ENTRIES(ENTRY)
#undef ENTRY
    };

    for (uint32_t i = 0; i < COUNT_OF(entries); i++)
        if (*(const void *const *)((const char *)api + entries[i].offset) ==
            NULL)
            return entries[i].name;
    return NULL;
}

static bool plugin_load(struct suite *suite)
{
    const struct tandem_backend *backend;
    tandem_backend_query_fn query;
    void *plugin = plugin_open(suite->options->plugin);
    const char *missing;

    if (plugin == NULL) {
        fprintf(stderr, "tandem-conformance: %s\n", dlerror());
        return false;
    }
    *(void **)&query = dlsym(plugin, TANDEM_BACKEND_QUERY_SYMBOL);
    backend = query != NULL ? query(TANDEM_ABI_MAJOR) : NULL;
    if (backend == NULL || backend->abi_major != TANDEM_ABI_MAJOR) {
        fprintf(stderr,
                "tandem-conformance: %s is no Tandem backend of ABI %u\n",
                suite->options->plugin, TANDEM_ABI_MAJOR);
        return false;
    }
    memcpy(&suite->api, backend,
           backend->struct_size < sizeof(suite->api) ? backend->struct_size
                                                     : sizeof(suite->api));
    suite->query = query;
    missing = missing_entry(&suite->api);
    if (missing != NULL) {
        fprintf(stderr, "tandem-conformance: %s lacks the required entry %s\n",
                suite->options->plugin, missing);
        return false;
    }
    return true;
}

/* Reports why the device cannot be used. */
static enum exit_code device_error_report(struct suite *suite, const char *call,
                                          enum tandem_status status)
{
    fprintf(stderr, "tandem-conformance: %s: %s: %s\n", call,
            status_text(status), plugin_message(suite));
    return status == TANDEM_NO_DEVICE ? EXIT_NO_DEVICE : EXIT_FAILED;
}

static enum exit_code device_open(struct suite *suite)
{
    uint32_t count = 0;
    enum tandem_status status = suite->api.device_count(&count);

    if (status != TANDEM_OK)
        return device_error_report(suite, "device_count", status);
    if (suite->options->device >= count) {
        fprintf(stderr, "tandem-conformance: device %u: there are %u\n",
                suite->options->device, count);
        return EXIT_NO_DEVICE;
    }
    suite->info.struct_size = sizeof(suite->info);
    status = suite->api.device_describe(suite->options->device, &suite->info);
    if (status != TANDEM_OK)
        return device_error_report(suite, "device_describe", status);
    status = suite_open(suite, NULL, NULL, &suite->device);
    if (status != TANDEM_OK)
        return device_error_report(suite, "open", status);
    status = suite->api.stream_create(suite->device, 0, &suite->stream);
    if (status != TANDEM_OK)
        return device_error_report(suite, "stream_create", status);
    return EXIT_PASSED;
}

static void groups_run(struct suite *suite)
{
    if (suite->options->random_calls != 0) {
        random_calls_run(suite);
        return;
    }
    for (uint32_t i = 0; i < group_count; i++)
        if (groups[i].name == NULL || (!suite->options->operators &&
                                       group_selected(suite, groups[i].name)))
            groups[i].run(suite);
}

static void header_print(const struct suite *suite)
{
    if (suite->options->json)
        return;
    printf("%s %s: device %u, %s (%s); seed %llu, level %s\n", suite->api.name,
           suite->api.version, suite->options->device, suite->info.name,
           suite->info.driver_version, (unsigned long long)suite->options->seed,
           suite->options->full    ? "full"
           : suite->options->smoke ? "smoke"
                                   : "standard");
}

static void closing_print(struct suite *suite)
{
    const struct suite_options *options = suite->options;
    const char *format = options->json
                             ? "{\"passed\": %llu, \"failed\": %llu, "
                               "\"skipped\": %llu}\n"
                             : "%llu passed, %llu failed, %llu skipped\n";

    progress_end(&suite->progress);
    if (options->random_calls != 0 && !options->json)
        printf("random calls from %llu in blocks of %llu: %llu rejected as "
               "invalid\n",
               (unsigned long long)options->first_call,
               (unsigned long long)options->block_calls,
               (unsigned long long)suite->rejected);
    printf(format, (unsigned long long)suite->passed,
           (unsigned long long)suite->failed,
           (unsigned long long)suite->skipped);
}

/* Returns the exit status of the run.  A run in which no case passed and none
 * failed has tested nothing: the function prints the reason. */
static enum exit_code result_code(const struct suite *suite)
{
    const struct suite_options *options = suite->options;

    if (suite->failed != 0)
        return EXIT_FAILED;
    if (options->random_calls != 0 && suite->computed == 0 &&
        suite->skipped != 0) {
        fprintf(stderr, PROGRAM ": the plugin declined all valid calls\n");
        return EXIT_NOTHING_PASSED;
    }
    if (suite->passed + suite->listed != 0)
        return EXIT_PASSED;
    if (suite->skipped != 0) {
        fprintf(stderr,
                PROGRAM ": no case passed: all %llu were skipped; --verbose "
                        "prints why\n",
                (unsigned long long)suite->skipped);
        return EXIT_NOTHING_PASSED;
    }
    fprintf(stderr, PROGRAM ": no case of %s",
            options->only != NULL ? options->only : "any group");
    if (options->filter != NULL)
        fprintf(stderr, " has \"%s\" in its name", options->filter);
    fprintf(stderr, " at level %s, seed %llu: --list prints the names\n",
            options->full    ? "full"
            : options->smoke ? "smoke"
                             : "standard",
            (unsigned long long)options->seed);
    return EXIT_NOTHING_PASSED;
}

/* Opens the plugin, and the plugin to compare with. */
static enum exit_code plugins_open(struct suite *suite, struct suite *other)
{
    enum exit_code code;

    if (!plugin_load(suite) ||
        (other->options->plugin != NULL && !plugin_load(other)))
        return EXIT_USAGE;
    signals_watch();
    code = device_open(suite);
    if (code != EXIT_PASSED || other->options->plugin == NULL)
        return code;
    suite->other = other;
    return device_open(other);
}

static void plugin_close(const struct suite *suite)
{
    if (suite->stream != NULL)
        suite->api.stream_destroy(suite->stream);
    if (suite->device != NULL)
        suite->api.close(suite->device);
}

/* Returns the number of processes that suit the device. A GPU that compiles
 * kernels gets several, because compilers often use one thread of a process.
 * Other devices compute on the CPUs themselves. */
static uint32_t default_jobs(const struct suite *suite)
{
    const struct tandem_device_info *info = &suite->info;
    uint64_t jobs = info->memory_bytes / JOB_DEVICE_BYTES;
    cpu_set_t cpus;

    if ((info->caps & TANDEM_CAP_JIT_COMPILATION) == 0 ||
        info->kind == TANDEM_DEVICE_CPU ||
        sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
        return 1;
    if (jobs > (uint64_t)CPU_COUNT(&cpus))
        jobs = (uint64_t)CPU_COUNT(&cpus);
    return jobs > 0 ? (uint32_t)jobs : 1;
}

/* Opens the plugins and runs the cases, in a worker or in the only process. */
static enum exit_code suite_run(struct suite *suite)
{
    struct suite_options other_options = *suite->options;
    struct suite other = {.options = &other_options};
    uint32_t jobs, other_jobs;
    enum exit_code code;

    other_options.plugin = other_options.compare;
    watched = suite;
    code = plugins_open(suite, &other);
    if (code == EXIT_PASSED) {
        jobs = default_jobs(suite);
        other_jobs = default_jobs(&other);
        if (suite->worker == NULL || suite->worker->is_first)
            header_print(suite);
        if (suite->worker != NULL)
            worker_report_open(jobs > other_jobs ? jobs : other_jobs);
        groups_run(suite);
        if (suite->worker != NULL) {
            worker_report_end(suite);
        } else {
            closing_print(suite);
            code = result_code(suite);
        }
    }
    plugin_close(suite);
    plugin_close(&other);
    suite->other = NULL;
    return code;
}

/* Returns the number of cases that will run. The plugin is not loaded. */
static uint64_t cases_count(const struct suite_options *options)
{
    struct suite suite = {.options = options, .counts_only = true};

    if (options->random_calls != 0)
        return options->random_calls;
    groups_run(&suite);
    return suite.listed;
}

int main(int argc, char **argv)
{
    struct suite_options options = {.seed = 1, .block_calls = 500};
    struct suite suite = {.options = &options};
    enum exit_code code;

    output_begin();
    /* Line buffering, so that the output is complete if a plugin crashes. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!options_parse(argc, argv, &options, &code))
        return output_end(PROGRAM, (int)code, EXIT_FAILED);
    if (options.list) {
        groups_run(&suite);
        return output_end(PROGRAM, (int)result_code(&suite), EXIT_FAILED);
    }
    if (options.exact_buffers)
        operands_set_exact_buffers();
    progress_begin(&suite.progress,
                   options.only != NULL ? options.only : "all cases", false);
    suite.cases = cases_count(&options);
    if (options.jobs == 1 || suite.cases <= worker_min_cases(&options)) {
        code = suite_run(&suite);
    } else if (workers_run(&suite, suite_run, &code)) {
        closing_print(&suite);
        if (code == EXIT_PASSED)
            code = result_code(&suite);
    }
    return output_end(PROGRAM, (int)code, EXIT_FAILED);
}
