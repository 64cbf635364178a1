/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker threads for large operators; see thread_pool.h.
 *
 * One store to the gate, an atomic word that the workers poll, publishes a job.
 * Each thread owns a fixed partition of the tasks and claims it in pieces; a
 * thread that has finished its partition steals pieces of the others.  Nobody
 * waits for a worker that comes late or never (a child after fork has none):
 * the caller closes the gate when no task is left to claim, and waits only for
 * the workers that have joined the job.  A helper is a worker thread.
 */
#include "config.h"

#include "cpu/threads/thread_pool.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cpu_count.h"
#include "common/thread_state_guard.h"
#include "cpu/threads/affinity.h"
#include "cpu/threads/team_size.h"

#define THREADS_LIMIT 256u
/* Kernels need little stack; the host's default size is unknown. */
#define STACK_BYTES ((size_t)1 << 20)
/* Jobs of fewer units run on the caller and are not timed. */
#define MEASURED_UNITS 4096
/* Lower bound of the shortest parallel job: no machine wakes its threads in
 * half of this time. */
#define LEAST_NS 1000.0
/* The time per unit depends on the cache level that holds the job's data, so
 * the pool estimates it for three classes of jobs: below CLASS_UNITS units,
 * below CLASS_UNITS * CLASS_FACTOR, and above. */
#define CLASSES 3
#define CLASS_UNITS 65536.0
#define CLASS_FACTOR 16.0
#define JOIN_SAMPLES 9
#define MEETING_LIMIT_NS 200000.0
/* Bounds of the time that workers spin before they sleep. */
#define LOOK_LEAST_NS 20000.0
#define LOOK_MOST_NS 200000.0
/* The latencies are measured again when the jobs on fewer than all threads have
 * taken this many times the duration of the measurement. */
#define DOUBT_FACTOR 10.0
/* Pieces of a partition, so that other threads can steal from a slow one. */
#define PIECES_PER_SHARE 8
/* Polls of the gate per reading of the clock. */
#define LOOKS 32

/* Two cache lines of 64 bytes, which processors often prefetch as a pair. */
#define LINE 128

/* One thread of a job; number 0 is the caller. */
struct member {
    alignas(LINE) atomic_int_fast64_t next; /* next unclaimed task */
    int64_t end;                            /* end of the partition */
    alignas(LINE) atomic_bool inside;       /* may be using the job's fields */
    atomic_bool asleep; /* the thread that clears this flag posts `wake` */
    sem_t wake;
    uint32_t number;
    struct pool *pool;
    pthread_t thread;
};

struct pool {
    /* generation << 16 | number of threads of the open job; 0 threads means
     * closed.  Only the holder of `busy` writes it. */
    alignas(LINE) atomic_uint_fast64_t gate;
    /* The job; read by members whose `inside` is set. */
    pool_fn fn;
    const void *work;
    int64_t piece;
    /* Last known processor of each member: of the caller in its last job, of a
     * worker when it fell asleep.  -1 if unknown. */
    alignas(LINE) atomic_int seen_on[THREADS_LIMIT];
    alignas(LINE) atomic_bool stop;
    atomic_bool waits; /* caller sleeps; whoever clears it posts `left` */
    _Atomic uint32_t awake; /* workers that do not sleep */
    _Atomic uint32_t threads; /* maximum of a job, including the caller */
    _Atomic double spin_ns;
    _Atomic double least_ns; /* shortest job that is run in parallel */
    /* Approximate time of jobs on fewer than all threads since the latencies
     * were measured, and the total at which they are measured again. */
    _Atomic double few_ns, again_ns;
    sem_t left;
    /* Estimated nanoseconds per unit on one thread; 0 if unknown. */
    _Atomic float rates[POOL_KIND_COUNT][CLASSES];

    pthread_mutex_t busy; /* held by the caller that uses the workers */
    /* The fields below are guarded by `busy`. */
    uint32_t started; /* number of workers */
    bool measured;
    pid_t owner;      /* process that started the workers */
    struct team_costs costs;
    struct team_credit credit;

    struct member members[THREADS_LIMIT];
};

/* ---- processors, time and semaphores ------------------------------------ */

