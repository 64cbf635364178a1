/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and directories that the library may trust, and where its own lie.
 * Any thread; sets no tandem_last_error.
 */
#ifndef TANDEM_HOST_PATH_H
#define TANDEM_HOST_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define PATH_BYTES 4096u

/* secure_getenv; an empty value counts as none. */
const char *path_environment(const char *name);

/* Whether path is a regular file (no link) of root's or of the effective
 * user's that others may not write, in directories that others may not write
 * (sticky ones excepted).  out_why: the reason where it is not. */
bool path_trusted(const char *path, char *out_why, size_t why_bytes);

/* $XDG_CACHE_HOME/tandem or ~/.cache/tandem; false where neither is known. */
bool path_cache(char *out_path, size_t bytes);

/* Makes a directory and those above it, mode 0700; true where it exists, and
 * can be written, afterwards. */
bool path_make(const char *path);

#endif
