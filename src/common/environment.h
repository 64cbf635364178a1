/* SPDX-License-Identifier: Apache-2.0 */
/* Reads environment variables. In a program with more rights than its user
 * (setuid, for example), no variable is read. May be called from any thread. */
#ifndef TANDEM_COMMON_ENVIRONMENT_H
#define TANDEM_COMMON_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the variable's value. Returns NULL if the variable is unset or empty,
 * or if the program has more rights than its user. */
const char *environment_get(const char *name);

/* Returns true if the variable is set to an empty value. */
bool environment_is_empty(const char *name);

/* Writes the path of the user's cache directory, $XDG_CACHE_HOME/tandem or
 * ~/.cache/tandem. Returns false if neither XDG_CACHE_HOME nor HOME is an
 * absolute path, or if out_path is too small. */
bool environment_cache(char *out_path, size_t bytes);

#endif
