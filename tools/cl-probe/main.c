/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl-probe: finds the devices of this machine, measures them, checks them and
 * explains what runs where.  This file reads the command line.
 */
#include <config.h>

#include "cl_probe.h"

#include "../common/program_options.h"
#include "../common/program_output.h"
#include "../common/text_wrap.h"

#include "common/environment.h"
#include <installed_directories.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Default of --wait. */
#define WAIT_S 10u

/* The modes come first. */
enum long_option {
    MODE_LIST = 256,
    MODE_CALIBRATE,
    MODE_TUNE,
    MODE_VERIFY,
    MODE_EXPLAIN,
    MODE_CLEAR_CACHE,
    MODE_WARM_CACHE,
    MODE_DOCTOR,
    OPTION_BUDGET,
    OPTION_QUICK,
    OPTION_WAIT,
    OPTION_REPLACE,
    OPTION_SYSTEM,
    OPTION_RESIDENT,
    OPTION_OPERATOR,
    OPTION_REPORT,
    OPTION_DEVICE,
    OPTION_TIMEOUT,
    OPTION_DRIVER_TIMEOUT,
    OPTION_JSON,
    OPTION_VERBOSE
};

static int (*const modes[])(const struct probe_options *options) = {
    probe_list,    probe_calibrate,   probe_tune,       probe_verify,
    probe_explain, probe_clear_cache, probe_warm_cache, probe_doctor,
};

static const struct option long_options[] = {
    {"list", no_argument, NULL, MODE_LIST},
    {"calibrate", no_argument, NULL, MODE_CALIBRATE},
    {"tune", no_argument, NULL, MODE_TUNE},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"replace", no_argument, NULL, OPTION_REPLACE},
    {"verify", no_argument, NULL, MODE_VERIFY},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"explain", required_argument, NULL, MODE_EXPLAIN},
    {"clear-cache", no_argument, NULL, MODE_CLEAR_CACHE},
    {"warm-cache", no_argument, NULL, MODE_WARM_CACHE},
    {"doctor", no_argument, NULL, MODE_DOCTOR},
    {"system", optional_argument, NULL, OPTION_SYSTEM},
    {"operator", required_argument, NULL, OPTION_OPERATOR},
    {"resident", required_argument, NULL, OPTION_RESIDENT},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"driver-timeout", required_argument, NULL, OPTION_DRIVER_TIMEOUT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Usage: cl-probe\n"
    "       cl-probe --list\n"
    "       cl-probe --calibrate [--quick] [--wait=SECONDS] [--replace]\n"
    "       cl-probe --tune [--budget=SECONDS]\n"
    "       cl-probe --verify [--operator=NAME] [--report=FILE]\n"
    "       cl-probe --explain OP SHAPE [--resident=DEVICE]\n"
    "       cl-probe --warm-cache [--system[=DIRECTORY]] [--operator=NAME]\n"
    "       cl-probe --clear-cache\n"
    "       cl-probe --doctor\n"
    "\n"
    "Finds the compute devices of this machine, measures what they cost,\n"
    "checks what they compute, and explains which one runs an operator.\n"
    "Without an option, prints the devices and the commands to run next.\n"
    "\n"
    "  --list             the devices in detail, and why others are missing\n"
    "  --calibrate        measure each device and write its profile\n"
    "  --quick            with --calibrate: measure for about five seconds a\n"
    "                     device, not a minute; compilers take longer\n"
    "  --wait=S           with --calibrate: seconds to wait for a quiet\n"
    "                     machine (10)\n"
    "  --replace          with --calibrate: keep no costs of the earlier\n"
    "                     profile, even if it is better\n"
    "  --tune             measure the kernels of matrix products for longer,\n"
    "                     and keep each result in the profile at once\n"
    "  --budget=S         with --tune: seconds a device (60)\n"
    "  --verify           check every operator against a float64 reference;\n"
    "                     what is wrong is not used until it is found right\n"
    "  --report=FILE      with --verify: write a file without private data,\n"
    "                     to keep until the project has a public address\n"
    "  --explain OP SHAPE predicted times, as in: softmax 4096x1000, or\n"
    "                     (m, n, k): gemm 512x512x512\n"
    "  --warm-cache       compile what the operators need ahead of time, into\n"
    "                     the caches from which programs take it\n"
    "  --system[=DIR]     with --warm-cache: for all users, system-wide\n"
    "  --clear-cache      remove compiled programs (profiles stay)\n"
    "  --doctor           check what often goes wrong with OpenCL, and say\n"
    "                     what to do\n"
    "  --operator=NAME    with --verify, --warm-cache: this operator alone\n"
    "  --resident=DEVICE  with --explain: where the data lies (default: host)\n"
    "  --device=NAME      this device alone: cpu, opencl, opencl:1\n"
    "  --timeout=S        seconds that a device may take at most\n"
    "  --driver-timeout=S seconds that an OpenCL driver may take to list its\n"
    "                     devices (10)\n"
    "  --json             answer in JSON\n"
    "  --verbose          say more on standard error\n"
    "  -h, --help         this text\n"
    "  -V, --version      the version\n"
    "\n"
    "Exit status: 0 all well, 1 a device or a check failed, --verify could\n"
    "check no operator of a device, or --doctor found a problem, 2 wrong\n"
    "usage, 3 there is no device, or none of the name given.\n";

