/* SPDX-License-Identifier: Apache-2.0 */
/* State of a thread pool, its worker threads, and the jobs that they run.
 * Callers of the functions hold pool->busy unless a comment says otherwise. */
#ifndef TANDEM_CPU_THREADS_WORKER_H
#define TANDEM_CPU_THREADS_WORKER_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cpu/threads/team_size.h"
#include "cpu/threads/thread_pool.h"

#define MAX_THREADS 256u
/* Chunks per partition (one thread's tasks); idle threads steal chunks. */
#define CHUNKS_PER_PARTITION 8
/* The time per unit of work depends on the cache level of the data.  The pool
 * estimates this time for three classes of jobs: fewer than RATE_CLASS_UNITS
 * units, fewer than RATE_CLASS_UNITS * RATE_CLASS_FACTOR, and more. */
#define RATE_CLASS_COUNT 3
#define RATE_CLASS_UNITS 65536.0
#define RATE_CLASS_FACTOR 16.0
/* Alignment to pairs of 64-byte cache lines, which processors prefetch. */
#define CACHE_LINES 128

/* A thread of a job.  Thread number 0 is the thread that called pool_run. */
struct worker {
    alignas(CACHE_LINES) atomic_int_fast64_t next; /* next unclaimed task */
    int64_t end;                                   /* end of the partition */
    alignas(CACHE_LINES)
        atomic_bool is_working; /* true while the thread may access the job */
    atomic_bool is_asleep;      /* thread that clears this flag posts `wake` */
    sem_t wake;
    uint32_t number;
    struct pool *pool;
    pthread_t thread;
};

/* A thread pool.  Only the files of this folder access its fields. */
struct pool {
    /* generation << 16 | threads.  `generation` counts jobs, and `threads` is
     * the number of threads of the open job, or 0 if no job is open.  Only the
     * thread that holds `busy` writes this field. */
    alignas(CACHE_LINES) atomic_uint_fast64_t job_word;
    /* The open job's data.  Workers are allowed to read it while is_working is
     * true. */
    pool_fn fn;
    const void *work;
    int64_t chunk;
    /* For each thread, the number of the processor on which it last started a
     * job (thread 0) or fell asleep (workers). -1 means unknown. */
    alignas(CACHE_LINES) atomic_int last_cpu[MAX_THREADS];
    alignas(CACHE_LINES) atomic_bool stop;
    atomic_bool caller_sleeps; /* thread that clears this flag posts `left` */
    _Atomic uint32_t awake;    /* number of workers that are not asleep */
    _Atomic uint32_t threads;  /* maximum threads per job, with the caller */
    _Atomic double spin_ns;
    _Atomic double min_parallel_ns; /* minimum alone_ns of a parallel job */
    /* small_team_ns is the approximate total time of jobs on fewer than all
     * threads since the last measurement of latencies.  If the total exceeds
     * remeasure_ns, the latencies are measured again. */
    _Atomic double small_team_ns, remeasure_ns;
    sem_t left;
    /* Estimated nanoseconds per unit of work on one thread; 0 if unknown. */
    _Atomic float rates[POOL_KIND_COUNT][RATE_CLASS_COUNT];

    pthread_mutex_t busy; /* locked by the caller that uses the workers */
    /* The mutex `busy` guards the fields below. */
    uint32_t started; /* number of workers */
    bool is_measured;
    pid_t owner; /* id of the process that started the workers */
    struct team_costs costs;
    struct team_credit credit;

    struct worker workers[MAX_THREADS];
};

/* Affinity masks of a thread before and after affinity_avoid. */
struct affinity {
    cpu_set_t found, narrow;
};

/* Removes `count` processors from the calling thread's affinity mask until
 * affinity_back restores it.  The thread leaves these processors at once, which
 * takes about 1 us, or a few us if it must migrate.  Ignores processor numbers
 * outside 0 to CPU_SETSIZE - 1.  Returns false and changes nothing if no
 * processor would be left, or if a system call fails.  Any thread may call. */
bool affinity_avoid(struct affinity *out, const int *processors,
                    uint32_t count);

/* Restores the mask that the calling thread had before affinity_avoid, unless
 * other code has changed the mask since then. */
void affinity_back(const struct affinity *affinity);

/* Starts the worker threads.  They inherit the caller's affinity, so at most
 * one thread is started for each processor that the caller may use.  If the
 * system refuses a thread, the pool works with fewer threads. */
void workers_start(struct pool *pool);
/* These functions set how long idle workers spin before they sleep.
 * workers_spin_for sets the time to wakeup_ns, within limits.
 * workers_spin_always sets a long time, for measurements. */
void workers_spin_for(struct pool *pool, double wakeup_ns);
void workers_spin_always(struct pool *pool);
/* Ends and joins the workers.  Must be the last call on a pool. */
void workers_stop(struct pool *pool);
/* Runs a job on `team` threads and blocks until it is complete.  Returns the
 * nanoseconds per task on the calling thread, or 0 if it ran no task. */
double job_run(struct pool *pool, pool_fn fn, const void *work, int64_t tasks,
               uint32_t team);

/* Jobs that take fewer nanoseconds on one thread do not run in parallel.  Two
 * threads save at most half of this time, and no machine wakes its threads that
 * fast. */
#define MIN_PARALLEL_NS 1000.0

/* Measures the wake-up latencies of sleeping and of spinning workers, and sets
 * the time that idle workers spin.  The caller holds pool->busy. */
void wakeup_latencies_measure(struct pool *pool);
/* Measures the latencies again if jobs on fewer than all threads have taken
 * more than pool->remeasure_ns in total.  Call this function after each such
 * job, which took job_ns, without holding pool->busy.  If other processes were
 * busy during a measurement, its latencies are too high, and would otherwise
 * keep jobs on few threads forever. */
void wakeup_latencies_recheck(struct pool *pool, double job_ns);

static inline double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Pauses briefly, to leave the core to its other hardware thread. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
