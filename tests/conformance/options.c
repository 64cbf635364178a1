/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line; see options.h. */
#include "config.h"

#include "options.h"
#include "workers.h"
#include "operator_list.h"

#include "../../tools/common/program_options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage_print(void)
{
    fputs(
        "Usage: tandem-conformance [OPTION]... PLUGIN.so [OP]\n"
        "Runs the conformance suite against a Tandem backend plugin.\n"
        "OP is an operator's name, \"operators\" for all of these, or a "
        "group of\ncases; without it all run.\n\n"
        "  -k, --device INDEX      the device, 0 where not given\n"
        "      --jobs NUMBER       processes that run the cases; where not "
        "given,\n"
        "                          as many as there are CPUs if the device is "
        "a GPU\n"
        "                          that compiles kernels, else 1\n"
        "      --seed NUMBER       seed of shapes and values, 1 where not "
        "given\n"
        "      --level smoke|standard|full\n"
        "                          a seeded choice of cases, of few kernels "
        "or more,\n"
        "                          or all\n"
        "      --open-option KEY=VALUE\n"
        "                          passed to the plugin's open; may be "
        "repeated\n"
        "      --exact-buffers     operands end where their buffers do\n"
        "      --filter TEXT       only cases whose name contains TEXT\n"
        "      --exclude TEXT      no cases whose name contains TEXT; may be "
        "repeated\n"
        "      --random CALLS      make this number of random calls, valid and "
        "invalid,\n"
        "                          instead of the cases\n"
        "      --first NUMBER      the number of the first random call, 0 "
        "where not given\n"
        "      --block CALLS       random calls in a row that share operators "
        "and dtypes,\n"
        "                          500 where not given\n"
        "      --compare PLUGIN.so random calls run on this plugin, too\n"
        "      --list              print the cases and run none\n"
        "      --json              one JSON object a line for each case\n"
        "  -v, --verbose           one line for each case\n"
        "      --log               print all messages of the plugin, not only "
        "warnings\n"
        "  -h, --help              this text\n"
        "  -V, --version           the version\n\n"
        "Exit status: 0 no case failed and at least one passed, 1 a case "
        "failed,\n2 wrong usage, or no plugin of this ABI, 3 there is no such "
        "device, 4 no case\npassed and none failed: all were skipped, or "
        "none was selected.\n\n"
        "Groups:\n",
        stdout);
    for (uint32_t i = 0; i < group_count; i++)
        if (groups[i].name != NULL)
            printf("  %-14s %s\n", groups[i].name, groups[i].about);
}

