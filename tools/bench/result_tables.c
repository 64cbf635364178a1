/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints results as tables; see result_document.h.
 */
#include <config.h>

#include "result_document.h"

#include "../common/text_table.h"

#include <string.h>

static void markdown_table(const struct table *table, FILE *out)
{
    for (size_t row = 0; row < table->rows; row++) {
        fputs("|", out);
        for (size_t column = 0; column < table->columns; column++) {
            const char *text = table->row[row].cells[column];

            fprintf(out, " %s |", text == NULL ? "" : text);
        }
        fputs("\n", out);
        if (row > 0)
            continue;
        fputs("|---", out);
        for (size_t column = 1; column < table->columns; column++)
            fputs("|---:", out);
        fputs("|\n", out);
    }
}

static void spread_cell(struct table *table, const json_t *implementation)
{
    if (row_number(implementation, "samples") < 2)
        table_cell(table, "once");
    else
        table_cell(table, "%.0f%%",
                   50 * row_number(implementation, "iqr_ratio"));
}

/* Adds a cell with the componentwise errors of Tandem and the implementation.
 */
static void error_cell(struct table *table, const json_t *row,
                       const json_t *implementation)
{
    const json_t *errors = json_object_get(row, "error");
    const char *name = row_text(implementation, "name");
    const json_t *ours =
        json_object_get(json_object_get(errors, "Tandem"), "componentwise");
    const json_t *theirs =
        json_object_get(json_object_get(errors, name), "componentwise");

    if (ours != NULL && theirs != NULL)
        table_cell(table, "%.1e : %.1e", json_number_value(ours),
                   json_number_value(theirs));
}

static void reference_cells(struct table *table, const json_t *row,
                            const json_t *implementation)
{
    double ours = row_number(row_implementation(row, NULL), "ns");
    char text[TEXT_BYTES];

    table_cell(table, "%s", row_text(implementation, "name"));
    table_cell(table, "%s", row_result_text(text, row, implementation));
    spread_cell(table, implementation);
    table_cell(table, "%.3f", row_number(implementation, "ns") / ours);
    error_cell(table, row, implementation);
}

static void measured_row(struct table *table, const json_t *row)
{
    const json_t *implementations = json_object_get(row, "implementations"),
                 *implementation;
    char text[TEXT_BYTES];
    size_t i;

    implementation = json_array_get(implementations, 0);
    table_row(table);
    table_cell(table, "%s", row_text(row, "name"));
    table_cell(table, "%s", row_result_text(text, row, implementation));
    spread_cell(table, implementation);
    json_array_foreach (implementations, i, implementation) {
        if (i == 0)
            continue;
        if (i > 1) {
            table_row(table);
            for (int column = 0; column < 3; column++)
                table_cell(table, "%s", "");
        }
        reference_cells(table, row, implementation);
    }
}

static void add_row(struct table *table, const json_t *row)
{
    const char *status = row_text(row, "status");

    if (strcmp(status, "measured") == 0) {
        measured_row(table, row);
        return;
    }
    table_row(table);
    table_cell(table, "%s", row_text(row, "name"));
    if (strcmp(status, "scalar") == 0)
        table_cell(table, "%.4g %s", row_number(row, "value"),
                   row_text(row, "unit"));
    else
        table_cell(table, "%s", status);
}

static void heading(struct table *table)
{
    static const char *const names[] = {"",       "Tandem", "+-",    "against",
                                        "theirs", "+-",     "speed", "error"};

    table_row(table);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_cell(table, "%s", names[i]);
}

/* Prints each reason for unavailable or failed rows once. */
static void print_reasons(const json_t *rows, const char *device,
                          const char *suite, FILE *out)
{
    json_t *seen = json_object();
    const json_t *row;
    const char *reason;
    json_t *names;
    size_t i;

    json_array_foreach (rows, i, row) {
        reason = row_text(row, "reason");
        if (reason[0] == '\0' || strcmp(row_text(row, "suite"), suite) != 0 ||
            strcmp(row_text(row, "device"), device) != 0)
            continue;
        if (json_object_get(seen, reason) == NULL)
            json_object_set_new(seen, reason, json_array());
        json_array_append(json_object_get(seen, reason),
                          json_object_get(row, "name"));
    }
    json_object_foreach (seen, reason, names)
        fprintf(out, "\n%s: %s%s\n",
                json_string_value(json_array_get(names, 0)), reason,
                json_array_size(names) > 1 ? " (and others)" : "");
    json_decref(seen);
}

static void print_suite(const json_t *rows, const char *device,
                        const char *suite, bool markdown, FILE *out)
{
    struct table table = {.fold = 3}; /* each reference gets a line */
    const json_t *row;
    size_t i;

    heading(&table);
    json_array_foreach (rows, i, row)
        if (strcmp(row_text(row, "suite"), suite) == 0 &&
            strcmp(row_text(row, "device"), device) == 0)
            add_row(&table, row);
    fprintf(out, markdown ? "\n### %s, %s\n\n" : "\n%s, %s\n", device, suite);
    if (markdown)
        markdown_table(&table, out);
    else
        table_print(&table, out);
    table_destroy(&table);
    print_reasons(rows, device, suite, out);
}

static void print_machine(const json_t *document, bool markdown, FILE *out)
{
    const json_t *machine = json_object_get(document, "machine");
    const json_t *pytorch = json_object_get(document, "pytorch"), *device;
    const char *key;
    json_t *value;
    size_t i;

    fprintf(out, "%sTandem %s, %s; %s, %.0f processors, %s\n",
            markdown ? "## " : "", row_text(document, "version"),
            row_text(document, "date"), row_text(machine, "processor"),
            row_number(machine, "cpus"), row_text(machine, "system"));
    if (pytorch != NULL)
        fprintf(out, "%sPyTorch %s, %s\n", markdown ? "\n" : "",
                row_text(pytorch, "version"), row_text(pytorch, "device"));
    json_object_foreach (json_object_get(document, "open_options"), key, value)
        fprintf(out, "%sopened with %s=%s\n", markdown ? "\n" : "", key,
                json_string_value(value));
    json_array_foreach (json_object_get(document, "devices"), i, device)
        fprintf(out,
                "%s%s: %s%s%s%s%s, scale %s, %.0f rows too large for it, "
                "%.1f s\n",
                markdown ? "\n" : "", row_text(device, "device"),
                row_text(device, "name"),
                row_text(device, "platform")[0] == '\0' ? "" : "; ",
                row_text(device, "platform"),
                row_text(device, "driver")[0] == '\0' ? "" : " ",
                row_text(device, "driver"), row_text(device, "scale"),
                row_number(device, "skipped_rows"),
                row_number(device, "seconds"));
    fprintf(out,
            "%sspeed: above 1, Tandem is faster; +-: half of what lies "
            "between the quartiles.\n",
            markdown ? "\n" : "");
}

void tables_print(const json_t *document, bool markdown, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *row;
    const char *device = "", *suite = "";
    size_t i;

    print_machine(document, markdown, out);
    json_array_foreach (rows, i, row) {
        if (strcmp(row_text(row, "suite"), suite) == 0 &&
            strcmp(row_text(row, "device"), device) == 0)
            continue;
        suite = row_text(row, "suite");
        device = row_text(row, "device");
        print_suite(rows, device, suite, markdown, out);
    }
}
