/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory for the files of a test program. Failures fail the test. Call
 * the functions from one thread.
 */
#ifndef TANDEM_TESTS_SCRATCH_DIRECTORY_H
#define TANDEM_TESTS_SCRATCH_DIRECTORY_H

#include <stdint.h>
#include <sys/types.h>

extern char scratch[256]; /* The path of the directory. */

/* Creates the directory in TMPDIR. */
void scratch_create(void);
void scratch_remove(void);
/* Returns a path in the directory, in one of a few static buffers. */
const char *scratch_path(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void file_write(const char *path, const char *text);
/* Removes a directory with its content. */
void directory_remove(const char *path);
/* Returns the number of entries. */
uint32_t directory_count(const char *path);
/* Fails the test unless the file or directory has these permissions. */
void expect_mode(const char *path, mode_t mode);

#endif
