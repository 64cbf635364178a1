/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as people write them into options and variables.  Any
 * thread. */
#ifndef TANDEM_COMMON_DECIMAL_H
#define TANDEM_COMMON_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* Digits and nothing else; what is too large becomes the largest. */
bool decimal_read(const char *text, uint64_t *out);

#endif
