/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that help with large operators; see pool.h.  A job is published
 * under the mutex; helpers and the caller claim its tasks by an atomic
 * counter, so a helper that never wakes (a child after fork has none) is
 * waited for by nobody.
 */
#include "config.h"

#include "cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/shelter.h"
#include "common/quota.h"

#define THREADS_LIMIT 256u
/* Kernels' frames are small; the host's default may be anything. */
#define STACK_BYTES ((size_t)1 << 20)
/* Less work than this, in elements, is never worth measuring. */
#define MEASURED_UNITS 16384
/* No machine joins threads in less. */
#define JOIN_LEAST_NS 1000.0
#define JOIN_SAMPLES 9
#define MEETING_LIMIT_NS 200000.0
/* Help is asked for where the work takes so many times as long as asking. */
#define WORTH_FACTOR 2.0
/* Pieces that each thread should get, so that a slow one can be helped. */
#define PIECES_PER_THREAD 8

struct pool {
    pthread_mutex_t busy;  /* held by the caller that has the helpers */
    pthread_mutex_t mutex; /* guards what follows, down to stop */
    pthread_cond_t work_come, work_done;
    uint64_t generation; /* of the job; odd: there is none */
    uint32_t active;     /* helpers at the present job */
    bool stop;
    /* The job; read by helpers that are counted in active. */
    pool_fn fn;
    const void *work;
    int64_t tasks, piece;
    atomic_int_fast64_t next;
    _Atomic uint32_t
        threads; /* the caller among them; written with busy held */
    /* Only with busy held. */
    uint32_t started; /* helpers */
    pid_t owner;      /* the process that started them */
    double join_ns;   /* of an empty job; 0: not measured */
    pthread_t helpers[THREADS_LIMIT];
};

/* ---- what this process may use ------------------------------------------ */

