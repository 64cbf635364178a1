/* SPDX-License-Identifier: Apache-2.0 */
/* Exclusive directory locks between processes and between threads. May be
 * called from any thread. */
#ifndef TANDEM_COMMON_DIRECTORY_LOCK_H
#define TANDEM_COMMON_DIRECTORY_LOCK_H

#include <stdint.h>

/* Locks an open directory and returns a descriptor for lock_release. Waits at
 * most most_ms milliseconds while another process or thread holds the lock.
 * Returns -1 on timeout, or if the file system does not support locks. */
int lock_take(int directory, uint32_t most_ms);
/* Unlocks the directory and closes `lock`. Does nothing if lock is -1. */
void lock_release(int lock);

#endif
