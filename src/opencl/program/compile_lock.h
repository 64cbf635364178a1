/* SPDX-License-Identifier: Apache-2.0 */
/* The lock by which one process at a time compiles with PoCL.  Any thread. */
#ifndef TANDEM_OPENCL_PROGRAM_COMPILE_LOCK_H
#define TANDEM_OPENCL_PROGRAM_COMPILE_LOCK_H

#include <stdbool.h>

struct tandem_device;

/* Locks the cache directory if the driver has QUIRK_BINARY_RACE.  Blocks for at
 * most cache.compile_lock_timeout_ms.  Returns -1 if no lock is needed or if
 * the lock was not acquired.  Sets *out_waited if another process held the lock
 * and may have stored programs in the cache. */
int compile_lock_acquire(struct tandem_device *device, bool *out_waited);
/* Does nothing if `lock` is -1. */
void compile_lock_release(int lock);
/* Returns true if the driver may be asked for a program's binary while the
 * caller holds `lock`, which may be -1. */
bool compile_lock_permits_binary(const struct tandem_device *device, int lock);

#endif
