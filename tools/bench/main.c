/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: measures Tandem and reference implementations in one run, and
 * prints their times and ratios.
 */
#include <config.h>

#include "result_document.h"
#include "cold_start_process.h"
#include "command_line.h"
#include "suite_runner.h"

#include "../common/program_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns true if at least one row was selected; otherwise prints what selected
 * none. */
static bool found_rows(const struct command *command, size_t count)
{
    if (count > 0)
        return true;
    if (command->selection.only != NULL)
        fprintf(stderr, "tandem-bench: no row has \"%s\" in its name here\n",
                command->selection.only);
    else
        fputs("tandem-bench: no row ran: the selected suites have no row for "
              "the selected devices\n",
              stderr);
    return false;
}

/* Prints the rows without measuring.  Returns the exit status. */
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

static void document_print(const json_t *document, enum document_format format,
                           FILE *out)
{
    if (format == FORMAT_JSON)
        document_write(document, out);
    else if (format == FORMAT_SVG)
        plot_print(document, out);
    else
        tables_print(document, format == FORMAT_MARKDOWN, out);
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
    const struct open_options *asked = &bench->open_options;
    /* Packed operands are not cached, except in rows with "packed". */
    const char *keys[MAX_OPEN_OPTIONS + 1] = {"pack_cache_limit_bytes"};
    const char *values[MAX_OPEN_OPTIONS + 1] = {"0"};
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

/* Prints to `text` what changed since an earlier result.  Returns the exit
 * status. */
static int compare(const struct command *command, const json_t *document,
                   FILE *text)
{
    json_t *earlier = document_read(command->compare);
    size_t slower, common;

    if (earlier == NULL)
        return EXIT_FAILED;
    slower = document_compare(earlier, document, text, &common);
    json_decref(earlier);
    if (common == 0) {
        fprintf(stderr,
                "tandem-bench: %s has no row of this run, so nothing was "
                "compared\n",
                command->compare);
        return EXIT_FAILED;
    }
    return slower > 0 ? EXIT_SLOWER : 0;
}

static int print_result(const struct command *command, json_t *document,
                        int status, FILE *out)
{
    int compared = 0;

    document_print(document, command->format, out);
    /* Machine-readable output must not contain the comparison. */
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

static int run(int argc, char **argv)
{
    struct command command = {.bench = {.samples = MIN_SAMPLES, .seed = 1},
                              .selection = {.scale = -1}};
    FILE *out = stdout;
    int status;

    if (argc > 1 && strcmp(argv[1], FIRST_OPTION) == 0)
        return first_main(argc, argv);
    status = options_read(argc, argv, &command);
    if (status >= 0)
        return status;
    if (command.output != NULL)
        out = fopen(command.output, "w");
    if (out == NULL) {
        fprintf(stderr, "tandem-bench: %s: %s\n", command.output,
                strerror(errno));
        return EXIT_FAILED;
    }
    status = run_command(&command, out);
    if (out != stdout && !output_close(out, "tandem-bench", command.output))
        status = EXIT_FAILED;
    return status;
}

int main(int argc, char **argv)
{
    output_begin();
    return output_end("tandem-bench", run(argc, argv), EXIT_FAILED);
}
