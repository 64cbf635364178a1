/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of text with aligned columns, and figures with their units.  One
 * table is used by one thread.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS 12

/* Zero-initialise, table_destroy at the end. */
struct table {
    size_t columns;    /* of the widest row */
    size_t rows, room; /* rows begun */
    char *(*cells)[TABLE_COLUMNS];
    size_t column; /* the next cell of the last row */
};

/* Begins a row; the first is the heading. */
void table_row(struct table *table);
/* Appends a cell to the last row. */
void table_cell(struct table *table, const char *format, ...)
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
