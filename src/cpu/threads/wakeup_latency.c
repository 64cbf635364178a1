/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time that the workers of a pool take to start a job. */
#include "config.h"

#include "cpu/threads/worker.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define LATENCY_SAMPLES 9
#define BARRIER_TIMEOUT_NS 200000.0
/* The latencies are measured again when jobs on fewer than all threads have
 * taken, in total, this multiple of the duration of the last measurement. */
#define REMEASURE_FACTOR 10.0

/* Job that measures the wake-up latency.  Each task ends when `wanted` tasks
 * have started, or after BARRIER_TIMEOUT_NS. */
struct start_barrier {
    atomic_int arrived;
    int wanted;
};

static void barrier_task(const void *work, int64_t first, int64_t end)
{
    struct start_barrier *barrier = *(struct start_barrier *const *)work;
    double start = now_ns();
    atomic_fetch_add(&barrier->arrived, (int)(end - first));
    while (atomic_load(&barrier->arrived) < barrier->wanted &&
           now_ns() - start < BARRIER_TIMEOUT_NS)
        cpu_pause();
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median wake-up latency of `team` threads in nanoseconds.  Before
 * each sample, waits rest_ns nanoseconds so that workers fall asleep.  If
 * rest_ns is 0, workers keep spinning. */
static double wakeup_latency_measure(struct pool *pool, uint32_t team,
                                     long rest_ns)
{
    const struct timespec rest = {.tv_nsec = rest_ns};
    double times[LATENCY_SAMPLES];
    for (int i = -1; i < LATENCY_SAMPLES; i++) {
        struct start_barrier barrier = {.wanted = (int)team_counted(team)};
        struct start_barrier *pointer = &barrier;
        if (rest_ns > 0)
            nanosleep(&rest, NULL);
        double start = now_ns();
        job_run(pool, barrier_task, &pointer, team, team);
        /* The first run can include the creation of threads, so skip it. */
        if (i >= 0)
            times[i] = now_ns() - start;
    }
    qsort(times, LATENCY_SAMPLES, sizeof times[0], compare_times);
    return times[LATENCY_SAMPLES / 2];
}

void wakeup_latencies_measure(struct pool *pool)
{
    uint32_t threads = pool->threads;
    if (threads < 2)
        return;
    double start = now_ns();
    double cold = wakeup_latency_measure(pool, threads, 100000);
    workers_spin_always(pool);
    double all = wakeup_latency_measure(pool, threads, 0);
    double two = threads > 2 ? wakeup_latency_measure(pool, 2, 0) : all;
    team_measured(&pool->costs, two, all, threads, cold);
    cold = pool->costs.cold;
    pool->min_parallel_ns = pool->costs.least > MIN_PARALLEL_NS
                                ? pool->costs.least
                                : MIN_PARALLEL_NS;
    workers_spin_for(pool, cold);
    /* At least double the interval between measurements each time, because a
     * new minimum becomes less likely. */
    double again = REMEASURE_FACTOR * (now_ns() - start);
    double before = pool->remeasure_ns < HUGE_VAL ? 2 * pool->remeasure_ns : 0;
    pool->remeasure_ns = again > before ? again : before;
}

void wakeup_latencies_recheck(struct pool *pool, double job_ns)
{
    double sum =
        atomic_load_explicit(&pool->small_team_ns, memory_order_relaxed) +
        job_ns;
    bool again =
        sum > atomic_load_explicit(&pool->remeasure_ns, memory_order_relaxed);
    atomic_store_explicit(&pool->small_team_ns, again ? 0 : sum,
                          memory_order_relaxed);
    if (!again || pthread_mutex_trylock(&pool->busy) != 0)
        return;
    /* A child process after fork has no workers to measure. */
    if (pool->owner == getpid())
        wakeup_latencies_measure(pool);
    pthread_mutex_unlock(&pool->busy);
}
