/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl/compile_process/compile_pool.h"

#include <sys/socket.h>

#include "common/cpu_count.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/device/quirks.h"

/* A process that compiles holds an OpenCL context, and with it device memory:
 * 518 MiB on an H200 (driver 580).  Networks start builds in groups, so a short
 * limit is enough. */
#define IDLE_LIMIT_NS UINT64_C(1000000000)
/* The default number of processes is at most 6, because drivers create their
 * contexts one after the other (0.1 s each on an H200), and at most one for
 * this number of bytes of device memory. */
#define DEFAULT_PROCESSES 6u
#define MEMORY_BYTES_PER_PROCESS ((uint64_t)4 << 30)

/* One process at a time is no faster than the host's process, so a limit of 1
 * would be useless. */
static uint32_t default_limit(const struct platform_device *hardware)
{
    uint32_t limit = DEFAULT_PROCESSES, other_cpus = cpu_count_available() - 1;
    uint64_t by_memory = hardware->info.memory_bytes / MEMORY_BYTES_PER_PROCESS;
    if ((hardware->quirks & QUIRK_SERIAL_COMPILER) == 0)
        return 0;
    if (limit > other_cpus)
        limit = other_cpus;
    if (limit > by_memory)
        limit = (uint32_t)by_memory;
    return limit > 1 ? limit : 0;
}

void compile_pool_start(struct tandem_device *device, uint64_t limit)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_init(&pool->mutex, NULL);
    if (limit == COMPILE_PROCESSES_DEFAULT)
        pool->limit = default_limit(device->hardware);
    else
        pool->limit = limit < MAX_COMPILE_PROCESSES ? (uint32_t)limit
                                                    : MAX_COMPILE_PROCESSES;
}

void compile_pool_finish(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    /* First tells all of them to end, so that they end at the same time. */
    for (uint32_t i = 0; i < pool->limit; i++)
        if (pool->entries[i].process.pid != 0)
            shutdown(pool->entries[i].process.socket, SHUT_RDWR);
    for (uint32_t i = 0; i < pool->limit; i++)
        compile_process_stop(&pool->entries[i].process);
    pthread_mutex_destroy(&pool->mutex);
}

/* Returns an entry that no thread uses and marks it as used, or returns NULL.
 * The caller holds the mutex. */
static struct compile_pool_entry *entry_take(struct compile_pool *pool,
                                             bool is_running)
{
    for (uint32_t i = 0; i < pool->limit; i++) {
        struct compile_pool_entry *entry = &pool->entries[i];
        if (entry->is_used || (entry->process.pid != 0) != is_running)
            continue;
        entry->is_used = true;
        return entry;
    }
    return NULL;
}

/* Starts the process of the entry.  Unlocks the mutex during this time.
 * Returns false on failure, after which no further process is started. */
static bool entry_start(struct tandem_device *device,
                        struct compile_pool_entry *entry)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_unlock(&pool->mutex);
    bool is_running = compile_process_start(&entry->process, device);
    pthread_mutex_lock(&pool->mutex);
    pool->running += is_running;
    pool->has_failed |= !is_running;
    entry->is_used = is_running;
    return is_running;
}

struct compile_pool_entry *compile_pool_enter(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    struct compile_pool_entry *entry = entry_take(pool, true);
    /* While processes compile, this one does not: to load their programs, it
     * needs the compiler of the driver, too. */
    if (entry == NULL && (pool->running != 0 || pool->local != 0) &&
        !pool->has_failed) {
        entry = entry_take(pool, false);
        if (entry != NULL && !entry_start(device, entry))
            entry = NULL;
    }
    pool->local += entry == NULL;
    pthread_mutex_unlock(&pool->mutex);
    return entry;
}

void compile_pool_leave(struct tandem_device *device,
                        struct compile_pool_entry *entry)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    if (entry != NULL) {
        pool->running -= entry->process.pid == 0;
        entry->is_used = false;
        entry->idle_since_ns = monotonic_ns();
    } else {
        pool->local--;
    }
    pthread_mutex_unlock(&pool->mutex);
}

bool compile_pool_trim(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    bool others = false;
    pthread_mutex_lock(&pool->mutex);
    for (uint32_t i = 0; i < pool->limit; i++) {
        struct compile_pool_entry *entry = &pool->entries[i];
        if (entry->is_used || entry->process.pid == 0)
            continue;
        if (monotonic_ns() - entry->idle_since_ns < IDLE_LIMIT_NS) {
            others = true;
            continue;
        }
        entry->is_used = true;
        pool->running--;
        pthread_mutex_unlock(&pool->mutex);
        compile_process_stop(&entry->process);
        pthread_mutex_lock(&pool->mutex);
        entry->is_used = false;
    }
    pthread_mutex_unlock(&pool->mutex);
    return others;
}
