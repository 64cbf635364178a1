/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text with aligned columns, and numbers with units.
 *
 * If a table is too wide for the terminal, each row takes several lines: its
 * first cell, then "name  value" for each other cell.
 */
#ifndef TOOLS_TEXT_TABLE_H
#define TOOLS_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS 12

struct table_row {
    char *cells[TABLE_COLUMNS];
    bool text; /* the last cell comes from table_text */
};

/* The caller sets all fields to 0, and calls table_destroy at the end. */
struct table {
    size_t rows, room; /* rows in use, and allocated */
    struct table_row *row;
    size_t column; /* of the next cell in the last row */
};

/* Begins a row.  The first row is the heading, if it has no text. */
void table_row(struct table *table);
/* Begins a row with these cells; NULL ends the list. */
void table_heading(struct table *table, const char *const *cells);
/* Appends a cell to the last row. */
void table_cell(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the row with a text that takes the width of all remaining columns, and
 * as many lines as it needs. */
void table_text(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the table.  The first column is left-aligned, the others
 * right-aligned. */
void table_print(const struct table *table, FILE *out);
void table_destroy(struct table *table);

/* Write a number with its unit to `out`, which has TEXT_BYTES bytes; return
 * `out`. */
#define TEXT_BYTES 32
char *text_ns(char *out, double ns);                 /* "12.3 us" */
char *text_bytes(char *out, double bytes);           /* "1.5 GiB" */
char *text_rate(char *out, double bytes, double ns); /* "12.3 GB/s" */

#endif
