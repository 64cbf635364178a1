/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-conformance: runs the conformance suite against one device of one
 * backend plugin.  It needs nothing but the plugin and backend.h.
 *
 * The last line is "N passed, N failed, N skipped".
 */
#include "config.h"

#include "suite.h"
#include "table.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exit_code {
    EXIT_PASSED = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_SKIPPED = 77
};

static const struct group {
    const char *name; /* NULL: operators by their own names */
    void (*run)(struct suite *suite);
    const char *about;
} groups[] = {
    {NULL, cases_elementwise, NULL},
    {NULL, cases_move, NULL},
    {NULL, cases_reduce, NULL},
    {NULL, cases_softmax, NULL},
    {NULL, cases_norm, NULL},
    {NULL, cases_optimizer, NULL},
    {NULL, cases_gemm, NULL},
    {"device", contract_device, "the table, describe, open and close"},
    {"memory", contract_memory, "alloc, free, statistics, mapped memory"},
    {"transfer", contract_transfer, "upload, download, copy, fill"},
    {"stream", contract_stream, "streams, events and waits"},
    {"alias", contract_alias, "outputs that overlap"},
    {"ready", contract_ready, "prepare and ready"},
    {"fault", contract_fault, "errors after launch returned"},
    {"capture", contract_capture, "capture and replay"},
    {"bad-memory", bad_input_memory, "bad input to memory and streams"},
    {"bad-launch", bad_input_launch, "bad input to supports and launch"},
    {"bad-gemm", bad_input_gemm, "bad input to gemm"},
};

#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

static const struct suite *watched;

static void text_write(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

/* A plugin crashed or hangs: say where, in what a signal handler may call. */
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

static void usage_print(FILE *file)
{
    fprintf(file,
            "Usage: tandem-conformance [OPTION]... PLUGIN.so [OP]\n"
            "Runs the conformance suite against a Tandem backend plugin.\n"
            "OP is an operator's name, \"operators\" for all of these, or a "
            "group of\ncases; without it all run.\n\n"
            "  -k, --device INDEX      the device, 0 where not given\n"
            "      --seed NUMBER       seed of shapes and values, 1 where not "
            "given\n"
            "      --level brief|quick|full\n"
            "                      a seeded choice of cases, of few kernels or "
            "more, or all\n"
            "      --option KEY=VALUE  passed to the plugin's open; may be "
            "repeated\n"
            "      --case TEXT         only cases whose name contains TEXT\n"
            "      --list              print the cases and run none\n"
            "      --json              one JSON object a line for each case\n"
            "  -v, --verbose           one line for each case\n"
            "  -h, --help              this text\n"
            "  -V, --version           the version\n\n"
            "Exit status: 0 all passed, 1 something failed, 2 usage, 77 there "
            "is no\nsuch device.\n\nGroups:\n");
    for (uint32_t i = 0; i < GROUP_COUNT; i++)
        if (groups[i].name != NULL)
            fprintf(file, "  %-12s %s\n", groups[i].name, groups[i].about);
}

static bool number_parse(const char *text, uint64_t *out_number)
{
    char *end;

    errno = 0;
    *out_number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static bool pair_add(struct suite_options *options, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text ||
        options->open_count == SUITE_MAX_OPTIONS)
        return false;
    *equals = '\0';
    options->open_keys[options->open_count] = text;
    options->open_values[options->open_count++] = equals + 1;
    return true;
}

enum long_option {
    OPTION_SEED = 256,
    OPTION_LEVEL,
    OPTION_OPTION,
    OPTION_CASE,
    OPTION_LIST,
    OPTION_JSON
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'k'},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"option", required_argument, NULL, OPTION_OPTION},
    {"case", required_argument, NULL, OPTION_CASE},
    {"list", no_argument, NULL, OPTION_LIST},
    {"json", no_argument, NULL, OPTION_JSON},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* False: the option or its value is not understood. */
static bool option_take(struct suite_options *options, int option)
{
    uint64_t number;

    switch (option) {
    case 'k':
        if (!number_parse(optarg, &number) || number > UINT32_MAX)
            return false;
        options->device = (uint32_t)number;
        return true;
    case OPTION_SEED:
        return number_parse(optarg, &options->seed);
    case OPTION_LEVEL:
        options->full = strcmp(optarg, "full") == 0;
        options->brief = strcmp(optarg, "brief") == 0;
        return options->full || options->brief || strcmp(optarg, "quick") == 0;
    case OPTION_OPTION:
        return pair_add(options, optarg);
    case OPTION_CASE:
        options->filter = optarg;
        return true;
    case OPTION_LIST:
        options->list = true;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    default:
        return false;
    }
}

static bool only_known(const char *only)
{
    for (uint32_t i = 0; i < GROUP_COUNT; i++)
        if (groups[i].name != NULL && strcmp(groups[i].name, only) == 0)
            return true;
    return op_find_name(only) != NULL;
}

