/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of directories, among processes and the threads of each.  Any thread.
 */
#ifndef TANDEM_COMMON_DIRECTORY_LOCK_H
#define TANDEM_COMMON_DIRECTORY_LOCK_H

#include <stdint.h>

/* Locks the open directory, once nobody else has it locked, for which it waits
 * at most so long; returns a descriptor for lock_release.  -1 where another
 * still has it, or where the directory's file system has no locks. */
int lock_take(int directory, uint32_t most_ms);
/* -1: nothing. */
void lock_release(int lock);

#endif
