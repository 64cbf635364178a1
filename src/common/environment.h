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

/* Works like environment_get, but also returns NULL if the variable has a value
 * that is not allowed. */
const char *environment_get_valid(const char *name);

/* Receives a message without a newline. */
typedef void (*environment_report_fn)(void *user, const char *message);

/* Calls `report` for each variable of Tandem that environment_get_valid ignores
 * because of its value.  The lists of names and directories in TANDEM_DEVICE,
 * TANDEM_BACKENDS and TANDEM_PLUGIN_PATH are checked where they are used. */
void environment_check(environment_report_fn report, void *user);

/* Returns true if the variable is set to an empty value. */
bool environment_is_empty(const char *name);

/* Writes the path of the user's cache directory, $XDG_CACHE_HOME/tandem or
 * ~/.cache/tandem. Returns false if neither XDG_CACHE_HOME nor HOME is an
 * absolute path, or if out_path is too small. */
bool environment_cache(char *out_path, size_t bytes);

#endif