/* Ends the program on a mistake. */
static void options_parse(int argc, char **argv, struct suite_options *options)
{
    int option;

    while ((option = getopt_long(argc, argv, "k:vhV", long_options, NULL)) !=
           -1) {
        if (option == 'h') {
            usage_print(stdout);
            exit(EXIT_PASSED);
        }
        if (option == 'V') {
            printf("tandem-conformance %s\n", PACKAGE_VERSION);
            exit(EXIT_PASSED);
        }
        if (!option_take(options, option)) {
            if (option != '?')
                fprintf(stderr, "tandem-conformance: bad value: %s\n", optarg);
            usage_print(stderr);
            exit(EXIT_USAGE);
        }
    }
    if (argc - optind < 1 || argc - optind > 2) {
        usage_print(stderr);
        exit(EXIT_USAGE);
    }
    options->plugin = argv[optind];
    options->only = argv[optind + 1];
    if (options->only != NULL && strcmp(options->only, "operators") == 0) {
        options->operators = true;
        options->only = NULL;
    }
    if (options->only != NULL && !only_known(options->only)) {
        fprintf(stderr, "tandem-conformance: %s: no such operator or group\n",
                options->only);
        exit(EXIT_USAGE);
    }
}

/* dlopen looks into the system's directories for a name without a slash. */
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
#define NEED(entry)                                                            \
    if (api->entry == NULL)                                                    \
    return #entry
    NEED(name);
    NEED(version);
    NEED(last_error);
    NEED(device_count);
    NEED(device_describe);
    NEED(open);
    NEED(close);
    NEED(alloc);
    NEED(free);
    NEED(upload);
    NEED(download);
    NEED(copy);
    NEED(fill);
    NEED(memory_stats);
    NEED(supports);
    NEED(launch);
    NEED(gemm);
    NEED(stream_create);
    NEED(stream_destroy);
    NEED(stream_query);
    NEED(stream_synchronize);
    NEED(stream_wait_event);
    NEED(event_record);
    NEED(event_destroy);
    NEED(event_query);
    NEED(event_wait);
    NEED(synchronize);
#undef NEED
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

/* What there is to say where the device cannot be used. */
static enum exit_code device_refused(struct suite *suite, const char *call,
                                     enum tandem_status status)
{
    fprintf(stderr, "tandem-conformance: %s: %s: %s\n", call,
            status_text(status), plugin_message(suite));
    return status == TANDEM_NO_DEVICE ? EXIT_SKIPPED : EXIT_FAILED;
}

static enum exit_code device_open(struct suite *suite)
{
    uint32_t count = 0;
    enum tandem_status status = suite->api.device_count(&count);

    if (status != TANDEM_OK)
        return device_refused(suite, "device_count", status);
    if (suite->options->device >= count) {
        fprintf(stderr, "tandem-conformance: device %u: there are %u\n",
                suite->options->device, count);
        return EXIT_SKIPPED;
    }
    suite->info.struct_size = sizeof(suite->info);
    status = suite->api.device_describe(suite->options->device, &suite->info);
    if (status != TANDEM_OK)
        return device_refused(suite, "device_describe", status);
    status = suite_open(suite, NULL, NULL, &suite->device);
    if (status != TANDEM_OK)
        return device_refused(suite, "open", status);
    status = suite->api.stream_create(suite->device, 0, &suite->stream);
    if (status != TANDEM_OK)
        return device_refused(suite, "stream_create", status);
    return EXIT_PASSED;
}

static void groups_run(struct suite *suite)
{
    for (uint32_t i = 0; i < GROUP_COUNT; i++)
        if (groups[i].name == NULL ||
            (!suite->options->operators &&
             group_selected(suite, groups[i].name)))
            groups[i].run(suite);
}

static void header_print(const struct suite *suite)
{
    if (suite->options->json)
        return;
    printf("%s %s: device %u, %s (%s); seed %llu, level %s\n", suite->api.name,
           suite->api.version, suite->options->device, suite->info.name,
           suite->info.driver, (unsigned long long)suite->options->seed,
           suite->options->full    ? "full"
           : suite->options->brief ? "brief"
                                   : "quick");
}

static void closing_print(const struct suite *suite)
{
    const char *format = suite->options->json
                             ? "{\"passed\": %llu, \"failed\": %llu, "
                               "\"skipped\": %llu}\n"
                             : "%llu passed, %llu failed, %llu skipped\n";

    if (suite->terminal)
        fputs("\r\033[K", stderr);
    printf(format, (unsigned long long)suite->passed,
           (unsigned long long)suite->failed,
           (unsigned long long)suite->skipped);
}

int main(int argc, char **argv)
{
    struct suite_options options = {.seed = 1};
    struct suite suite = {.options = &options};
    enum exit_code code;

    /* So that nothing is lost where a plugin crashes. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    options_parse(argc, argv, &options);
    if (options.list) {
        groups_run(&suite);
        return EXIT_PASSED;
    }
    suite.terminal = isatty(STDERR_FILENO) != 0;
    watched = &suite;
    if (!plugin_load(&suite))
        return EXIT_USAGE;
    signal(SIGALRM, crash_report);
    signal(SIGSEGV, crash_report);
    signal(SIGABRT, crash_report);
    signal(SIGFPE, crash_report);
    signal(SIGBUS, crash_report);
    signal(SIGILL, crash_report);
    code = device_open(&suite);
    if (code == EXIT_PASSED) {
        header_print(&suite);
        groups_run(&suite);
        closing_print(&suite);
        suite.api.stream_destroy(suite.stream);
        code = suite.failed != 0 ? EXIT_FAILED : EXIT_PASSED;
    }
    if (suite.device != NULL)
        suite.api.close(suite.device);
    return (int)code;
}
