/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that profiles can be written, before anything is measured.
 * Parent process only; loads no driver.
 */
#ifndef CL_PROBE_PROFILE_DIRECTORY_H
#define CL_PROBE_PROFILE_DIRECTORY_H

#include <stdbool.h>

/* Creates the profile directory if it is missing, and writes a temporary file
 * without a name there.  On failure returns false; out_why, of at least 1024
 * bytes, then names the directory and says what to do. */
bool profile_directory_check(char *out_why, unsigned why_bytes);

#endif
