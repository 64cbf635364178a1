/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the work of operators among threads; see thread_pool.h. */
#include "config.h"

#include "cpu/threads/thread_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu_count.h"
#include "cpu/threads/worker.h"

/* Jobs with fewer units of work run on the calling thread and are not timed. */
#define MIN_TIMED_UNITS 4096

uint32_t pool_processors(void)
{
    uint32_t count = cpu_count_available();
    return count > MAX_THREADS ? MAX_THREADS : count;
}

struct pool *pool_create(uint32_t threads)
{
    uint32_t max = pool_processors();
    struct pool *pool = aligned_alloc(CACHE_LINES, sizeof *pool);
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->busy, NULL);
    sem_init(&pool->left, 0, 0);
    pool->threads = threads == 0 || threads > max ? max : threads;
    pool->min_parallel_ns = MIN_PARALLEL_NS;
    pool->remeasure_ns = HUGE_VAL;
    return pool;
}

uint32_t pool_threads(const struct pool *pool)
{
    return pool->threads;
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL)
        return;
    workers_stop(pool);
    sem_destroy(&pool->left);
    pthread_mutex_destroy(&pool->busy);
    free(pool);
}

/* Runs and times the first tasks of a job whose speed is unknown.  Stores the
 * nanoseconds per unit in *rate.  Returns the number of tasks that it ran. */
static int64_t rate_measure(const struct pool *pool, _Atomic float *rate,
                            pool_fn fn, const void *work, int64_t tasks,
                            int64_t units)
{
    int64_t chunks = (int64_t)pool->threads * CHUNKS_PER_PARTITION;
    int64_t first_tasks = tasks > chunks ? tasks / chunks : 1;
    double start = now_ns();
    fn(work, 0, first_tasks);
    *rate = (float)((now_ns() - start) / ((double)first_tasks * (double)units));
    return first_tasks;
}

struct rest {
    pool_fn fn;
    const void *work;
    int64_t first;
};

/* Thread-pool function for the tasks that rate_measure has not run. */
static void rest_run(const void *context, int64_t first, int64_t end)
{
    const struct rest *rest = context;
    rest->fn(rest->work, rest->first + first, rest->first + end);
}

/* Returns the number of threads for a job that takes alone_ns on one thread.
 * If the number is more than 1, the function locks pool->busy, and the caller
 * unlocks it.  Starts the workers on the first call. */
static uint32_t workers_acquire(struct pool *pool, double alone_ns,
                                int64_t tasks, double now)
{
    if (pthread_mutex_trylock(&pool->busy) != 0)
        return 1;
    if (!pool->is_measured) {
        pool->is_measured = true;
        workers_start(pool);
        wakeup_latencies_measure(pool);
    }
    uint32_t threads = pool->threads, awake = 1 + atomic_load(&pool->awake);
    uint32_t limit = tasks < (int64_t)threads ? (uint32_t)tasks : threads;
    uint32_t team =
        team_size_choose(&pool->costs, &pool->credit, alone_ns, limit,
                         awake < threads ? awake : threads, now, pool->spin_ns);
    if (team < 2)
        pthread_mutex_unlock(&pool->busy);
    return team;
}

void pool_run(struct pool *pool, uint32_t kind, pool_fn fn, const void *work,
              int64_t tasks, int64_t units)
{
    double all = (double)tasks * (double)units;
    if (tasks <= 1 || all < MIN_TIMED_UNITS || pool->threads <= 1) {
        fn(work, 0, tasks);
        return;
    }
    _Atomic float *rate =
        &pool->rates[kind][all < RATE_CLASS_UNITS                       ? 0
                           : all < RATE_CLASS_UNITS * RATE_CLASS_FACTOR ? 1
                                                                        : 2];
    struct rest rest = {fn, work, 0};
    if (*rate == 0) {
        rest.first = rate_measure(pool, rate, fn, work, tasks, units);
        tasks -= rest.first;
        fn = rest_run;
        work = &rest;
    }
    double start = now_ns(), per_task;
    double alone_ns = (double)tasks * (double)units * (double)*rate;
    uint32_t team = 1;
    if (alone_ns > pool->min_parallel_ns && tasks > 1)
        team = workers_acquire(pool, alone_ns, tasks, start);
    if (team > 1) {
        per_task = job_run(pool, fn, work, tasks, team);
        pthread_mutex_unlock(&pool->busy);
    } else {
        fn(work, 0, tasks);
        per_task = (now_ns() - start) / (double)(tasks > 0 ? tasks : 1);
    }
    if (alone_ns > MIN_PARALLEL_NS && tasks > (int64_t)team &&
        team < pool->threads)
        wakeup_latencies_recheck(pool, alone_ns / team);
    if (per_task > 0)
        *rate = team_learn(*rate, (float)(per_task / (double)units));
}
