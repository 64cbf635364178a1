/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that fail: what a limit of the system, or somebody who ends the
 * process, does to a program that writes a file.  This program's write() is
 * our own for it.  One thread.
 */
#ifndef TANDEM_TESTS_COMMON_WRITES_H
#define TANDEM_TESTS_COMMON_WRITES_H

#include <stddef.h>

/* Files may have this many bytes; RLIMIT_FSIZE, of which a signal tells that
 * ends the process.  0: no limit.  (Under it no assertion either: libcheck
 * writes a file.) */
void writes_limit(size_t bytes);

/* The next write() writes half of what it was given, and the process is
 * killed. */
void writes_kill(void);

/* What was done to files since the process began.  fsync() and renameat() are
 * ours, too. */
struct writes_seen {
    unsigned files;       /* that got another name by renameat */
    unsigned unsynced;    /* of these: without fsync since their last write */
    unsigned directories; /* on which fsync was called */
};
struct writes_seen writes_seen(void);

#endif
