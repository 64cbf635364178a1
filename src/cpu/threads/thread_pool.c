/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that help with large operators; see thread_pool.h.
 *
 * A job is published by one store to the gate, which helpers look at.  Each
 * thread has a share of the tasks of its own, always the same one, and claims
 * it piece by piece; whoever is done takes pieces of the others' shares.  So a
 * helper that comes late, or never (a child after fork has none), is waited
 * for by nobody: the caller closes the gate when nothing is left to claim, and
 * waits for the helpers that are inside.
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
/* Kernels' frames are small; the host's default may be anything. */
#define STACK_BYTES ((size_t)1 << 20)
/* Less work than this, in units, is never worth a look at the clock. */
#define MEASURED_UNITS 4096
/* No machine's threads come together in half of it. */
#define LEAST_NS 1000.0
/* A unit's time depends on which cache the job fits in: classes of jobs by
 * their units, below the first, the second, and above. */
#define CLASSES 3
#define CLASS_UNITS 65536.0
#define CLASS_FACTOR 16.0
#define JOIN_SAMPLES 9
#define MEETING_LIMIT_NS 200000.0
/* Bounds of how long helpers look out for the next job. */
#define LOOK_LEAST_NS 20000.0
#define LOOK_MOST_NS 200000.0
/* What jobs on few threads take, in times what measuring took, until it is
 * done again. */
#define DOUBT_FACTOR 10.0
/* Pieces of each share, so that a slow thread can be helped. */
#define PIECES_PER_SHARE 8
/* Looks at the gate from one look at the clock to the next. */
#define LOOKS 32

/* A line of the cache, or the two that are fetched together. */
#define LINE 128

/* One thread of a job; number 0 is the caller. */
struct member {
    alignas(LINE) atomic_int_fast64_t next; /* task of its share to claim */
    int64_t end;                            /* of the share */
    alignas(LINE) atomic_bool inside;       /* the job may be in use by it */
    atomic_bool asleep; /* whoever clears it posts wake */
    sem_t wake;
    uint32_t number;
    struct pool *pool;
    pthread_t thread;
};

struct pool {
    /* generation << 16 | the number of threads of the open job, 0: closed.
     * Written by the holder of busy. */
    alignas(LINE) atomic_uint_fast64_t gate;
    /* The job; read by members that are inside. */
    pool_fn fn;
    const void *work;
    int64_t piece;
    /* The processors that members were last seen on, -1 where not yet: the
     * caller in its last job, helpers as they fell asleep. */
    alignas(LINE) atomic_int seen_on[THREADS_LIMIT];
    alignas(LINE) atomic_bool stop;
    atomic_bool waits; /* the caller; whoever clears it posts left */
    _Atomic uint32_t awake; /* helpers */
    _Atomic uint32_t threads; /* the caller among them */
    _Atomic double spin_ns;
    _Atomic double least_ns; /* of a job that is worth sharing */
    /* What jobs on fewer threads than there are took since the costs were
     * measured, roughly, and when that is enough to measure them again. */
    _Atomic double few_ns, again_ns;
    sem_t left;
    /* Nanoseconds of a unit for one thread; 0: not known. */
    _Atomic float rates[POOL_KINDS][CLASSES];

    pthread_mutex_t busy; /* held by the caller that has the helpers */
    /* Only with busy held. */
    uint32_t started; /* helpers */
    bool measured;
    pid_t owner;      /* the process that started them */
    struct team_costs costs;
    struct team_credit credit;

    struct member members[THREADS_LIMIT];
};

/* ---- what this process may use ------------------------------------------ */

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

/* Lets the other thread of a core go first. */
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

/* Each thread wakes two more, so that all are awake soon. */
static void sleepers_wake(struct pool *pool, uint32_t number, uint32_t team)
{
    for (uint32_t i = 2 * number + 1; i <= 2 * number + 2 && i < team; i++) {
        struct member *member = &pool->members[i];
        if (atomic_load(&member->asleep) &&
            atomic_exchange(&member->asleep, false))
            sem_post(&member->wake);
    }
}

/* The tasks of the share of number, then what is left of the others'; how many
 * they were. */
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

/* Takes part in the job that is open to the helper; false: it is over. */
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

/* Where the calling thread is, which is member number. */
static int member_seen(struct pool *pool, uint32_t number)
{
    int processor = sched_getcpu();
    atomic_int *seen = &pool->seen_on[number];
    if (atomic_load_explicit(seen, memory_order_relaxed) != processor)
        atomic_store_explicit(seen, processor, memory_order_relaxed);
    return processor;
}

/* The system may start or wake a thread on the processor of whoever does so,
 * here the caller, which goes on, and leave it there for 0.1 s while others
 * idle: who sleeps keeps off the caller's processor, and who shares one with a
 * helper of a lower number first goes to one that nobody is on. */
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

/* Until there is a job, or the pool is destroyed. */
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

/* Whether a helper is inside that may be. */
static bool helper_inside(struct pool *pool, uint32_t team)
{
    for (uint32_t i = 1; i < team; i++)
        if (atomic_load(&pool->members[i].inside))
            return true;
    return false;
}

/* A child after fork has no helpers, but what they were about. */
static void helpers_forget(struct pool *pool)
{
    for (uint32_t i = 1; i <= pool->started; i++)
        atomic_store(&pool->members[i].inside, false);
    atomic_store(&pool->threads, 1);
}

/* Until no helper is inside; looks as long as helpers do, then sleeps. */
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

/* Called with busy held.  Returns the nanoseconds of a task in this thread; 0
 * where it came to none. */
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

/* A job of one task a thread that ends when enough have come, or after a while
 * without. */
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

/* The median time in which team threads come together, those that count,
 * rest_ns after the last time. */
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
        /* The first one pays for the threads' start. */
        if (i >= 0)
            times[i] = now_ns() - start;
    }
    qsort(times, JOIN_SAMPLES, sizeof times[0], compare_times);
    return times[JOIN_SAMPLES / 2];
}

/* Called with busy held.  Helpers may run where the caller may, so there are
 * no more than that has use for; fewer than wanted is no error. */
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

/* Times how long helpers take to come, asleep and awake. */
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
    /* Each time later: less and less is to be found. */
    double again = DOUBT_FACTOR * (now_ns() - start);
    double before = pool->again_ns < HUGE_VAL ? 2 * pool->again_ns : 0;
    pool->again_ns = again > before ? again : before;
}

/* After a job of job_ns that ran on fewer threads than it has tasks: the costs
 * may be of a moment in which some helpers had no processor, and would keep it
 * so for ever. */
static void costs_doubt(struct pool *pool, double job_ns)
{
    double sum =
        atomic_load_explicit(&pool->few_ns, memory_order_relaxed) + job_ns;
    bool again =
        sum > atomic_load_explicit(&pool->again_ns, memory_order_relaxed);
    atomic_store_explicit(&pool->few_ns, again ? 0 : sum, memory_order_relaxed);
    if (!again || pthread_mutex_trylock(&pool->busy) != 0)
        return;
    /* A child after fork has no helpers. */
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
    /* A child after fork has no helpers to join. */
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

/* The first tasks of a job of which the rate is not known, timed; how many
 * they are. */
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

/* The tasks after those that were tried. */
static void rest_run(const void *context, int64_t first, int64_t end)
{
    const struct rest *rest = context;
    rest->fn(rest->work, rest->first + first, rest->first + end);
}

/* The team for a job of alone_ns, with busy held where it is more than 1. */
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