/* Prints an error about the command line. Returns false. */
__attribute__((format(printf, 1, 2))) static bool
option_error(const char *format, ...)
{
    va_list arguments;

    fputs(PROGRAM ": ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

static bool take_number(const char *name, uint64_t least, uint64_t most,
                        uint64_t *out_number)
{
    char *end;

    errno = 0;
    *out_number = strtoull(optarg, &end, 0);
    if (errno == 0 && optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' &&
        *out_number >= least && *out_number <= most)
        return true;
    return option_error(
        "--%s wants a whole number from %llu to %llu, not \"%s\"", name,
        (unsigned long long)least, (unsigned long long)most, optarg);
}

static bool take_level(struct suite_options *options)
{
    options->full = strcmp(optarg, "full") == 0;
    options->smoke = strcmp(optarg, "smoke") == 0;
    return options->full || options->smoke || strcmp(optarg, "standard") == 0 ||
           option_error("--level wants smoke, standard or full, not \"%s\"",
                        optarg);
}

/* Splits "KEY=VALUE" in place. */
static bool take_pair(struct suite_options *options, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return option_error(
            "--open-option wants KEY=VALUE, as in max_isa=avx2, not \"%s\"",
            text);
    if (options->open_count == SUITE_MAX_OPTIONS)
        return option_error(
            "--open-option \"%s\" is one too many: %u are taken", text,
            SUITE_MAX_OPTIONS);
    *equals = '\0';
    options->open_keys[options->open_count] = text;
    options->open_values[options->open_count++] = equals + 1;
    return true;
}

enum long_option {
    OPTION_SEED = 256,
    OPTION_JOBS,
    OPTION_LEVEL,
    OPTION_OPEN_OPTION,
    OPTION_EXACT_BUFFERS,
    OPTION_FILTER,
    OPTION_EXCLUDE,
    OPTION_RANDOM,
    OPTION_FIRST,
    OPTION_BLOCK,
    OPTION_COMPARE,
    OPTION_LIST,
    OPTION_JSON,
    OPTION_LOG
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'k'},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"level", required_argument, NULL, OPTION_LEVEL},
    {"open-option", required_argument, NULL, OPTION_OPEN_OPTION},
    {"exact-buffers", no_argument, NULL, OPTION_EXACT_BUFFERS},
    {"filter", required_argument, NULL, OPTION_FILTER},
    {"exclude", required_argument, NULL, OPTION_EXCLUDE},
    {"random", required_argument, NULL, OPTION_RANDOM},
    {"first", required_argument, NULL, OPTION_FIRST},
    {"block", required_argument, NULL, OPTION_BLOCK},
    {"compare", required_argument, NULL, OPTION_COMPARE},
    {"list", no_argument, NULL, OPTION_LIST},
    {"json", no_argument, NULL, OPTION_JSON},
    {"log", no_argument, NULL, OPTION_LOG},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static bool take_excluded(struct suite_options *options)
{
    if (options->excluded_count == SUITE_MAX_EXCLUDED)
        return option_error("--exclude is given more than %u times",
                            SUITE_MAX_EXCLUDED);
    options->excluded[options->excluded_count++] = optarg;
    return true;
}

/* Returns false with an error message if the option or its value is invalid. */
static bool option_take(struct suite_options *options, int option)
{
    uint64_t number;

    switch (option) {
    case 'k':
        if (!take_number("device", 0, UINT32_MAX, &number))
            return false;
        options->device = (uint32_t)number;
        return true;
    case OPTION_JOBS:
        if (!take_number("jobs", 1, MAX_JOBS, &number))
            return false;
        options->jobs = (uint32_t)number;
        return true;
    case OPTION_SEED:
        return take_number("seed", 0, UINT64_MAX, &options->seed);
    case OPTION_LEVEL:
        return take_level(options);
    case OPTION_OPEN_OPTION:
        return take_pair(options, optarg);
    case OPTION_EXACT_BUFFERS:
        options->exact_buffers = true;
        return true;
    case OPTION_FILTER:
        options->filter = optarg;
        return true;
    case OPTION_EXCLUDE:
        return take_excluded(options);
    case OPTION_RANDOM:
        return take_number("random", 1, UINT64_MAX, &options->random_calls);
    case OPTION_FIRST:
        return take_number("first", 0, UINT64_MAX, &options->first_call);
    case OPTION_BLOCK:
        return take_number("block", 1, UINT64_MAX, &options->block_calls);
    case OPTION_COMPARE:
        options->compare = optarg;
        return true;
    case OPTION_LIST:
        options->list = true;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_LOG:
        options->log = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    default:
        return false; /* program_option_next printed an error */
    }
}

static bool only_known(const char *only)
{
    for (uint32_t i = 0; i < group_count; i++)
        if (groups[i].name != NULL && strcmp(groups[i].name, only) == 0)
            return true;
    return op_find_name(only) != NULL;
}

/* Reports that no operator and no group has this name. */
static bool only_error(const char *only)
{
    const char *names[TANDEM_OP_ID_END], *nearest;

    for (uint32_t i = 0; i < op_table_count; i++)
        names[i] = op_table[i].name;
    nearest = program_operator_nearest(only, names, op_table_count);
    return nearest != NULL
               ? option_error("%s: no such operator or group; did you mean "
                              "\"%s\"?",
                              only, nearest)
               : option_error("%s: no such operator or group (--help lists "
                              "the groups)",
                              only);
}

static bool operands_take(int argc, char **argv, struct suite_options *options)
{
    if (argc - optind < 1)
        return option_error("which plugin? PLUGIN.so is missing");
    if (argc - optind > 2)
        return option_error("\"%s\" is not understood", argv[optind + 2]);
    options->plugin = argv[optind];
    options->only = argv[optind + 1];
    if (options->only != NULL && strcmp(options->only, "operators") == 0) {
        options->operators = true;
        options->only = NULL;
    }
    return options->only == NULL || only_known(options->only) ||
           only_error(options->only);
}

static bool usage_fail(enum exit_code *out_code)
{
    fputs("Try \"" PROGRAM " --help\".\n", stderr);
    *out_code = EXIT_USAGE;
    return false;
}

bool options_parse(int argc, char **argv, struct suite_options *options,
                   enum exit_code *out_code)
{
    int option;

    *out_code = EXIT_PASSED;
    while ((option = program_option_next(PROGRAM, argc, argv, "k:vhV",
                                         long_options)) != -1) {
        if (option == 'h') {
            usage_print();
            return false;
        }
        if (option == 'V') {
            printf(PROGRAM " (Tandem) %s\n", PACKAGE_VERSION);
            return false;
        }
        if (!option_take(options, option))
            return usage_fail(out_code);
    }
    return operands_take(argc, argv, options) || usage_fail(out_code);
}
