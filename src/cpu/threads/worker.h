/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a thread pool, its worker threads, and the jobs that they run.  The
 * caller holds pool->busy except where a function says otherwise.
 */
#ifndef TANDEM_CPU_THREADS_WORKER_H
#define TANDEM_CPU_THREADS_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cpu/threads/team_size.h"
#include "cpu/threads/thread_pool.h"

#define MAX_THREADS 256u
/* Chunks of a partition, so that other threads can steal from a slow one. */
#define CHUNKS_PER_PARTITION 8
/* The time per unit depends on the cache level that holds the job's data, so
 * the pool estimates it for three classes of jobs: below RATE_CLASS_UNITS
 * units, below RATE_CLASS_UNITS * RATE_CLASS_FACTOR, and above. */
#define RATE_CLASS_COUNT 3
#define RATE_CLASS_UNITS 65536.0
#define RATE_CLASS_FACTOR 16.0
/* Two cache lines of 64 bytes, which processors often prefetch as a pair. */
#define CACHE_LINES 128

/* One thread of a job.  Number 0 is the caller of pool_run. */
struct worker {
    alignas(CACHE_LINES) atomic_int_fast64_t next; /* next unclaimed task */
    int64_t end;                                   /* end of the partition */
    alignas(CACHE_LINES)
        atomic_bool is_working; /* may be using the job's fields */
    atomic_bool is_asleep; /* the thread that clears this flag posts `wake` */
    sem_t wake;
    uint32_t number;
    struct pool *pool;
    pthread_t thread;
};

/* The fields are private to the files of this folder. */
struct pool {
    /* The open job: generation << 16 | number of threads; 0 threads means
     * closed.  Only the holder of `busy` writes it. */
    alignas(CACHE_LINES) atomic_uint_fast64_t job_word;
    /* The job; read by workers whose is_working is set. */
    pool_fn fn;
    const void *work;
    int64_t chunk;
    /* Last known processor of each thread: of the caller in its last job, of a
     * worker when it fell asleep.  -1 if unknown. */
    alignas(CACHE_LINES) atomic_int last_cpu[MAX_THREADS];
    alignas(CACHE_LINES) atomic_bool stop;
    atomic_bool caller_sleeps; /* the thread that clears it posts `left` */
    _Atomic uint32_t awake;    /* workers that do not sleep */
    _Atomic uint32_t threads;  /* maximum of a job, including the caller */
    _Atomic double spin_ns;
    _Atomic double min_parallel_ns; /* shortest job that is run in parallel */
    /* Approximate time of jobs on fewer than all threads since the latencies
     * were measured, and the total at which they are measured again. */
    _Atomic double small_team_ns, remeasure_ns;
    sem_t left;
    /* Estimated nanoseconds per unit on one thread; 0 if unknown. */
    _Atomic float rates[POOL_KIND_COUNT][RATE_CLASS_COUNT];

    pthread_mutex_t busy; /* held by the caller that uses the workers */
    /* The fields below are guarded by `busy`. */
    uint32_t started; /* number of workers */
    bool is_measured;
    pid_t owner; /* process that started the workers */
    struct team_costs costs;
    struct team_credit credit;

    struct worker workers[MAX_THREADS];
};

/* Starts the workers.  They inherit the caller's affinity, so there is at most
 * one for each processor that the caller may use.  If the system refuses a
 * thread, the pool works with fewer. */
void workers_start(struct pool *pool);
/* Ends and joins the workers; the last call on a pool. */
void workers_stop(struct pool *pool);
/* Runs a job on `team` threads and blocks until it is complete.  Returns the
 * nanoseconds per task on the calling thread, or 0 if it ran none. */
double job_run(struct pool *pool, pool_fn fn, const void *work, int64_t tasks,
               uint32_t team);

static inline double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Yields execution resources to the other hardware thread of the core. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