static int usage(void)
{
    fputs("Try \"cl-probe --help\".\n", stderr);
    return PROBE_USAGE;
}

static bool take_seconds(const char *option, unsigned min, unsigned *out)
{
    char *end;
    unsigned long seconds = strtoul(optarg, &end, 10);

    *out = (unsigned)seconds;
    if (optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' &&
        seconds >= min && seconds <= 1000000)
        return true;
    probe_complain("%s wants seconds, %u or more, not \"%s\"", option, min,
                   optarg);
    return false;
}

/* Handles one option.  If it is invalid, prints a message and returns false. */
static bool take_option(int option, struct probe_options *options, int *mode)
{
    switch (option) {
    case OPTION_BUDGET:
        return take_seconds("--budget", 1, &options->budget_s);
    case OPTION_SYSTEM:
        options->system = optarg != NULL ? optarg : STATEDIR;
        return true;
    case OPTION_QUICK:
        return options->quick = true;
    case OPTION_JSON:
        return options->json = true;
    case OPTION_VERBOSE:
        return options->verbose = true;
    case OPTION_RESIDENT:
        options->resident = optarg;
        return true;
    case OPTION_OPERATOR:
        options->op = optarg;
        options->one_op = true;
        return true;
    case OPTION_REPORT:
        options->report = optarg;
        return true;
    case OPTION_DEVICE:
        options->device = optarg;
        return true;
    case OPTION_TIMEOUT:
        return take_seconds("--timeout", 1, &options->timeout_s);
    case OPTION_DRIVER_TIMEOUT:
        return take_seconds("--driver-timeout", 1, &options->driver_timeout_s);
    case OPTION_WAIT:
        options->waits = true;
        return take_seconds("--wait", 0, &options->wait_s);
    case OPTION_REPLACE:
        return options->replace = true;
    case '?':
        return false; /* program_option_next printed a message */
    default:
        if (*mode != 0 && *mode != option) {
            probe_complain("only one of --list, --calibrate, --tune, --verify, "
                           "--explain, --warm-cache, --clear-cache and "
                           "--doctor at a time");
            return false;
        }
        *mode = option;
        if (option == MODE_EXPLAIN)
            options->op = optarg;
        return true;
    }
}

static int names_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Prints that no operator has this name, and the one that is probably meant.
 * Prints all names if none is similar. */