uint32_t pool_processors(void)
{
    uint32_t count = cpu_count_available();
    return count > THREADS_LIMIT ? THREADS_LIMIT : count;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Yields execution resources to the other hardware thread of the core. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void semaphore_wait(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        continue;
}

/* ---- jobs --------------------------------------------------------------- */

static uint32_t gate_team(uint_fast64_t gate)
{
    return (uint32_t)(gate & 0xffff);
}

/* Wakes the two children of member `number` in a binary tree, so that all
 * members wake in a logarithmic number of steps. */
static void sleepers_wake(struct pool *pool, uint32_t number, uint32_t team)
{
    for (uint32_t i = 2 * number + 1; i <= 2 * number + 2 && i < team; i++) {
        struct member *member = &pool->members[i];
        if (atomic_load(&member->asleep) &&
            atomic_exchange(&member->asleep, false))
            sem_post(&member->wake);
    }
}

/* Runs the tasks of partition `number`, then steals from the other partitions.
 * Returns the number of tasks that the calling thread ran. */
static int64_t job_work(struct pool *pool, uint32_t number, uint32_t team)
{
    int64_t done = 0;
    pool_fn fn = pool->fn;
    const void *work = pool->work;
    int64_t piece = pool->piece;
    for (uint32_t i = 0; i < team; i++) {
        uint32_t at = number + i < team ? number + i : number + i - team;
        struct member *share = &pool->members[at];
        while (atomic_load_explicit(&share->next, memory_order_relaxed) <
               share->end) {
            int64_t first = atomic_fetch_add_explicit(&share->next, piece,
                                                      memory_order_relaxed);
            if (first >= share->end)
                break;
            int64_t end =
                share->end - first > piece ? first + piece : share->end;
            fn(work, first, end);
            done += end - first;
        }
    }
    return done;
}

/* Joins the open job and runs tasks until none is left to claim.  Returns false
 * if the job was closed meanwhile; else stores its generation in *out_seen. */
static bool job_join(struct member *helper, uint_fast64_t *out_seen)
{
    struct pool *pool = helper->pool;
    atomic_store(&helper->inside, true);
    uint_fast64_t gate = atomic_load(&pool->gate);
    uint32_t team = gate_team(gate);
    bool open = team > helper->number;
    if (open) {
        *out_seen = gate >> 16;
        sleepers_wake(pool, helper->number, team);
        job_work(pool, helper->number, team);
    }
    atomic_store(&helper->inside, false);
    if (atomic_load(&pool->waits) && atomic_exchange(&pool->waits, false))
        sem_post(&pool->left);
    return open;
}

/* Records and returns the processor of the calling thread, member `number`. */
static int member_seen(struct pool *pool, uint32_t number)
{
    int processor = sched_getcpu();
    atomic_int *seen = &pool->seen_on[number];
    if (atomic_load_explicit(seen, memory_order_relaxed) != processor)
        atomic_store_explicit(seen, processor, memory_order_relaxed);
    return processor;
}

/* Changes the affinity of a worker that is about to sleep.  The scheduler may
 * wake a thread on the processor of the waking thread, here the caller, which
 * keeps running, and leave both there for 0.1 s while other processors idle.
 * A sleeping worker therefore avoids the caller's processor.  A worker that
 * shares its processor with a lower-numbered worker avoids the processors of
 * all members.  Returns false if the affinity is unchanged. */
static bool helper_leave(struct member *helper, struct affinity *out)
{
    struct pool *pool = helper->pool;
    int processor = member_seen(pool, helper->number), seen[THREADS_LIMIT];
    uint32_t threads = atomic_load(&pool->threads), count = 1;
    for (uint32_t i = 0; i < threads; i++) {
        seen[i] = atomic_load_explicit(&pool->seen_on[i], memory_order_relaxed);
        if (i > 0 && i < helper->number && seen[i] == processor)
            count = threads;
    }
    bool off = affinity_avoid(out, seen, count) ||
               (count > 1 && affinity_avoid(out, seen, 1));
    member_seen(pool, helper->number);
    return off;
}

/* Sleeps until a job wants this worker or the pool is destroyed. */
static void helper_sleep(struct member *helper, uint_fast64_t seen)
{
    struct pool *pool = helper->pool;
    struct affinity affinity;
    bool off = helper_leave(helper, &affinity);
    atomic_fetch_sub(&pool->awake, 1);
    atomic_store(&helper->asleep, true);
    uint_fast64_t gate = atomic_load(&pool->gate);
    bool wanted = gate_team(gate) > helper->number && gate >> 16 != seen;
    if ((!wanted && !atomic_load(&pool->stop)) ||
        !atomic_exchange(&helper->asleep, false))
        semaphore_wait(&helper->wake);
    atomic_fetch_add(&pool->awake, 1);
    if (off)
        affinity_back(&affinity);
}

static void *helper_main(void *argument)
{
    struct member *helper = argument;
    struct pool *pool = helper->pool;
    uint_fast64_t seen = 0;
    double idle_since = now_ns();
    for (uint32_t looks = 1; !atomic_load(&pool->stop); looks++) {
        uint_fast64_t gate =
            atomic_load_explicit(&pool->gate, memory_order_relaxed);
        if (gate_team(gate) > helper->number && gate >> 16 != seen) {
            if (job_join(helper, &seen))
                idle_since = now_ns();
            continue;
        }
        if (looks % LOOKS == 0 &&
            now_ns() - idle_since > atomic_load(&pool->spin_ns)) {
            helper_sleep(helper, seen);
            idle_since = now_ns();
        }
        pause_briefly();
    }
    return NULL;
}

/* Returns true if a worker of the job may still be using its fields. */
static bool helper_inside(struct pool *pool, uint32_t team)
{
    for (uint32_t i = 1; i < team; i++)
        if (atomic_load(&pool->members[i].inside))
            return true;
    return false;
}

/* Resets the state in a child after fork, which inherits the members' flags but
 * none of the worker threads. */
static void helpers_forget(struct pool *pool)
{
    for (uint32_t i = 1; i <= pool->started; i++)
        atomic_store(&pool->members[i].inside, false);
    atomic_store(&pool->threads, 1);
}

/* Blocks until no worker uses the job: spins for spin_ns, then sleeps. */
static void helpers_await(struct pool *pool, uint32_t team)
{
    double spin_ns = atomic_load(&pool->spin_ns), start = 0;
    for (uint32_t looks = 0; helper_inside(pool, team); looks++) {
        pause_briefly();
        if (looks % LOOKS != 0)
            continue;
        start = start == 0 ? now_ns() : start;
        if (now_ns() - start < spin_ns)
            continue;
        if (pool->owner != getpid()) {
            helpers_forget(pool);
            return;
        }
        atomic_store(&pool->waits, true);
        if (helper_inside(pool, team) || !atomic_exchange(&pool->waits, false))
            semaphore_wait(&pool->left);
    }
}

/* Divides the tasks among the members in contiguous partitions. */
static void partitions_make(struct pool *pool, int64_t tasks, uint32_t team)
{
    int64_t share = tasks / team, rest = tasks % team, from = 0;
    pool->piece = share > PIECES_PER_SHARE ? share / PIECES_PER_SHARE : 1;
    for (uint32_t i = 0; i < team; i++) {
        struct member *member = &pool->members[i];
        atomic_store_explicit(&member->next, from, memory_order_relaxed);
        from += share + (i < rest ? 1 : 0);
        member->end = from;
    }
}

/* Runs a job on `team` threads and blocks until it is complete.  Returns the
 * nanoseconds per task on the calling thread, or 0 if it ran none.  The caller
 * holds `busy`. */
static double job_run(struct pool *pool, pool_fn fn, const void *work,
                      int64_t tasks, uint32_t team)
{
    uint_fast64_t gate =
        atomic_load_explicit(&pool->gate, memory_order_relaxed);
    uint_fast64_t generation = (gate >> 16) + 1;
    partitions_make(pool, tasks, team);
    pool->fn = fn;
    pool->work = work;
    member_seen(pool, 0);
    atomic_store(&pool->gate, generation << 16 | team);
    sleepers_wake(pool, 0, team);
    double start = now_ns();
    int64_t done = job_work(pool, 0, team);
    double end = now_ns();
    atomic_store(&pool->gate, generation << 16);
    helpers_await(pool, team);
    return done > 0 ? (end - start) / (double)done : 0;
}

/* ---- measuring ---------------------------------------------------------- */

/* Job that measures the wake-up latency: each task ends when `wanted` threads
 * have started, or after MEETING_LIMIT_NS. */
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
        pause_briefly();
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median latency of `team` threads in nanoseconds.  Sleeps rest_ns
 * before each sample so that the workers fall asleep; 0 keeps them spinning. */
static double wakeup_latency_measure(struct pool *pool, uint32_t team,
                                     long rest_ns)
{
    const struct timespec rest = {.tv_nsec = rest_ns};
    double times[JOIN_SAMPLES];
    for (int i = -1; i < JOIN_SAMPLES; i++) {
        struct meeting meeting = {.wanted = (int)team_counted(team)};
        struct meeting *pointer = &meeting;
        if (rest_ns > 0)
            nanosleep(&rest, NULL);
        double start = now_ns();
        job_run(pool, task_meet, &pointer, team, team);
        /* The first sample includes the creation of the threads. */
        if (i >= 0)
            times[i] = now_ns() - start;
    }
    qsort(times, JOIN_SAMPLES, sizeof times[0], compare_times);
    return times[JOIN_SAMPLES / 2];
}

/* Starts the workers; the caller holds `busy`.  They inherit the caller's
 * affinity, so there is at most one for each processor that the caller may use.
 * If the system refuses a thread, the pool works with fewer. */
static void helpers_start(struct pool *pool)
{
    uint32_t most = pool_processors();
    uint32_t wanted = pool->threads < most ? pool->threads : most;
    pool->owner = getpid();
    for (uint32_t i = 1; i < wanted; i++)
        atomic_store(&pool->seen_on[i], -1);
    member_seen(pool, 0);
    while (pool->started + 1 < wanted) {
        struct member *helper = &pool->members[pool->started + 1];
        helper->pool = pool;
        helper->number = pool->started + 1;
        sem_init(&helper->wake, 0, 0);
        atomic_fetch_add(&pool->awake, 1);
        if (!shelter_thread(&helper->thread, "tandem-cpu", STACK_BYTES,
                            helper_main, helper)) {
            atomic_fetch_sub(&pool->awake, 1);
            break;
        }
        pool->started++;
    }
    pool->threads = pool->started + 1;
}

/* Measures the wake-up latencies of sleeping and of spinning workers and
 * derives the spin time.  The caller holds `busy`. */
static void costs_measure(struct pool *pool)
{
    uint32_t threads = pool->threads;
    if (threads < 2)
        return;
    double start = now_ns();
    double cold = wakeup_latency_measure(pool, threads, 100000);
    atomic_store(&pool->spin_ns, 10 * LOOK_MOST_NS);
    double all = wakeup_latency_measure(pool, threads, 0);
    double two = threads > 2 ? wakeup_latency_measure(pool, 2, 0) : all;
    team_measured(&pool->costs, two, all, threads, cold);
    cold = pool->costs.cold;
    pool->least_ns =
        pool->costs.least > LEAST_NS ? pool->costs.least : LEAST_NS;
    atomic_store(&pool->spin_ns, cold < LOOK_LEAST_NS  ? LOOK_LEAST_NS
                                 : cold > LOOK_MOST_NS ? LOOK_MOST_NS
                                                       : cold);
    /* Double the interval each time: a new minimum becomes less likely. */
    double again = DOUBT_FACTOR * (now_ns() - start);
    double before = pool->again_ns < HUGE_VAL ? 2 * pool->again_ns : 0;
    pool->again_ns = again > before ? again : before;
}

/* Called after a job of job_ns that ran on fewer threads than possible.  The
 * latencies may have been measured while other processes used the processors,
 * and would then keep jobs on few threads forever.  Measures them again when
 * such jobs have taken again_ns in total. */
static void costs_doubt(struct pool *pool, double job_ns)
{
    double sum =
        atomic_load_explicit(&pool->few_ns, memory_order_relaxed) + job_ns;
    bool again =
        sum > atomic_load_explicit(&pool->again_ns, memory_order_relaxed);
    atomic_store_explicit(&pool->few_ns, again ? 0 : sum, memory_order_relaxed);
    if (!again || pthread_mutex_trylock(&pool->busy) != 0)
        return;
    /* A child after fork has no workers to measure. */
    if (pool->owner == getpid())
        costs_measure(pool);
    pthread_mutex_unlock(&pool->busy);
}

/* ---- the pool ----------------------------------------------------------- */

struct pool *pool_create(uint32_t threads)
{
    uint32_t most = pool_processors();
    struct pool *pool = aligned_alloc(LINE, sizeof *pool);
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->busy, NULL);
    sem_init(&pool->left, 0, 0);
    pool->threads = threads == 0 || threads > most ? most : threads;
    pool->least_ns = LEAST_NS;
    pool->again_ns = HUGE_VAL;
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
    atomic_store(&pool->stop, true);
    /* A child after fork has no workers to join. */
    if (pool->owner == getpid())
        for (uint32_t i = 1; i <= pool->started; i++) {
            struct member *helper = &pool->members[i];
            if (atomic_exchange(&helper->asleep, false))
                sem_post(&helper->wake);
            pthread_join(helper->thread, NULL);
            sem_destroy(&helper->wake);
        }
    sem_destroy(&pool->left);
    pthread_mutex_destroy(&pool->busy);
    free(pool);
}

