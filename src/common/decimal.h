/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers in options, environment variables and tuning profiles,
 * independent of the locale. May be called from any thread. */
#ifndef TANDEM_COMMON_DECIMAL_H
#define TANDEM_COMMON_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum double that the functions below parse or write. */
#define DECIMAL_MAX 1e15

/* Parses a number that consists of digits only. A number that is too large
 * becomes UINT64_MAX. Returns false for any other text. */
bool decimal_read(const char *text, uint64_t *out);
/* Parses digits with at most one decimal point, and moves *text past the number
 * and the spaces around it. Returns false and leaves *text unchanged if there
 * are no digits or the number exceeds DECIMAL_MAX. */
bool decimal_parse_double(const char **text, double *out);
/* Appends `value` to the string in text[bytes], with at most three digits after
 * the point. Returns false and appends nothing if text is too small or if
 * `value` is not between 0 and DECIMAL_MAX. */
bool decimal_append_double(char *text, size_t bytes, double value);

#endif