static void op_name_complain(const char *name)
{
    const char *names[TANDEM_OP_ID_END], *nearest;
    char all[4096] = "", text[4300];
    size_t count = 0;

    for (uint32_t id = 0; id < TANDEM_OP_ID_END; id++)
        if (tandem_op_by_id(id) != NULL)
            names[count++] = tandem_op_by_id(id)->name;
    nearest = program_operator_nearest(name, names, count);
    if (nearest != NULL) {
        probe_complain("there is no operator \"%.60s\"; did you mean \"%s\"?",
                       name, nearest);
        return;
    }
    qsort(names, count, sizeof *names, names_compare);
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(all);

        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ",
                 names[i]);
    }
    snprintf(text, sizeof text,
             "cl-probe: there is no operator \"%.60s\"; the operators are: %s",
             name, all);
    text_wrap(stderr, text, 0, 2, output_columns(stderr));
}

/* Checks the arguments after the options, and combinations of options. */
static bool check_options(struct probe_options *options, int mode, int argc,
                          char **argv)
{
    const struct {
        bool given;
        int mode, other_mode; /* with which the option may be given */
        const char *rule;
    } rules[] = {
        {options->quick, MODE_CALIBRATE, MODE_CALIBRATE,
         "--quick goes with --calibrate"},
        {options->waits, MODE_CALIBRATE, MODE_CALIBRATE,
         "--wait goes with --calibrate"},
        {options->replace, MODE_CALIBRATE, MODE_CALIBRATE,
         "--replace goes with --calibrate"},
        {options->budget_s > 0, MODE_TUNE, MODE_TUNE,
         "--budget goes with --tune"},
        {options->system != NULL, MODE_WARM_CACHE, MODE_WARM_CACHE,
         "--system goes with --warm-cache"},
        {options->one_op, MODE_VERIFY, MODE_WARM_CACHE,
         "--operator goes with --verify and --warm-cache"},
        {options->report != NULL, MODE_VERIFY, MODE_VERIFY,
         "--report goes with --verify"},
        {options->resident != NULL, MODE_EXPLAIN, MODE_EXPLAIN,
         "--resident goes with --explain"},
        {options->device != NULL && mode == MODE_DOCTOR, 0, 0,
         "--doctor checks all devices: leave out --device"},
    };

    if (mode == MODE_EXPLAIN && optind < argc)
        options->shape = argv[optind++];
    if (optind < argc) {
        program_word_complain("cl-probe", argv[optind], long_options);
        return false;
    }
    if (mode == MODE_EXPLAIN && options->shape == NULL) {
        probe_complain("--explain wants an operator and a shape, as in: "
                       "--explain softmax 4096x1000");
        return false;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].given && mode != rules[i].mode &&
            mode != rules[i].other_mode) {
            probe_complain("%s", rules[i].rule);
            return false;
        }
    if (options->op != NULL && tandem_op_by_name(options->op) == NULL) {
        op_name_complain(options->op);
        return false;
    }
    return true;
}

static void variable_complain(void *user, const char *message)
{
    (void)user;
    probe_complain("%s", message);
}

static int run(int argc, char **argv)
{
    struct probe_options options = {.forced = secure_getenv("TANDEM_DEVICE"),
                                    .wait_s = WAIT_S};
    int option, mode = 0;

    /* Each child process loads one plugin and queries all its devices. */
    unsetenv("TANDEM_DEVICE");
    while ((option = program_option_next("cl-probe", argc, argv, "hV",
                                         long_options)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return PROBE_OK;
        }
        if (option == 'V') {
            printf("cl-probe (Tandem) %s\n", tandem_version());
            return PROBE_OK;
        }
        if (!take_option(option, &options, &mode))
            return usage();
    }
    if (!check_options(&options, mode, argc, argv))
        return usage();
    if (!options.verbose) /* the library logs them in each child */
        environment_check(variable_complain, NULL);
    if (mode == 0 && !options.json)
        return probe_overview(&options);
    return modes[mode == 0 ? 0 : mode - MODE_LIST](&options);
}

int main(int argc, char **argv)
{
    output_begin();
    return output_end("cl-probe", run(argc, argv), PROBE_FAILED);
}
