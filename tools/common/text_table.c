/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text; see text_table.h.
 */
#include <config.h>

#include "text_table.h"

#include "text_wrap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 2u /* of all lines */
#define GAP 2u    /* between columns */
#define FOLDED 4u /* indent of a row's second and later lines */
/* A text of table_text gets its own line if fewer columns remain. */
#define TEXT_LEAST 30u

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

__attribute__((format(printf, 2, 0))) static void
cell_add(struct table *table, const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0)
        abort();
    table->row[table->rows - 1].cells[table->column++] = text;
    if (table->column > table->columns)
        table->columns = table->column;
}

static bool has_room(const struct table *table)
{
    return table->rows > 0 && table->column < TABLE_COLUMNS &&
           !table->row[table->rows - 1].text;
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list arguments;

    if (!has_room(table))
        return;
    va_start(arguments, format);
    cell_add(table, format, arguments);
    va_end(arguments);
}

void table_text(struct table *table, const char *format, ...)
{
    va_list arguments;

    if (!has_room(table))
        return;
    va_start(arguments, format);
    cell_add(table, format, arguments);
    va_end(arguments);
    table->row[table->rows - 1].text = true;
}

/* ---- printing ---- */

/* Position of each column on the terminal. */
struct table_layout {
    size_t terminal; /* width in columns */
    size_t widths[TABLE_COLUMNS];
    size_t line[TABLE_COLUMNS]; /* line of each row that has the column */
};

/* Returns the number of the row's cells, without the text of table_text. */
static size_t row_cells(const struct table_row *row)
{
    size_t count = TABLE_COLUMNS;

    while (count > 0 && row->cells[count - 1] == NULL)
        count--;
    return row->text ? count - 1 : count;
}

static void widths_find(const struct table *table, struct table_layout *layout)
{
    for (size_t i = 0; i < table->rows; i++) {
        const struct table_row *row = &table->row[i];
        const size_t cells = row_cells(row);

        for (size_t column = 0; column < cells; column++) {
            const size_t width = text_columns(row->cells[column]);

            /* The only cell of a row may be wider than its column. */
            if (width > layout->widths[column] &&
                (column > 0 || cells > 1 || row->text))
                layout->widths[column] = width;
        }
    }
}

/* Assigns columns to lines.  Breaks before a column that does not fit and, if
 * `fold` is not 0, before that column.  Returns the number of lines per row. */
static size_t lines_find(const struct table *table, size_t fold,
                         struct table_layout *layout)
{
    size_t line = 0, at = INDENT;

    for (size_t column = 0; column < table->columns; column++) {
        const size_t width = layout->widths[column];
        const bool first = column == 0 || layout->line[column - 1] != line;

        if (column > 0 && ((fold > 0 && column == fold) ||
                           (at + GAP + width > layout->terminal))) {
            line++;
            at = FOLDED + width;
        } else {
            at += (first ? 0 : GAP) + width;
        }
        layout->line[column] = line;
    }
    return line + 1;
}

static void layout_find(const struct table *table, FILE *out,
                        struct table_layout *layout)
{
    memset(layout, 0, sizeof *layout);
    layout->terminal = output_columns(out);
    widths_find(table, layout);
    if (lines_find(table, 0, layout) > 1 && table->fold > 0)
        lines_find(table, table->fold, layout);
}

static void blanks_print(FILE *out, size_t count)
{
    fprintf(out, "%*s", (int)count, "");
}

/* Returns the length of the longest word in bytes. */
static size_t text_longest(const char *text)
{
    size_t longest = 0;

    while (*text != '\0') {
        const size_t bytes = strcspn(text, " ");

        longest = bytes > longest ? bytes : longest;
        text += bytes + strspn(text + bytes, " ");
    }
    return longest;
}

/* Prints a text at column `start`, or in its own line if it does not fit there.
 * The current line is printed up to column `at`. */
static void text_print(const char *text, size_t at, size_t start,
                       size_t terminal, FILE *out)
{
    if (start + text_columns(text) > terminal &&
        (start + TEXT_LEAST > terminal ||
         start + text_longest(text) > terminal)) {
        start = FOLDED + GAP;
        fputc('\n', out);
        blanks_print(out, start);
    } else {
        blanks_print(out, start - at);
    }
    text_wrap(out, text, start, start, terminal);
}

/* Prints the line of a row that begins with `column`, and returns the first
 * column of the next line.  Skips second and later lines that are empty. */
static size_t line_print(const struct table_row *row, size_t column,
                         const struct table_layout *layout, FILE *out)
{
    const size_t cells = row_cells(row), line = layout->line[column];
    size_t at = line == 0 ? INDENT : FOLDED, end = column, start = at;
    size_t last = column; /* end of the non-empty cells */

    for (; end < cells && layout->line[end] == line; end++)
        if (row->cells[end][0] != '\0')
            last = end + 1;
    if (last == column && (line > 0 || end < cells))
        return end;
    if (row->text && end == cells)
        last = end;
    blanks_print(out, at);
    for (size_t i = column; i < last; i++) {
        const size_t width = text_columns(row->cells[i]);
        const size_t pad =
            layout->widths[i] > width ? layout->widths[i] - width : 0;

        /* The first cell of a line is left-aligned. */
        if (i > column)
            blanks_print(out, GAP + pad);
        fputs(row->cells[i], out);
        if (i == column && i + 1 < last)
            blanks_print(out, pad);
        at += (i > column ? GAP : 0) + width;
        start = at + pad + GAP;
        at += i + 1 < last ? pad : 0;
    }
    if (row->text && end == cells)
        text_print(row->cells[cells], at, start, layout->terminal, out);
    else
        fputc('\n', out);
    return end;
}

void table_print(const struct table *table, FILE *out)
{
    struct table_layout layout;

    layout_find(table, out, &layout);
    for (size_t i = 0; i < table->rows; i++) {
        const struct table_row *row = &table->row[i];
        const size_t cells = row_cells(row);
        size_t column = 0;

        do
            column = line_print(row, column, &layout, out);
        while (column < cells);
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