/* Runs and times the first tasks of a job whose rate is unknown.  Stores the
 * nanoseconds per unit in *rate and returns the number of tasks it ran. */
static int64_t rate_try(const struct pool *pool, _Atomic float *rate,
                        pool_fn fn, const void *work, int64_t tasks,
                        int64_t units)
{
    int64_t pieces = (int64_t)pool->threads * PIECES_PER_SHARE;
    int64_t few = tasks > pieces ? tasks / pieces : 1;
    double start = now_ns();
    fn(work, 0, few);
    *rate = (float)((now_ns() - start) / ((double)few * (double)units));
    return few;
}

struct rest {
    pool_fn fn;
    const void *work;
    int64_t first;
};

/* pool_fn for the tasks that rate_try has not run. */
static void rest_run(const void *context, int64_t first, int64_t end)
{
    const struct rest *rest = context;
    rest->fn(rest->work, rest->first + first, rest->first + end);
}

/* Returns the number of threads for a job of alone_ns.  If more than 1, the
 * caller then holds `busy` and must unlock it.  Starts the workers on the first
 * call. */
static uint32_t team_gather(struct pool *pool, double alone_ns, int64_t tasks,
                            double now)
{
    if (pthread_mutex_trylock(&pool->busy) != 0)
        return 1;
    if (!pool->measured) {
        pool->measured = true;
        helpers_start(pool);
        costs_measure(pool);
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
    if (tasks <= 1 || all < MEASURED_UNITS || pool->threads <= 1) {
        fn(work, 0, tasks);
        return;
    }
    _Atomic float *rate =
        &pool->rates[kind][all < CLASS_UNITS                  ? 0
                           : all < CLASS_UNITS * CLASS_FACTOR ? 1
                                                              : 2];
    struct rest rest = {fn, work, 0};
    if (*rate == 0) {
        rest.first = rate_try(pool, rate, fn, work, tasks, units);
        tasks -= rest.first;
        fn = rest_run;
        work = &rest;
    }
    double start = now_ns(), per_task;
    double alone_ns = (double)tasks * (double)units * (double)*rate;
    uint32_t team = 1;
    if (alone_ns > pool->least_ns && tasks > 1)
        team = team_gather(pool, alone_ns, tasks, start);
    if (team > 1) {
        per_task = job_run(pool, fn, work, tasks, team);
        pthread_mutex_unlock(&pool->busy);
    } else {
        fn(work, 0, tasks);
        per_task = (now_ns() - start) / (double)(tasks > 0 ? tasks : 1);
    }
    if (alone_ns > LEAST_NS && tasks > (int64_t)team && team < pool->threads)
        costs_doubt(pool, alone_ns / team);
    if (per_task > 0)
        *rate = team_learn(*rate, (float)(per_task / (double)units));
}
