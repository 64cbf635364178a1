/* SPDX-License-Identifier: Apache-2.0 */
/* The lock that lets one process at a time build programs with PoCL.  Any
 * thread. */
#ifndef TANDEM_OPENCL_PROGRAM_COMPILE_LOCK_H
#define TANDEM_OPENCL_PROGRAM_COMPILE_LOCK_H

#include <stdbool.h>

struct tandem_device;

/* Locks the directory of the program cache if the driver has QUIRK_BINARY_RACE.
 * Blocks for at most cache.compile_lock_timeout_ms.  Returns -1 if no lock is
 * needed or if it was not acquired.  Sets *out_waited if another process held
 * the lock, because that process may have stored programs in the cache. */
int compile_lock_acquire(struct tandem_device *device, bool *out_waited);
/* Releases the compile lock.  Does nothing if `lock` is -1. */
void compile_lock_release(int lock);
/* Returns true if the driver may be asked for the binary of a program.  `lock`
 * is the caller's compile lock, or -1. */
bool compile_lock_permits_binary(const struct tandem_device *device, int lock);

#endif
