/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment says, where it may say anything: a program with more
 * rights than its user's reads none of it.  Any thread.
 */
#ifndef TANDEM_COMMON_ENVIRONMENT_H
#define TANDEM_COMMON_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* secure_getenv; an empty value counts as none. */
const char *environment_get(const char *name);

/* Returns true if the variable is set to an empty value. */
bool environment_is_empty(const char *name);

/* The user's cache directory, $XDG_CACHE_HOME/tandem or ~/.cache/tandem; false
 * where neither is known. */
bool environment_cache(char *out_path, size_t bytes);

#endif
