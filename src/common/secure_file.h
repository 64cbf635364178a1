/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that may be trusted: those that nobody but root and the effective user
 * can change, or put others in the place of.  What is judged is what was
 * opened, never a name that is opened afterwards.  Any thread; sets no
 * tandem_last_error.  docs/trust.md has the reasons.
 *
 * Where a function fails, out_why says why, and is empty where there simply is
 * no such file or directory.
 */
#ifndef TANDEM_COMMON_SECURE_FILE_H
#define TANDEM_COMMON_SECURE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Enough for any out_why. */
#define TRUST_WHY_BYTES 512u

enum trust_use {
    TRUST_READ,    /* may be a sticky directory, as /tmp is */
    /* Made where it is missing, of mode 0700 whatever the umask; not sticky. */
    TRUST_WRITE,
    TRUST_PUBLISH, /* likewise, but made for others to read (mode 0755) */
};

/* Opens a directory by its absolute path; the descriptor is the caller's, -1
 * where a part of the path, links included, cannot be trusted. */
int secure_directory_open(const char *path, enum trust_use use, char *out_why,
                    size_t why_bytes);

/* Opens a regular file of a directory that secure_directory_open opened, for
 * reading; name is no path.  -1 where it cannot be trusted. */
int trust_file(int directory, const char *name, char *out_why,
               size_t why_bytes);

/* All bytes of such a file and a zero behind them, to be freed; NULL where it
 * cannot be trusted, or has more than most bytes. */
char *trust_read(int directory, const char *name, size_t most,
                 size_t *out_bytes, char *out_why, size_t why_bytes);

/* Bytes that follow one another in a file. */
struct trust_part {
    const void *data;
    size_t bytes;
};

enum trust_replacing {
    TRUST_DURABLE = 1, /* on the disk, too, before it returns */
    TRUST_PUBLIC = 2   /* of mode 0644, not 0600; the umask has no say */
};

/* Puts a file in the place of name, whole or not at all; how: bits of enum
 * trust_replacing.  false: the old one stays; a limit on the size of files is
 * a reason like any other, and sends no signal.  Removes what earlier writers
 * left that were killed. */
bool file_replace_atomically(int directory, const char *name,
                   const struct trust_part *parts, size_t count, unsigned how,
                   char *out_why, size_t why_bytes);

#endif
