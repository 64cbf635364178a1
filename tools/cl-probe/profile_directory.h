/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where profiles are written, tried before anything is measured for them.
 * Parent process only; asks no driver.
 */
#ifndef CL_PROBE_PLACE_H
#define CL_PROBE_PLACE_H

#include <stdbool.h>

/* Makes the directory where it is missing and writes a nameless file there.
 * false: no profile can be kept, as out_why, of at least 1024 bytes, says with
 * the directory's name and what would do. */
bool profile_directory_check(char *out_why, unsigned why_bytes);

#endif