uint32_t pool_processors(void)
{
    uint32_t count = quota_allowed();
    return count > THREADS_LIMIT ? THREADS_LIMIT : count;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- jobs --------------------------------------------------------------- */

static void job_work(struct pool *pool)
{
    for (;;) {
        int64_t first = atomic_fetch_add_explicit(&pool->next, pool->piece,
                                                  memory_order_relaxed);
        if (first >= pool->tasks)
            return;
        int64_t end = pool->tasks - first > pool->piece ? first + pool->piece
                                                        : pool->tasks;
        pool->fn(pool->work, first, end);
    }
}

static void *helper_main(void *argument)
{
    struct pool *pool = argument;
    uint64_t seen = 1;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->stop &&
               (pool->generation == seen || (pool->generation & 1u) != 0))
            pthread_cond_wait(&pool->work_come, &pool->mutex);
        if (pool->stop)
            break;
        seen = pool->generation;
        pool->active++;
        pthread_mutex_unlock(&pool->mutex);
        job_work(pool);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->work_done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Called with busy held.  Helpers may run where the caller may, so there are
 * no more than that has use for; fewer than wanted is no error. */
static void helpers_start(struct pool *pool)
{
    uint32_t most = pool_processors();
    uint32_t wanted = pool->threads < most ? pool->threads : most;
    pool->owner = getpid();
    while (pool->started + 1 < wanted &&
           shelter_thread(&pool->helpers[pool->started], "tandem-cpu",
                          STACK_BYTES, helper_main, pool))
        pool->started++;
    pool->threads = pool->started + 1;
}

static int64_t piece_tasks(const struct pool *pool, int64_t tasks)
{
    int64_t pieces = (int64_t)pool->threads * PIECES_PER_THREAD;
    return tasks > pieces ? tasks / pieces : 1;
}

/* Tasks first to tasks - 1.  Called with busy held. */
static void job_run(struct pool *pool, pool_fn fn, const void *work,
                    int64_t first, int64_t tasks)
{
    pthread_mutex_lock(&pool->mutex);
    pool->fn = fn;
    pool->work = work;
    pool->tasks = tasks;
    pool->piece = piece_tasks(pool, tasks);
    atomic_store_explicit(&pool->next, first, memory_order_relaxed);
    pool->generation++;
    pthread_cond_broadcast(&pool->work_come);
    pthread_mutex_unlock(&pool->mutex);
    job_work(pool);
    pthread_mutex_lock(&pool->mutex);
    pool->generation++;
    while (pool->active > 0)
        pthread_cond_wait(&pool->work_done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

/* A job that ends when the caller and half the helpers have come, with whom
 * sharing pays already, or after a while without. */
struct meeting {
    atomic_int come;
    int wanted;
};

static void task_meet(const void *work, int64_t first, int64_t end)
{
    struct meeting *meeting = *(struct meeting *const *)work;
    double start = now_ns();
    atomic_fetch_add(&meeting->come, (int)(end - first));
    while (atomic_load(&meeting->come) < meeting->wanted &&
           now_ns() - start < MEETING_LIMIT_NS)
        continue;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Called with busy held: starts the helpers and times how long they take to
 * come, with time before each to fall asleep. */
static void join_measure(struct pool *pool)
{
    const struct timespec rest = {.tv_nsec = 100000};
    double times[JOIN_SAMPLES];
    helpers_start(pool);
    for (int i = -1; i < JOIN_SAMPLES; i++) {
        nanosleep(&rest, NULL);
        struct meeting meeting = {.wanted = 1 + (int)pool->threads / 2};
        struct meeting *pointer = &meeting;
        double start = now_ns();
        job_run(pool, task_meet, &pointer, 0, pool->threads);
        /* The first one pays for the threads' start. */
        if (i >= 0)
            times[i] = now_ns() - start;
    }
    qsort(times, JOIN_SAMPLES, sizeof times[0], compare_times);
    double median = times[JOIN_SAMPLES / 2];
    pool->join_ns = median > JOIN_LEAST_NS ? median : JOIN_LEAST_NS;
}

/* ---- the pool ----------------------------------------------------------- */

struct pool *pool_create(uint32_t threads)
{
    uint32_t most = pool_processors();
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pthread_mutex_init(&pool->busy, NULL);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work_come, NULL);
    pthread_cond_init(&pool->work_done, NULL);
    pool->generation = 1;
    pool->threads = threads == 0 || threads > most ? most : threads;
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
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work_come);
    pthread_mutex_unlock(&pool->mutex);
    /* A child after fork has no helpers to join. */
    if (pool->owner == getpid()) {
        for (uint32_t i = 0; i < pool->started; i++)
            pthread_join(pool->helpers[i], NULL);
        pthread_cond_destroy(&pool->work_come);
        pthread_cond_destroy(&pool->work_done);
    }
    pthread_mutex_destroy(&pool->mutex);
    pthread_mutex_destroy(&pool->busy);
    free(pool);
}

void pool_run(struct pool *pool, pool_fn fn, const void *work, int64_t tasks,
              int64_t units)
{
    double all = (double)tasks * (double)units;
    if (tasks <= 1 || all < MEASURED_UNITS || pool->threads <= 1) {
        fn(work, 0, tasks);
        return;
    }
    /* The first piece tells what the rest would take alone. */
    int64_t first = piece_tasks(pool, tasks);
    double start = now_ns();
    fn(work, 0, first);
    double rest_ns =
        (now_ns() - start) * (double)(tasks - first) / (double)first;
    bool shared = false;
    if (rest_ns > WORTH_FACTOR * JOIN_LEAST_NS &&
        pthread_mutex_trylock(&pool->busy) == 0) {
        if (pool->join_ns == 0)
            join_measure(pool);
        shared = rest_ns > WORTH_FACTOR * pool->join_ns && pool->threads > 1;
        if (shared)
            job_run(pool, fn, work, first, tasks);
        pthread_mutex_unlock(&pool->busy);
    }
    if (!shared)
        fn(work, first, tasks);
}
