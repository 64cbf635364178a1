/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the command line; see command_line.h.
 */
#include <config.h>

#include "command_line.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(FILE *out)
{
    fputs("Usage: tandem-bench [OPTION]... [SUITE]...\n"
          "Compares Tandem with what it stands on and prints ratios.\n"
          "\n"
          "  --device=NAME    this device alone: cpu, opencl, opencl:1; any: "
          "the\n"
          "                   library's choice\n"
          "  --scale=SCALE    tiny, small, full; else small on a CPU, full on "
          "a GPU\n"
          "  --filter=TEXT    only rows whose name contains TEXT\n"
          "  --open-option=KEY=VALUE\n"
          "                   passed on as devices are opened; may be "
          "repeated\n"
          "  --samples=N      turns of each side, 9 to 99 (9)\n"
          "  --seed=N         of the suite placement (1)\n"
          "  --print-points   prints each point of the suite placement\n"
          "  --list           what would be measured (--scale=full), nothing "
          "more\n"
          "  --input=FILE     prints the result in FILE, measures nothing\n"
          "  --compare=FILE   then prints what changed since the result in "
          "FILE\n"
          "  --format=FORMAT  text, json, markdown, svg\n"
          "  --json           --format=json\n"
          "  --output=FILE    writes to FILE, not to standard output\n"
          "  -h, --help       this text\n"
          "  -V, --version    the version\n"
          "\n"
          "Suites (all where none is named):\n",
          out);
    for (size_t i = 0; i < SUITE_COUNT; i++)
        fprintf(out, "  %-12s %s\n", suites[i].name, suites[i].about);
    fputs("\nspeed: above 1 is faster than the reference.\n"
          "Exit status: 0 all ran, 1 a result was wrong, a call failed or a "
          "file cannot\nbe read or written, or has no row of this run to "
          "--compare, 2 wrong usage or no\nrow was selected, 3 there is no "
          "device, or none of the name given, 4 --compare\nfound something "
          "slower beyond the spread.\n",
          out);
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

/* Joins the words, as in "one, two or three". */
static const char *words_join(char out[256], const char *const *words,
                              size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count && used < 256; i++)
        used += (size_t)snprintf(out + used, 256 - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? " or "
                                                  : ", ",
                                 words[i]);
    return out;
}

static int take_number(const char *name, uint64_t least, uint64_t most,
                       uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(optarg, &end, 10);
    if (optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' && errno == 0 &&
        *out >= least && *out <= most)
        return -1;
    return complain("--%s wants a whole number from %" PRIu64 " to %" PRIu64
                    ", not \"%s\"",
                    name, least, most, optarg);
}

static int take_word(const char *name, const char *const *words, int count,
                     int *out)
{
    char list[256];

    for (*out = count - 1; *out >= 0; --*out)
        if (strcmp(words[*out], optarg) == 0)
            return -1;
    return complain("--%s wants %s, not \"%s\"", name,
                    words_join(list, words, (size_t)count), optarg);
}

static int take_suite(struct selection *selection, const char *name)
{
    const struct suite *suite = suite_find(name);
    const char *names[SUITE_COUNT];
    char list[256];

    if (suite != NULL) {
        selection->suites[suite - suites] = selection->any_suite = true;
        return -1;
    }
    for (size_t i = 0; i < SUITE_COUNT; i++)
        names[i] = suites[i].name;
    return complain("there is no suite \"%s\", but %s", name,
                    words_join(list, names, SUITE_COUNT));
}

/* Splits "KEY=VALUE" in place and adds it. */
static int take_pair(struct open_options *open_options, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return complain(
            "--open-option wants KEY=VALUE, as in max_isa=avx2, not \"%s\"",
            text);
    if (open_options->count == MAX_OPEN_OPTIONS)
        return complain("--open-option \"%s\" is one too many: %u are taken",
                        text, MAX_OPEN_OPTIONS);
    *equals = '\0';
    open_options->keys[open_options->count] = text;
    open_options->values[open_options->count++] = equals + 1;
    return -1;
}

/* Handles options whose value is a pair, a number or one of several words.
 * Returns -1 or the exit status. */
static int take_value(int option, struct command *command)
{
    uint64_t samples = 0;
    int status, format = 0;

    switch (option) {
    case 'k':
        return take_pair(&command->bench.open_options, optarg);
    case 'n':
        status = take_number("samples", MIN_SAMPLES, MAX_SAMPLES, &samples);
        command->bench.samples = (uint32_t)samples;
        return status;
    case 's':
        return take_number("seed", 0, INT64_MAX, &command->bench.seed);
    case 'S':
        return take_word("scale", scale_names, SCALES,
                         &command->selection.scale);
    default:
        status = take_word("format", format_names, FORMATS, &format);
        command->format =
            format < 0 ? FORMAT_TEXT : (enum document_format)format;
        return status;
    }
}

/* Handles one option.  Returns -1 to continue, or the exit status. */
static int take_option(int option, struct command *command)
{
    switch (option) {
    case 'd':
        command->selection.device = optarg;
        return -1;
    case 'O':
        command->selection.only = optarg;
        return -1;
    case 'r':
        command->from = optarg;
        return -1;
    case 'c':
        command->compare = optarg;
        return -1;
    case 'o':
        command->output = optarg;
        return -1;
    case 'l':
        command->list = true;
        return -1;
    case 'p':
        command->bench.print_points = true;
        return -1;
    case 'j':
        command->format = FORMAT_JSON;
        return -1;
    case 'h':
        print_help(stdout);
        return 0;
    case 'V':
        printf("tandem-bench (Tandem) %s\n", tandem_version());
        return 0;
    case '?': /* getopt printed a message */
        fputs("Try \"tandem-bench --help\".\n", stderr);
        return EXIT_USAGE;
    default:
        return take_value(option, command);
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
        {"print-points", no_argument, NULL, 'p'},
        {"list", no_argument, NULL, 'l'},
        {"input", required_argument, NULL, 'r'},
        {"compare", required_argument, NULL, 'c'},
        {"format", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'j'},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option, status = -1;

    while (status < 0 &&
           (option = getopt_long(argc, argv, "hV", options, NULL)) != -1)
        status = take_option(option, command);
    for (; status < 0 && optind < argc; optind++)
        status = take_suite(&command->selection, argv[optind]);
    return status;
}
