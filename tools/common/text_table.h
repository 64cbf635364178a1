/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text with aligned columns, and figures with their units.  One
 * table is used by one thread.
 *
 * A table that is too wide for the terminal is folded: each row goes on in
 * further lines, with the same columns in each row's second line, and so on.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS 12

struct table_row {
    char *cells[TABLE_COLUMNS];
    bool text; /* the last cell is one of table_text */
};

/* Zero-initialise, but for fold; table_destroy at the end. */
struct table {
    size_t columns;    /* of the widest row */
    size_t rows, room; /* rows begun */
    struct table_row *row;
    size_t column; /* the next cell of the last row */
    size_t fold;   /* where a row that is too wide goes on in another line, if
                      that is enough; 0: where it has to */
};

/* Begins a row; the first is the heading. */
void table_row(struct table *table);
/* Appends a cell to the last row. */
void table_cell(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the row with a sentence: it takes the room of all columns that are left,
 * and as many lines as it needs. */
void table_text(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first column is flush left, the others flush right. */
void table_print(const struct table *table, FILE *out);
void table_destroy(struct table *table);

/* Into room for TEXT_BYTES bytes, which they return. */
#define TEXT_BYTES 32
char *text_ns(char *out, double ns);        /* "12.3 us" */
char *text_bytes(char *out, double bytes);  /* "1.5 GiB" */
char *text_rate(char *out, double bytes, double ns); /* "12.3 GB/s" */

#endif
