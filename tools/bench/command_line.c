/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line; see command_line.h. */
#include <config.h>

#include "command_line.h"

#include "../common/program_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_head[] =
    "Usage: tandem-bench [OPTION]... [SUITE]...\n"
    "Measures Tandem and reference implementations, and prints the result as "
    "JSON.\n"
    "tools/bench/report.py prints tables, plots and comparisons from it.\n"
    "\n"
    "  --device=NAME    only this device: cpu, opencl, opencl:1, or any for "
    "the\n"
    "                   device that the library chooses\n"
    "  --scale=SCALE    maximum size of the work: tiny, small, full (small on "
    "a CPU,\n"
    "                   full on a GPU)\n"
    "  --filter=TEXT    only rows whose name contains TEXT\n"
    "  --open-option=KEY=VALUE\n"
    "                   passed to each device when it is opened; may be "
    "repeated\n"
    "  --samples=N      samples of each implementation, 9 to 99 (9)\n"
    "  --seed=N         seed of the suite placement (1)\n"
    "  --list           print the rows (of --scale=full by default); measure "
    "nothing\n"
    "  -h, --help       print this text\n"
    "  -V, --version    print the version\n"
    "\n"
    "Suites (all if none is named):\n";

static const char help_tail[] =
    "\nExit status: 0 if all suites ran; 1 if a result was wrong, a call "
    "failed or the\noutput could not be written; 2 if the command line is "
    "invalid or no row was\nselected; 3 if there is no device, or none of the "
    "given name.\n";

static int print_help(void)
{
    fputs(help_head, stdout);
    for (size_t i = 0; i < SUITE_COUNT; i++)
        printf("  %-12s %s\n", suites[i].name, suites[i].about);
    fputs(help_tail, stdout);
    return 0;
}

/* Prints an error in the command line.  Returns EXIT_USAGE. */
__attribute__((format(printf, 1, 2))) static int complain(const char *format,
                                                          ...)
{
    va_list arguments;

    fputs("tandem-bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry \"tandem-bench --help\".\n", stderr);
    return EXIT_USAGE;
}

/* The functions below return -1, or the exit status after an error message. */

static int take_number(const char *name, uint64_t min, uint64_t max,
                       uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(optarg, &end, 10);
    if (optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' && errno == 0 &&
        *out >= min && *out <= max)
        return -1;
    return complain("--%s is \"%s\"; expected a whole number from %" PRIu64
                    " to %" PRIu64,
                    name, optarg, min, max);
}

static int take_scale(int *out)
{
    for (*out = SCALES - 1; *out >= 0; --*out)
        if (strcmp(scale_names[*out], optarg) == 0)
            return -1;
    return complain("--scale is \"%s\"; expected tiny, small or full", optarg);
}

static int take_suite(struct selection *selection, const char *name)
{
    for (size_t i = 0; i < SUITE_COUNT; i++)
        if (strcmp(suites[i].name, name) == 0) {
            selection->suites[i] = selection->any_suite = true;
            return -1;
        }
    return complain("there is no suite \"%s\"", name);
}

/* Splits "KEY=VALUE" in place and adds it. */
static int take_pair(struct open_options *open_options, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return complain(
            "--open-option is \"%s\"; expected KEY=VALUE, such as max_isa=avx2",
            text);
    if (open_options->count == MAX_OPEN_OPTIONS)
        return complain("--open-option=%s: at most %u options are allowed",
                        text, MAX_OPEN_OPTIONS);
    *equals = '\0';
    open_options->keys[open_options->count] = text;
    open_options->values[open_options->count++] = equals + 1;
    return -1;
}

static int take_option(int option, struct command *command)
{
    uint64_t samples;
    int status = -1;

    switch (option) {
    case 'd':
        command->selection.device = optarg;
        return -1;
    case 'O':
        command->selection.filter = optarg;
        return -1;
    case 'k':
        return take_pair(&command->bench.open_options, optarg);
    case 'n':
        status = take_number("samples", MIN_SAMPLES, MAX_SAMPLES, &samples);
        command->bench.samples = (uint32_t)samples;
        return status;
    case 's':
        return take_number("seed", 0, INT64_MAX, &command->bench.seed);
    case 'S':
        return take_scale(&command->selection.scale);
    case 'l':
        command->list = true;
        return -1;
    case 'h':
        return print_help();
    case 'V':
        printf("tandem-bench (Tandem) %s\n", tandem_version());
        return 0;
    default: /* program_option_next printed a message */
        fputs("Try \"tandem-bench --help\".\n", stderr);
        return EXIT_USAGE;
    }
}

int options_read(int argc, char **argv, struct command *command)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"scale", required_argument, NULL, 'S'},
        {"filter", required_argument, NULL, 'O'},
        {"open-option", required_argument, NULL, 'k'},
        {"samples", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option, status = -1;

    while (status < 0 && (option = program_option_next(
                              "tandem-bench", argc, argv, "hV", options)) != -1)
        status = take_option(option, command);
    for (; status < 0 && optind < argc; optind++)
        status = take_suite(&command->selection, argv[optind]);
    return status;
}
