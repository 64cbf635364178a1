/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that profiles and compiled programs can be written, and says what to
 * do if they cannot.
 * Parent process only; loads no driver.
 */
#ifndef CL_PROBE_PROFILE_DIRECTORY_H
#define CL_PROBE_PROFILE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

/* Size of the buffer for the reason of directory_is_writable. */
#define DIRECTORY_WHY_BYTES 512u
/* Size of the buffer for an advice. */
#define DIRECTORY_ADVICE_BYTES 512u

/* Writes the path of the directory that gets new profiles.  Returns false if
 * the environment names none, or the path is too long. */
bool profile_directory_find(char *out_path, size_t bytes);

/* Creates the directory if it is missing, and writes a temporary file without a
 * name there.  On failure returns false and writes the reason to out_why. */
bool directory_is_writable(const char *path, char *out_why);

/* Writes what to do about a directory for which directory_is_writable gave the
 * reason `why`, unless the reason itself says it.  `variable` is the
 * environment variable that selects another directory. */
void directory_advise(const char *why, const char *variable,
                      char out_advice[DIRECTORY_ADVICE_BYTES]);

/* Finds and checks the directory of the profiles.  On failure returns false;
 * out_why, of at least 1024 bytes, then names the directory and says what to
 * do. */
bool profile_directory_check(char *out_why, unsigned why_bytes);

#endif
