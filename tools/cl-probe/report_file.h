/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the file of a report.  Parent process only. */
#ifndef CL_PROBE_REPORT_FILE_H
#define CL_PROBE_REPORT_FILE_H

#include <jansson.h>
#include <stdbool.h>

/* Returns true if a file can be written to this path.  Otherwise prints a
 * message. */
bool report_file_check(const char *path);

/* Writes the value to a temporary file next to `path` and renames it, so that
 * `path` never names half a report.  The file has the permissions that the
 * umask allows.  On failure removes the temporary file, prints a message and
 * returns false. */
bool report_file_write(const char *path, const json_t *report);

#endif
