/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: how fast Tandem is against what it stands on, in one run, as
 * ratios with both figures.  This file reads the command line.
 */
#include <config.h>

#include "document.h"
#include "first.h"
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_SLOWER = 4
};

struct command {
    struct bench bench;
    struct selection selection;
    enum document_format format;
    const char *from, *compare, *output;
    bool list;
};

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
          "  --only=TEXT      rows alone whose name has TEXT\n"
          "  --option=KEY=VALUE  passed on as devices are opened; may be "
          "repeated\n"
          "  --samples=N      turns of each side, 9 or more (9)\n"
          "  --seed=N         of the suite choice (1)\n"
          "  --points         prints each point of the suite choice\n"
          "  --list           what would be measured (--scale=full), nothing "
          "more\n"
          "  --from=FILE      prints the result in FILE, measures nothing\n"
          "  --compare=FILE   then prints what changed since the result in "
          "FILE\n"
          "  --format=FORMAT  text, json, markdown, svg\n"
          "  --json           --format=json\n"
          "  --output=FILE    writes to FILE, not to standard output\n"
          "  --help           this text\n"
          "  --version        the version\n"
          "\n"
          "Suites (all where none is named):\n",
          out);
    for (size_t i = 0; i < SUITE_COUNT; i++)
        fprintf(out, "  %-12s %s\n", suites[i].name, suites[i].about);
    fputs("\nspeed: above 1 is faster than the reference.\n"
          "Exit status: 0 all ran, 1 a result was wrong, a call failed or a "
          "file cannot\nbe read or written, 2 wrong usage or no row that "
          "--only names, 3 there is no\ndevice, or none of the name given, 4 "
          "--compare found something slower beyond\nthe spread.\n",
          out);
}

static bool read_number(const char *text, uint64_t least, uint64_t most,
                        uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
           *out >= least && *out <= most;
}

/* The index of the word among count; -1: not there. */
static int word_index(const char *word, const char *const *words, int count)
{
    while (count-- > 0)
        if (strcmp(words[count], word) == 0)
            return count;
    return -1;
}

static bool take_suite(struct selection *selection, const char *name)
{
    const struct suite *suite = suite_find(name);

    if (suite != NULL)
        return selection->suites[suite - suites] = selection->any_suite = true;
    fprintf(stderr, "tandem-bench: there is no suite \"%s\"\n", name);
    return false;
}

/* "KEY=VALUE", taken apart in place. */
static bool take_pair(struct opening *opening, char *text)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text || opening->count == OPENING_MOST)
        return false;
    *equals = '\0';
    opening->keys[opening->count] = text;
    opening->values[opening->count++] = equals + 1;
    return true;
}

/* Options with a pair, a number or a word of a few; false: not understood. */
static bool take_value(int option, struct command *command)
{
    uint64_t number = 0;
    int word;

    switch (option) {
    case 'k':
        return take_pair(&command->bench.opening, optarg);
    case 'n':
        if (!read_number(optarg, MIN_SAMPLES, MAX_SAMPLES, &number))
            return false;
        command->bench.samples = (uint32_t)number;
        return true;
    case 's':
        return read_number(optarg, 0, INT64_MAX, &command->bench.seed);
    case 'S':
        command->selection.scale = word_index(optarg, scale_names, SCALES);
        return command->selection.scale >= 0;
    default:
        word = word_index(optarg, format_names, FORMATS);
        command->format = word < 0 ? FORMAT_TEXT : (enum document_format)word;
        return word >= 0;
    }
}

/* -1: go on; else the exit status. */
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
    case '?':
        return EXIT_USAGE;
    default:
        if (take_value(option, command))
            return -1;
        fprintf(stderr, "tandem-bench: \"%s\" will not do here\n", optarg);
        return EXIT_USAGE;
    }
}

static int read_options(int argc, char **argv, struct command *command)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"scale", required_argument, NULL, 'S'},
        {"only", required_argument, NULL, 'O'},
        {"option", required_argument, NULL, 'k'},
        {"samples", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"points", no_argument, NULL, 'p'},
        {"list", no_argument, NULL, 'l'},
        {"from", required_argument, NULL, 'r'},
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
        if (!take_suite(&command->selection, argv[optind]))
            status = EXIT_USAGE;
    return status;
}

/* ---- what is asked for ---- */

/* Whether --only left one of count rows at least; complains where not. */
static bool found_rows(const struct command *command, size_t count)
{
    if (count > 0 || command->selection.only == NULL)
        return true;
    fprintf(stderr, "tandem-bench: no row has \"%s\" in its name here\n",
            command->selection.only);
    return false;
}

