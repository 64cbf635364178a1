/* SPDX-License-Identifier: Apache-2.0 */
/* The lock prevents crashes in PoCL 3.1.  To return a program's binary, PoCL
 * reads a cache directory that another process may have moved away.  Up to 15
 * of 64 processes that started with empty caches crashed.  Builds can fail as
 * well. */
#include "opencl/program/compile_lock.h"

#include <unistd.h>

#include "common/directory_lock.h"
#include "common/secure_file.h"
#include "opencl/device/device.h"
#include "opencl/device/quirks.h"

int compile_lock_acquire(struct tandem_device *device, bool *out_waited)
{
    char why[SECURE_WHY_BYTES];
    struct program_cache *cache = &device->cache;
    *out_waited = false;
    if ((device->hardware->quirks & QUIRK_BINARY_RACE) == 0 ||
        cache->path == NULL)
        return -1;
    int directory = secure_directory_open(
        cache->path, cache->world_readable ? SECURE_PUBLISH : SECURE_WRITE,
        why);
    if (directory < 0)
        return -1;
    int lock = lock_take(directory, 0);
    if (lock < 0 && !atomic_load(&cache->compile_lock_timed_out)) {
        lock = lock_take(directory, cache->compile_lock_timeout_ms);
        *out_waited = lock >= 0;
    }
    close(directory);
    if (lock < 0 && !atomic_exchange(&cache->compile_lock_timed_out, true))
        device_log(device, TANDEM_LOG_INFO,
                   "%s: programs are compiled but not cached, because the "
                   "compile lock was not acquired in %u ms",
                   cache->path, cache->compile_lock_timeout_ms);
    return lock;
}

void compile_lock_release(int lock)
{
    lock_release(lock);
}

bool compile_lock_permits_binary(const struct tandem_device *device, int lock)
{
    return (device->hardware->quirks & QUIRK_BINARY_RACE) == 0 || lock >= 0;
}
