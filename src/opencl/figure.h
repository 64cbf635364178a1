/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as they stand in a profile: digits, and a point whatever the locale
 * is.  Any thread. */
#ifndef TANDEM_OPENCL_FIGURE_H
#define TANDEM_OPENCL_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

/* The largest that is read or written. */
#define FIGURE_MAX 1e15

/* Reads digits, with a point among or before them or none, and moves *text
 * past them and the spaces around them.  False where there are none, or too
 * many. */
bool decimal_parse_double(const char **text, double *out);
/* Appends value, from 0 to FIGURE_MAX, with as many as three digits after the
 * point; false, and nothing appended, where it does not fit. */
bool figure_write(char *text, size_t bytes, double value);

#endif
