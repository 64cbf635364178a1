/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench: measures Tandem and reference implementations in one run, and
 * prints the result as JSON.
 */
#include <config.h>

#include "cold_start_process.h"
#include "command_line.h"
#include "result_document.h"

#include "../common/program_output.h"

#include <stdio.h>
#include <string.h>

/* Returns true if at least one row was selected.  Otherwise prints a message.
 */
static bool found_rows(const struct command *command, size_t count)
{
    if (count == 0 && command->selection.filter != NULL)
        fprintf(stderr, "tandem-bench: no row has \"%s\" in its name here\n",
                command->selection.filter);
    else if (count == 0)
        fputs("tandem-bench: no row ran: the selected suites have no row for "
              "the selected devices\n",
              stderr);
    return count > 0;
}

static void list_rows(struct command *command)
{
    int scale = command->selection.scale;
    struct list list = {.scale = scale < 0 ? SCALE_FULL : (enum scale)scale};

    selection_list(&command->selection, NULL, &list);
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(command->bench.rows, row_json(&list.rows[i]));
    list_destroy(&list);
}

static void warning_print(void *user, enum tandem_log_level level,
                          const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "tandem-bench: warning: %s\n", message);
}

/* Measures the selected rows.  Returns the exit status. */
static int measure(struct command *command)
{
    struct bench *bench = &command->bench;
    const struct open_options *given = &bench->open_options;
    /* Buffers keep no packed operands, except in rows with "packed". */
    const char *keys[MAX_OPEN_OPTIONS + 1] = {"test.packed_limit_bytes"};
    const char *values[MAX_OPEN_OPTIONS + 1] = {"0"};
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = keys,
        .open_values = values,
        .open_count = 1 + given->count,
        .log = warning_print};
    bool found_device;

    memcpy(keys + 1, given->keys, given->count * sizeof *keys);
    memcpy(values + 1, given->values, given->count * sizeof *values);
    if (tandem_context_create(&options, &bench->context) != TANDEM_OK) {
        fprintf(stderr, "tandem-bench: %s\n", tandem_last_error());
        return EXIT_NO_DEVICE;
    }
    found_device = run_selection(bench, &command->selection);
    tandem_context_destroy(bench->context);
    return !found_device ? EXIT_NO_DEVICE : bench->failed ? EXIT_FAILED : 0;
}

static int run(int argc, char **argv)
{
    struct command command = {.bench = {.samples = MIN_SAMPLES, .seed = 1},
                              .selection = {.scale = -1}};
    struct bench *bench = &command.bench;
    int status;

    if (argc > 1 && strcmp(argv[1], COLD_START_OPTION) == 0)
        return cold_start_main(argc, argv);
    status = options_read(argc, argv, &command);
    if (status >= 0)
        return status;
    bench->document = document_create(bench);
    bench->rows = json_object_get(bench->document, "rows");
    status = 0;
    if (command.list)
        list_rows(&command);
    else
        status = measure(&command);
    if (status == 0 && !found_rows(&command, json_array_size(bench->rows)))
        status = EXIT_USAGE;
    if (status == 0 || status == EXIT_FAILED)
        document_write(bench->document, stdout);
    json_decref(bench->document);
    return status;
}

int main(int argc, char **argv)
{
    output_begin();
    return output_end("tandem-bench", run(argc, argv), EXIT_FAILED);
}
