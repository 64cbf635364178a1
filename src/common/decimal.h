/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for unsigned decimal numbers in options and variables. Callable from
 * any thread. */
#ifndef TANDEM_COMMON_DECIMAL_H
#define TANDEM_COMMON_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a text of digits only; returns false for any other text. A number
 * that does not fit becomes UINT64_MAX. */
bool decimal_read(const char *text, uint64_t *out);

#endif
