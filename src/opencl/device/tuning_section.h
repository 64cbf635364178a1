/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the plugin's section of a profile: JSON text that holds one object
 * whose values are strings.  Any thread. */
#ifndef TANDEM_OPENCL_DEVICE_TUNING_SECTION_H
#define TANDEM_OPENCL_DEVICE_TUNING_SECTION_H

#include <stdbool.h>
#include <stddef.h>

/* Maximum number of pairs.  A longer section is rejected as a whole. */
#define MAX_TUNING_PAIRS 4096u

/* Receives one pair.  Returns false if the value is invalid. */
typedef bool (*tuning_section_fn)(void *user, const char *key,
                                  const char *value);

/* Calls `parse` for each pair.  Returns false and describes the problem in
 * out_error if the text is not an object of strings, before any call, or if
 * `parse` rejects values; out_error names the first of them. */
bool tuning_section_read(const char *text, tuning_section_fn parse, void *user,
                         char *out_error, size_t error_bytes);

#endif
