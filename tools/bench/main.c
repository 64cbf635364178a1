/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: how fast Tandem is against what it stands on, in one run, as
 * ratios with both figures.  This file reads the command line and runs the
 * suites on the devices.
 */
#include <config.h>

#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3 };

static const struct suite {
    const char *name;
    void (*run)(struct bench *bench);
    const char *backend; /* NULL: any */
    const char *about;
} suites[] = {
#ifdef BENCH_OPENCL
    {"launch", suite_launch, "opencl", "a small launch against a bare enqueue"},
    {"pool", suite_pool, "opencl", "alloc + free against clCreateBuffer"},
#endif
    {"bandwidth", suite_bandwidth, NULL,
     "operators bound by memory against a copy"},
    {"gemm", suite_gemm, NULL, "products against CLBlast or CBLAS directly"},
    {"cpu", suite_cpu, "cpu", "small additions on the CPU against a C loop"},
#ifdef BENCH_OPENCL
    {"host", suite_host, "opencl", "additions from host memory to host memory"},
#endif
    {"choice", suite_choice, NULL,
     "predicted against measured, and the choice; once, for all devices"},
};
#define SUITE_COUNT (sizeof suites / sizeof suites[0])

struct selection {
    const char *device; /* NULL: all */
    bool wanted[SUITE_COUNT];
    bool any; /* a suite was named */
};

static void print_help(FILE *out)
{
    fputs("Usage: tandem-bench [OPTION]... [SUITE]...\n"
          "Compares Tandem with what it stands on and prints ratios.\n"
          "\n"
          "  --device=NAME    this device alone: cpu, opencl, opencl:1\n"
          "  --samples=N      turns of each side, 9 or more (11)\n"
          "  --seed=N         of the suite choice (1)\n"
          "  --json           JSON on standard output, the text on standard "
          "error\n"
          "  --help           this text\n"
          "  --version        the version\n"
          "\n"
          "Suites (all where none is named):\n",
          out);
    for (size_t i = 0; i < SUITE_COUNT; i++)
        fprintf(out, "  %-12s %s\n", suites[i].name, suites[i].about);
    fputs("\nspeed: above 1 is faster than the reference.\n"
          "Exit status: 0 all ran, 1 a result was wrong or a call failed, 2 "
          "wrong usage,\n3 there is no device, or none of the name given.  "
          "Never a matter of time.\n",
          out);
}

static bool read_number(const char *text, uint64_t least, uint64_t most,
                        uint64_t *out)
{
    char *end;

    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out >= least &&
           *out <= most;
}

static bool take_suite(struct selection *selection, const char *name)
{
    for (size_t i = 0; i < SUITE_COUNT; i++)
        if (strcmp(suites[i].name, name) == 0)
            return selection->wanted[i] = selection->any = true;
    fprintf(stderr, "tandem-bench: there is no suite \"%s\"\n", name);
    return false;
}

/* -1: go on; else the exit status. */
static int take_option(int option, struct bench *bench,
                       struct selection *selection)
{
    uint64_t number = 0;

    switch (option) {
    case 'd':
        selection->device = optarg;
        return -1;
    case 'j':
        bench->json = true;
        return -1;
    case 'n':
        if (!read_number(optarg, MIN_SAMPLES, MAX_SAMPLES, &number))
            break;
        bench->samples = (uint32_t)number;
        return -1;
    case 's':
        if (!read_number(optarg, 0, UINT64_MAX, &bench->seed))
            break;
        return -1;
    case 'h':
        print_help(stdout);
        return 0;
    case 'V':
        printf("tandem-bench (Tandem) %s\n", tandem_version());
        return 0;
    default:
        return EXIT_USAGE;
    }
    fprintf(stderr, "tandem-bench: \"%s\" is no number that will do\n", optarg);
    return EXIT_USAGE;
}

static int read_options(int argc, char **argv, struct bench *bench,
                        struct selection *selection)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"samples", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option, status = -1;

    while (status < 0 &&
           (option = getopt_long(argc, argv, "hV", options, NULL)) != -1)
        status = take_option(option, bench, selection);
    for (; status < 0 && optind < argc; optind++)
        if (!take_suite(selection, argv[optind]))
            status = EXIT_USAGE;
    return status;
}

static bool suite_applies(const struct bench *bench,
                          const struct selection *selection, size_t i)
{
    const char *backend = suites[i].backend;

    if ((selection->any && !selection->wanted[i]) ||
        (suites[i].run == suite_choice && bench->chose))
        return false;
    return backend == NULL || strcmp(bench->lane.backend->name, backend) == 0;
}

static void run_device(struct bench *bench, const struct selection *selection,
                       uint32_t device)
{
    bench->suite = "open";
    device_name(bench->context, device, bench->device);
    if (lane_open(&bench->lane, bench->context, device, 0) != TANDEM_OK) {
        bench_fail(bench, "%s", tandem_last_error());
        return;
    }
    if ((bench->lane.info.caps & TANDEM_CAP_CORE_OPERATORS) == 0) {
        lane_close(&bench->lane);
        return;
    }
    printf("%s: %s (%s, %s)\n", bench->device, bench->lane.info.name,
           bench->lane.info.platform, bench->lane.info.driver);
    for (size_t i = 0; i < SUITE_COUNT; i++) {
        if (!suite_applies(bench, selection, i))
            continue;
        bench->suite = suites[i].name;
        printf(" %s\n", suites[i].name);
        suites[i].run(bench);
        bench->lane.backend->trim(bench->lane.device, 0);
    }
    printf("\n");
    lane_close(&bench->lane);
}

static int run_devices(struct bench *bench, const struct selection *selection)
{
    uint32_t count = 0, only = TANDEM_ANY_DEVICE;
    enum tandem_status status = tandem_device_count(bench->context, &count);

    if (status == TANDEM_OK && selection->device != NULL)
        status = tandem_device_find(bench->context, selection->device, &only);
    if (status != TANDEM_OK || count == 0) {
        fprintf(stderr, "tandem-bench: %s\n", tandem_last_error());
        return EXIT_NO_DEVICE;
    }
    for (uint32_t device = 0; device < count; device++)
        if (only == TANDEM_ANY_DEVICE || only == device)
            run_device(bench, selection, device);
    return bench->failed ? EXIT_FAILED : 0;
}

/* With --json, the text goes to standard error; returns where JSON goes. */
static FILE *divert_text(const struct bench *bench)
{
    FILE *json = NULL;

    if (!bench->json)
        return NULL;
    json = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return json;
}

int main(int argc, char **argv)
{
    struct bench bench = {.samples = 11, .seed = 1};
    struct selection selection = {.any = false};
    int status = read_options(argc, argv, &bench, &selection);
    FILE *json;

    if (status >= 0) {
        if (status == EXIT_USAGE)
            fputs("Try \"tandem-bench --help\".\n", stderr);
        return status;
    }
    if (tandem_context_create(NULL, &bench.context) != TANDEM_OK) {
        fprintf(stderr, "tandem-bench: %s\n", tandem_last_error());
        return EXIT_NO_DEVICE;
    }
    json = divert_text(&bench);
    bench.rows = json_array();
    status = run_devices(&bench, &selection);
    if (json != NULL) {
        json_dumpf(bench.rows, json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        fputc('\n', json);
        fclose(json);
    }
    json_decref(bench.rows);
    tandem_context_destroy(bench.context);
    return status;
}
