/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks text into lines that fit the terminal.  Each UTF-8 character counts as
 * one column.
 */
#ifndef TOOLS_TEXT_WRAP_H
#define TOOLS_TEXT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Returns the width of the output in columns: the environment variable COLUMNS
 * if it is at least 20, else the terminal's width, else 80. */
size_t output_columns(FILE *out);

/* Returns the width of the text in columns. */
size_t text_columns(const char *text);

/* Prints the text and a newline.  The cursor is at column `start`.  Breaks
 * lines at blanks so that they have at most `columns` columns; a longer word is
 * not broken.  Lines after the first begin at column `indent`. */
void text_wrap(FILE *out, const char *text, size_t start, size_t indent,
               size_t columns);

#endif
