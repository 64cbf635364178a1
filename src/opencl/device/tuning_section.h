/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the plugin's section of a tuning profile.  The section is JSON text: an
 * object whose values are strings.  May be called from any thread. */
#ifndef TANDEM_OPENCL_DEVICE_TUNING_SECTION_H
#define TANDEM_OPENCL_DEVICE_TUNING_SECTION_H

#include <stdbool.h>
#include <stddef.h>

/* Maximum number of key-value pairs.  Larger sections are rejected. */
#define MAX_TUNING_PAIRS 4096u

/* Callback for one key-value pair.  Returns false if the value is invalid. */
typedef bool (*tuning_section_fn)(void *user, const char *key,
                                  const char *value);

/* Calls `parse` for each key-value pair. Returns false if the JSON text is not
 * an object of strings, or if `parse` rejects a value. In both cases, out_error
 * describes the problem; for rejected values it describes the first one. */
bool tuning_section_read(const char *text, tuning_section_fn parse, void *user,
                         char *out_error, size_t error_bytes);

#endif
