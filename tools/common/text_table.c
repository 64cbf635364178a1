/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text; see text_table.h. */
#include <config.h>

#include "text_table.h"

#include "text_wrap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 2u /* of all lines */
#define GAP 2u    /* between columns */
/* Columns that a text of table_text needs next to the other cells. */
#define TEXT_LEAST 30u
#define RECORD_INDENT 6u /* of the lines "name  value" */

void table_row(struct table *table)
{
    size_t room = table->room == 0 ? 16 : 2 * table->room;
    void *rows;

    if (table->rows == table->room) {
        rows = realloc(table->row, room * sizeof *table->row);
        if (rows == NULL)
            abort();
        table->row = rows;
        table->room = room;
    }
    memset(&table->row[table->rows++], 0, sizeof *table->row);
    table->column = 0;
}

/* Appends a cell, unless the row is full or has ended. */
__attribute__((format(printf, 3, 0))) static void
cell_add(struct table *table, bool is_text, const char *format,
         va_list arguments)
{
    struct table_row *row = &table->row[table->rows - 1];

    if (table->column == TABLE_COLUMNS || row->text)
        return;
    if (vasprintf(&row->cells[table->column++], format, arguments) < 0)
        abort();
    row->text = is_text;
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    cell_add(table, false, format, arguments);
    va_end(arguments);
}

void table_heading(struct table *table, const char *const *cells)
{
    table_row(table);
    for (; *cells != NULL; cells++)
        table_cell(table, "%s", *cells);
}

void table_text(struct table *table, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    cell_add(table, true, format, arguments);
    va_end(arguments);
}

/* ---- printing ---- */

/* Returns the number of the row's cells, without the text of table_text. */
static size_t row_cells(const struct table_row *row)
{
    size_t count = TABLE_COLUMNS;

    while (count > 0 && row->cells[count - 1] == NULL)
        count--;
    return row->text ? count - 1 : count;
}

/* Finds the width of each column.  Returns true if all rows fit the terminal.
 */
static bool widths_find(const struct table *table, size_t terminal,
                        size_t widths[TABLE_COLUMNS])
{
    bool fits = true;

    memset(widths, 0, TABLE_COLUMNS * sizeof *widths);
    for (size_t i = 0; i < table->rows; i++)
        for (size_t column = 0; column < row_cells(&table->row[i]); column++) {
            const size_t width = text_columns(table->row[i].cells[column]);

            if (width > widths[column])
                widths[column] = width;
        }
    for (size_t i = 0; i < table->rows; i++) {
        size_t total = INDENT + (table->row[i].text ? TEXT_LEAST : 0);

        for (size_t column = 0; column < row_cells(&table->row[i]); column++)
            total += widths[column] + (column > 0 ? GAP : 0);
        fits &= total <= terminal;
    }
    return fits;
}

/* Prints the text, left-aligned or right-aligned in this width. */
static void cell_print(const char *text, size_t width, bool left, FILE *out)
{
    const int pad = (int)(width - text_columns(text));

    fprintf(out, "%*s%s%*s", left ? 0 : pad, "", text, left ? pad : 0, "");
}

static void row_print(const struct table_row *row, const size_t *widths,
                      size_t terminal, FILE *out)
{
    const size_t cells = row_cells(row);
    size_t start = 0;

    for (size_t column = 0; column < cells; column++) {
        const size_t gap = column == 0 ? INDENT : GAP;

        fprintf(out, "%*s", (int)gap, "");
        cell_print(row->cells[column], widths[column], column == 0, out);
        start += gap + widths[column];
    }
    if (row->text)
        fprintf(out, "%*s", (int)GAP, "");
    text_wrap(out, row->text ? row->cells[cells] : "", start + GAP, start + GAP,
              terminal);
}

/* Prints the row as its first cell, and below it a line "name  value" for each
 * other cell that is not empty.  The names are the cells of `heading`. */
static void record_print(const struct table_row *row,
                         const struct table_row *heading, size_t terminal,
                         FILE *out)
{
    const size_t cells = row_cells(row);
    size_t width = 0;

    for (size_t column = 1; column < row_cells(heading); column++) {
        const size_t columns = text_columns(heading->cells[column]);

        width = columns > width ? columns : width;
    }
    if (cells > 0)
        fprintf(out, "%*s%s\n", (int)INDENT, "", row->cells[0]);
    for (size_t column = 1; column < cells; column++) {
        if (row->cells[column][0] == '\0')
            continue;
        fprintf(out, "%*s", (int)RECORD_INDENT, "");
        cell_print(heading->cells[column], width, true, out);
        fprintf(out, "%*s%s\n", (int)GAP, "", row->cells[column]);
    }
    if (row->text) {
        fprintf(out, "%*s", (int)RECORD_INDENT, "");
        text_wrap(out, row->cells[cells], RECORD_INDENT, RECORD_INDENT,
                  terminal);
    }
}

void table_print(const struct table *table, FILE *out)
{
    size_t widths[TABLE_COLUMNS];
    const size_t terminal = output_columns(out);
    const bool fits = widths_find(table, terminal, widths);

    for (size_t i = 0; i < table->rows; i++) {
        const struct table_row *row = &table->row[i];

        if (fits)
            row_print(row, widths, terminal, out);
        else if (i > 0 || row->text)
            record_print(row, &table->row[0], terminal, out);
    }
}

void table_destroy(struct table *table)
{
    for (size_t i = 0; i < table->rows; i++)
        for (size_t column = 0; column < TABLE_COLUMNS; column++)
            free(table->row[i].cells[column]);
    free(table->row);
    memset(table, 0, sizeof *table);
}

char *text_ns(char *out, double ns)
{
    if (ns < 1e3)
        snprintf(out, TEXT_BYTES, "%.3g ns", ns);
    else if (ns < 1e6)
        snprintf(out, TEXT_BYTES, "%.4g us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(out, TEXT_BYTES, "%.4g ms", ns / 1e6);
    else
        snprintf(out, TEXT_BYTES, "%.4g s", ns / 1e9);
    return out;
}

char *text_bytes(char *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, TEXT_BYTES, "%.4g %s", bytes, units[unit]);
    return out;
}

char *text_rate(char *out, double bytes, double ns)
{
    if (ns <= 0)
        snprintf(out, TEXT_BYTES, "-");
    else
        snprintf(out, TEXT_BYTES, "%.3g GB/s", bytes / ns);
    return out;
}
