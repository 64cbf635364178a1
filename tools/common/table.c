/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text; see table.h.
 */
#include <config.h>

#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_row(struct table *table)
{
    size_t room = table->room == 0 ? 16 : 2 * table->room;
    void *cells;

    if (table->rows == table->room) {
        cells = realloc(table->cells, room * sizeof *table->cells);
        if (cells == NULL)
            abort();
        table->cells = cells;
        table->room = room;
    }
    memset(table->cells[table->rows++], 0, sizeof *table->cells);
    table->column = 0;
}

void table_cell(struct table *table, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    if (table->rows == 0 || table->column == TABLE_COLUMNS)
        return;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    table->cells[table->rows - 1][table->column++] = text;
    if (table->column > table->columns)
        table->columns = table->column;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = 0, length;

    for (size_t row = 0; row < table->rows; row++) {
        const char *text = table->cells[row][column];

        length = text == NULL ? 0 : strlen(text);
        width = length > width ? length : width;
    }
    return width;
}

void table_print(const struct table *table, FILE *out)
{
    int widths[TABLE_COLUMNS] = {0};

    for (size_t column = 0; column < table->columns; column++)
        widths[column] = (int)column_width(table, column);
    for (size_t row = 0; row < table->rows; row++) {
        size_t last = table->columns;

        while (last > 0 && table->cells[row][last - 1] == NULL)
            last--;
        fputs("  ", out);
        for (size_t column = 0; column < last; column++) {
            const char *text = table->cells[row][column];

            text = text == NULL ? "" : text;
            if (column == 0)
                fprintf(out, "%-*s", last == 1 ? 0 : widths[column], text);
            else
                fprintf(out, "  %*s", widths[column], text);
        }
        fputc('\n', out);
    }
}

void table_destroy(struct table *table)
{
    for (size_t row = 0; row < table->rows; row++)
        for (size_t column = 0; column < TABLE_COLUMNS; column++)
            free(table->cells[row][column]);
    free(table->cells);
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
