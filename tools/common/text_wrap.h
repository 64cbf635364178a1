/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that fits the terminal.  Widths are columns: one a character of UTF-8,
 * of which none is taken apart.  Any thread.
 */
#ifndef TOOLS_WRAP_H
#define TOOLS_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* The columns that there are: COLUMNS, where that is a number of 20 or more;
 * else the terminal's; 80 where the stream is none. */
size_t output_columns(FILE *out);

/* The columns that text takes. */
size_t text_columns(const char *text);

/* Prints text from column start on, breaking lines at blanks so that they have
 * columns at most; lines after the first begin at column indent.  What has no
 * blank, as a path, stays whole.  Ends with a newline. */
void text_wrap(FILE *out, const char *text, size_t start, size_t indent,
               size_t columns);

#endif
