/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's own section of a profile: JSON text, an object of strings.  Any
 * thread. */
#ifndef TANDEM_OPENCL_DEVICE_TUNING_SECTION_H
#define TANDEM_OPENCL_DEVICE_TUNING_SECTION_H

#include <stdbool.h>
#include <stddef.h>

/* More pairs are not read. */
#define SECTION_PAIRS 4096u

/* Takes one pair; false where value is not what it should be. */
typedef bool (*section_fn)(void *user, const char *key, const char *value);

/* Calls take for each pair.  False, with what is wrong, where the text is no
 * object of strings (then nothing was taken), or where take did not like a
 * value, the first of which is named (the others were taken). */
bool section_read(const char *text, section_fn take, void *user,
                  char *out_wrong, size_t wrong_bytes);

#endif