/* The exit status. */
static int print_list(const struct command *command, FILE *out)
{
    int scale = command->selection.scale, status;
    json_t *document = json_object(), *rows = json_array();
    struct list list = {.scale = scale < 0 ? SCALE_FULL : (enum scale)scale};

    selection_list(&command->selection, NULL, &list);
    for (size_t i = 0; i < list.count; i++) {
        if (command->format == FORMAT_JSON)
            json_array_append_new(rows, row_json(&list.rows[i]));
        else
            fprintf(out, "%-10s %s\n", list.rows[i].suite, list.rows[i].name);
    }
    json_object_set_new(document, "schema", json_string(DOCUMENT_SCHEMA));
    json_object_set_new(document, "rows", rows);
    if (command->format == FORMAT_JSON)
        document_write(document, out);
    status = found_rows(command, list.count) ? 0 : EXIT_USAGE;
    json_decref(document);
    list_destroy(&list);
    return status;
}

static void warning_print(void *user, enum tandem_log_level level,
                          const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "tandem-bench: warning: %s\n", message);
}

static int measure(struct command *command, json_t **out_document)
{
    struct bench *bench = &command->bench;
    const struct opening *asked = &bench->opening;
    /* Operands that are packed are so each time, but where a row says not. */
    const char *keys[OPENING_MOST + 1] = {"packed_bytes"};
    const char *values[OPENING_MOST + 1] = {"0"};
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = keys,
        .open_values = values,
        .open_count = 1 + asked->count,
        .log = warning_print};
    int status = 0;

    memcpy(keys + 1, asked->keys, asked->count * sizeof *keys);
    memcpy(values + 1, asked->values, asked->count * sizeof *values);
    *out_document = document_create(bench->samples, bench->seed, asked);
    if (tandem_context_create(&options, &bench->context) != TANDEM_OK) {
        fprintf(stderr, "tandem-bench: %s\n", tandem_last_error());
        return EXIT_NO_DEVICE;
    }
    if (!run_selection(bench, &command->selection, *out_document))
        status = EXIT_NO_DEVICE;
    else if (bench->failed)
        status = EXIT_FAILED;
    else if (!found_rows(command, json_array_size(bench->rows)))
        status = EXIT_USAGE;
    tandem_context_destroy(bench->context);
    return status;
}

/* Says on text what changed; never instead of a failure. */
static int compare(const struct command *command, const json_t *document,
                   FILE *text)
{
    json_t *earlier = document_read(command->compare);
    size_t slower;

    if (earlier == NULL)
        return EXIT_FAILED;
    slower = document_compare(earlier, document, text);
    json_decref(earlier);
    return slower > 0 ? EXIT_SLOWER : 0;
}

static int print_result(const struct command *command, json_t *document,
                        int status, FILE *out)
{
    int compared = 0;

    document_print(document, command->format, out);
    /* What is read by programs stays so. */
    if (command->compare != NULL)
        compared = compare(command, document,
                           command->format == FORMAT_TEXT ? out : stderr);
    return status != 0 ? status : compared;
}

static int run_command(struct command *command, FILE *out)
{
    json_t *document = NULL;
    int status = 0;

    if (command->list)
        return print_list(command, out);
    if (command->from != NULL) {
        document = document_read(command->from);
        status = document == NULL ? EXIT_FAILED : 0;
    } else {
        status = measure(command, &document);
    }
    if (status == 0 || (status == EXIT_FAILED && document != NULL))
        status = print_result(command, document, status, out);
    json_decref(document);
    return status;
}

int main(int argc, char **argv)
{
    struct command command = {.bench = {.samples = MIN_SAMPLES, .seed = 1},
                              .selection = {.scale = -1}};
    FILE *out = stdout;
    int status;

    if (argc > 1 && strcmp(argv[1], FIRST_OPTION) == 0)
        return first_main(argc, argv);
    status = read_options(argc, argv, &command);
    if (status >= 0) {
        if (status == EXIT_USAGE)
            fputs("Try \"tandem-bench --help\".\n", stderr);
        return status;
    }
    if (command.output != NULL)
        out = fopen(command.output, "w");
    if (out == NULL) {
        fprintf(stderr, "tandem-bench: %s: %s\n", command.output,
                strerror(errno));
        return EXIT_FAILED;
    }
    status = run_command(&command, out);
    if (ferror(out) || fclose(out) != 0) {
        fprintf(stderr, "tandem-bench: the output cannot be written\n");
        status = EXIT_FAILED;
    }
    return status;
}
