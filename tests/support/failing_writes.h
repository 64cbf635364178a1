/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a program whose write fails because of a size limit, or that is
 * killed while it writes. The test program replaces write(). Call it from one
 * thread.
 */
#ifndef TANDEM_TESTS_FAILING_WRITES_H
#define TANDEM_TESTS_FAILING_WRITES_H

#include <stddef.h>

/*
 * Limits the size of files with RLIMIT_FSIZE, whose signal ends the process by
 * default; 0 removes the limit. Do not use assertions under the limit, because
 * libcheck writes a file.
 */
void writes_limit(size_t bytes);

/* Lets the next write() write half of its data and kill the process. */
void writes_kill(void);

/* Counts since the process started. Replaces fsync() and renameat(), too. */
struct writes_seen {
    unsigned files; /* Files that were renamed with renameat. */
    /* Renamed files without an fsync since their last write. */
    unsigned unsynced;
    unsigned directories; /* Directories that were synced. */
};
struct writes_seen writes_seen(void);

#endif
