/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl/compile_process/compile_pool.h"

#include "common/cpu_count.h"
#include "opencl/device/device.h"
#include "opencl/device/event_poll.h"
#include "opencl/device/quirks.h"

/* A process that compiles holds an OpenCL context, and with it device memory:
 * 518 MiB on an H200 (driver 580).  Networks start builds in groups, so a short
 * limit is enough. */
#define IDLE_LIMIT_NS UINT64_C(1000000000)
/* Limit of a wait for the end of a killed process.  A process can be in a call
 * of the system that cannot be interrupted. */
#define END_LIMIT_MS 1000
/* There are at most 6 processes, because drivers create their contexts one
 * after the other (0.1 s each on an H200), and at most one for this number of
 * bytes of device memory, of which GPUs report a little less than they have. */
#define DEFAULT_PROCESSES 6u
#define MEMORY_BYTES_PER_PROCESS ((uint64_t)7 << 29)

/* One process at a time is no faster than the host's process, so a limit of 1
 * would be useless. */
static uint32_t limit_find(const struct platform_device *hardware,
                           uint64_t maximum)
{
    uint32_t limit = DEFAULT_PROCESSES, other_cpus = cpu_count_available() - 1;
    uint64_t by_memory = hardware->info.memory_bytes / MEMORY_BYTES_PER_PROCESS;
    if ((hardware->quirks & QUIRK_SERIAL_COMPILER) == 0)
        return 0;
    if (limit > other_cpus)
        limit = other_cpus;
    if (limit > by_memory)
        limit = (uint32_t)by_memory;
    if (limit > maximum)
        limit = (uint32_t)maximum;
    return limit > 1 ? limit : 0;
}

void compile_pool_init(struct tandem_device *device, uint64_t maximum,
                       uint64_t forced)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_init(&pool->mutex, NULL);
    pool->limit = limit_find(device->hardware, maximum);
    if (forced != 0)
        pool->limit = forced < MAX_COMPILE_PROCESSES ? (uint32_t)forced
                                                     : MAX_COMPILE_PROCESSES;
}

void compile_pool_stop(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    pool->is_stopping = true;
    for (uint32_t i = 0; i < pool->limit; i++)
        if (pool->entries[i].process.pid != 0)
            compile_process_kill(&pool->entries[i].process);
    pthread_mutex_unlock(&pool->mutex);
}

void compile_pool_free(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    compile_pool_stop(device);
    for (uint32_t i = 0; i < pool->limit; i++)
        if (pool->entries[i].process.pid != 0)
            compile_process_reap(&pool->entries[i].process, END_LIMIT_MS);
    pthread_mutex_destroy(&pool->mutex);
}

bool compile_pool_is_stopping(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    bool is_stopping = pool->is_stopping;
    pthread_mutex_unlock(&pool->mutex);
    return is_stopping;
}

/* ---- entries; the caller holds the mutex ---- */

/* Kills the process of the entry.  Waits for its end for at most limit_ms. */
static void entry_end(struct compile_pool_entry *entry, int limit_ms)
{
    compile_process_kill(&entry->process);
    entry->is_ended = !compile_process_reap(&entry->process, limit_ms);
}

/* Returns an entry that no thread uses and marks it as used, or returns NULL.
 */
static struct compile_pool_entry *entry_take(struct compile_pool *pool,
                                             bool is_running)
{
    for (uint32_t i = 0; i < pool->limit; i++) {
        struct compile_pool_entry *entry = &pool->entries[i];
        if (entry->is_ended)
            entry_end(entry, 0);
        if (entry->is_used || entry->is_ended ||
            (entry->process.pid != 0) != is_running)
            continue;
        entry->is_used = true;
        return entry;
    }
    return NULL;
}

/* Starts the process of the entry.  Unlocks the mutex meanwhile.  Returns false
 * on failure, after which no further process is started. */
static bool entry_start(struct tandem_device *device,
                        struct compile_pool_entry *entry)
{
    struct compile_pool *pool = &device->compile_pool;
    struct compile_process process;
    pthread_mutex_unlock(&pool->mutex);
    bool is_running = compile_process_start(&process, device);
    pthread_mutex_lock(&pool->mutex);
    if (is_running) {
        entry->process = process;
        if (pool->is_stopping)
            compile_process_kill(&process);
        pthread_mutex_unlock(&pool->mutex);
        is_running = compile_process_await(&process, device);
        pthread_mutex_lock(&pool->mutex);
        if (!is_running)
            entry_end(entry, 0);
    }
    pool->running += is_running;
    pool->has_failed |= !is_running;
    entry->is_used = is_running;
    return is_running;
}

/* ---- functions of the header ---- */

struct compile_pool_entry *compile_pool_enter(struct tandem_device *device)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    struct compile_pool_entry *entry = entry_take(pool, true);
    /* While processes compile, this one does not: to load their programs, it
     * needs the compiler of the driver, too. */
    if (entry == NULL && (pool->running != 0 || pool->local != 0) &&
        !pool->has_failed && !pool->is_stopping) {
        entry = entry_take(pool, false);
        if (entry != NULL && !entry_start(device, entry))
            entry = NULL;
    }
    pool->local += entry == NULL;
    pthread_mutex_unlock(&pool->mutex);
    return entry;
}

void compile_pool_leave(struct tandem_device *device,
                        struct compile_pool_entry *entry, bool is_lost)
{
    struct compile_pool *pool = &device->compile_pool;
    pthread_mutex_lock(&pool->mutex);
    if (entry != NULL) {
        entry->is_used = false;
        entry->idle_since_ns = monotonic_ns();
        if (is_lost) {
            pool->running--;
            entry_end(entry, 0);
        }
    } else {
        pool->local--;
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* Kills the processes that have been idle for idle_ns, and waits for each end
 * for at most limit_ms.  Returns true if processes are left. */
static bool idle_end(struct tandem_device *device, uint64_t idle_ns,
                     int limit_ms)
{
    struct compile_pool *pool = &device->compile_pool;
    bool are_left = false;
    pthread_mutex_lock(&pool->mutex);
    for (uint32_t i = 0; i < pool->limit; i++) {
        struct compile_pool_entry *entry = &pool->entries[i];
        if (entry->is_used || entry->is_ended || entry->process.pid == 0 ||
            monotonic_ns() - entry->idle_since_ns < idle_ns)
            continue;
        pool->running--;
        compile_process_kill(&entry->process);
        entry->is_ended = true;
    }
    for (uint32_t i = 0; i < pool->limit; i++) {
        if (pool->entries[i].is_ended)
            entry_end(&pool->entries[i], limit_ms);
        are_left |= pool->entries[i].process.pid != 0;
    }
    pthread_mutex_unlock(&pool->mutex);
    return are_left;
}

bool compile_pool_trim(struct tandem_device *device)
{
    return idle_end(device, IDLE_LIMIT_NS, 0);
}

void compile_pool_end_idle(struct tandem_device *device)
{
    idle_end(device, 0, END_LIMIT_MS);
}
