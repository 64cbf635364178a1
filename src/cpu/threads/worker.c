/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads and the jobs that they run; see worker.h.
 *
 * A store to job_word, which the workers poll, publishes a job.  Each thread
 * claims chunks of its own partition of the tasks, and then steals chunks of
 * other partitions.  When no task is left to claim, the caller closes the job
 * and waits only for the workers that have joined it.  No thread waits for a
 * worker that never joins (a child after fork has no workers). */
#include "config.h"

#include "cpu/threads/worker.h"

#include <errno.h>
#include <unistd.h>

#include "common/cpu_count.h"
#include "common/thread_state_guard.h"

/* Stack size of workers.  Kernels need little stack; system defaults vary. */
#define STACK_BYTES ((size_t)1 << 20)
/* Number of times that a waiting thread polls between two clock readings. */
#define POLLS_PER_CLOCK 32
/* Limits of the time that an idle worker spins before it sleeps. */
#define MIN_SPIN_NS 20000.0
#define MAX_SPIN_NS 200000.0

static void semaphore_wait(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        continue;
}

static uint32_t job_word_team(uint_fast64_t job_word)
{
    return (uint32_t)(job_word & 0xffff);
}

/* Wakes the two children of worker `number` in a binary tree of workers, so
 * that all workers wake up in a logarithmic number of steps. */
static void sleepers_wake(struct pool *pool, uint32_t number, uint32_t team)
{
    for (uint32_t i = 2 * number + 1; i <= 2 * number + 2 && i < team; i++) {
        struct worker *worker = &pool->workers[i];
        if (atomic_load(&worker->is_asleep) &&
            atomic_exchange(&worker->is_asleep, false))
            sem_post(&worker->wake);
    }
}

/* Runs the tasks of thread `number`'s partition, then steals tasks of other
 * partitions.  Returns the number of tasks that this call ran. */
static int64_t job_run_tasks(struct pool *pool, uint32_t number, uint32_t team)
{
    int64_t done = 0;
    pool_fn fn = pool->fn;
    const void *work = pool->work;
    int64_t chunk = pool->chunk;
    for (uint32_t i = 0; i < team; i++) {
        uint32_t at = number + i < team ? number + i : number + i - team;
        struct worker *partition = &pool->workers[at];
        while (atomic_load_explicit(&partition->next, memory_order_relaxed) <
               partition->end) {
            int64_t first = atomic_fetch_add_explicit(&partition->next, chunk,
                                                      memory_order_relaxed);
            if (first >= partition->end)
                break;
            int64_t end =
                partition->end - first > chunk ? first + chunk : partition->end;
            fn(work, first, end);
            done += end - first;
        }
    }
    return done;
}

/* Joins the open job and runs tasks until none is left.  Returns false if no
 * open job needs the worker; otherwise stores the job's generation in
 * *out_seen. */
static bool job_join(struct worker *worker, uint_fast64_t *out_seen)
{
    struct pool *pool = worker->pool;
    atomic_store(&worker->is_working, true);
    uint_fast64_t job_word = atomic_load(&pool->job_word);
    uint32_t team = job_word_team(job_word);
    bool open = team > worker->number;
    if (open) {
        *out_seen = job_word >> 16;
        sleepers_wake(pool, worker->number, team);
        job_run_tasks(pool, worker->number, team);
    }
    atomic_store(&worker->is_working, false);
    if (atomic_load(&pool->caller_sleeps) &&
        atomic_exchange(&pool->caller_sleeps, false))
        sem_post(&pool->left);
    return open;
}

/* Records and returns the CPU that the calling thread runs on.  The thread is
 * worker `number`. */
static int worker_record_cpu(struct pool *pool, uint32_t number)
{
    int processor = sched_getcpu();
    atomic_int *seen = &pool->last_cpu[number];
    if (atomic_load_explicit(seen, memory_order_relaxed) != processor)
        atomic_store_explicit(seen, processor, memory_order_relaxed);
    return processor;
}

bool affinity_avoid(struct affinity *out, const int *processors, uint32_t count)
{
    /* sched_getaffinity fails if cpu_set_t is too small for this machine. */
    if (sched_getaffinity(0, sizeof out->found, &out->found) != 0)
        return false;
    out->narrow = out->found;
    for (uint32_t i = 0; i < count; i++)
        if (processors[i] >= 0 && processors[i] < CPU_SETSIZE)
            CPU_CLR(processors[i], &out->narrow);
    return CPU_COUNT(&out->narrow) > 0 &&
           sched_setaffinity(0, sizeof out->narrow, &out->narrow) == 0;
}

void affinity_back(const struct affinity *affinity)
{
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) == 0 &&
        CPU_EQUAL(&now, &affinity->narrow))
        sched_setaffinity(0, sizeof affinity->found, &affinity->found);
}

/* Removes busy processors from the affinity of a worker that is about to sleep:
 * the caller's processor, or the processors of all threads if a lower-numbered
 * worker shares this worker's processor.  Otherwise, the scheduler could wake
 * the worker on the processor of the thread that wakes it, and keep both
 * threads there for 0.1 s while other processors idle.  Returns false if the
 * affinity is unchanged. */
static bool worker_avoid_busy_cpus(struct worker *worker, struct affinity *out)
{
    struct pool *pool = worker->pool;
    int processor = worker_record_cpu(pool, worker->number), seen[MAX_THREADS];
    uint32_t threads = atomic_load(&pool->threads), count = 1;
    for (uint32_t i = 0; i < threads; i++) {
        seen[i] =
            atomic_load_explicit(&pool->last_cpu[i], memory_order_relaxed);
        if (i > 0 && i < worker->number && seen[i] == processor)
            count = threads;
    }
    bool off = affinity_avoid(out, seen, count) ||
               (count > 1 && affinity_avoid(out, seen, 1));
    worker_record_cpu(pool, worker->number);
    return off;
}

void workers_spin_for(struct pool *pool, double wakeup_ns)
{
    atomic_store(&pool->spin_ns, wakeup_ns < MIN_SPIN_NS   ? MIN_SPIN_NS
                                 : wakeup_ns > MAX_SPIN_NS ? MAX_SPIN_NS
                                                           : wakeup_ns);
}

void workers_spin_always(struct pool *pool)
{
    atomic_store(&pool->spin_ns, 10 * MAX_SPIN_NS);
}

/* Sleeps until a job needs this worker or the pool is destroyed. */
static void worker_sleep(struct worker *worker, uint_fast64_t seen)
{
    struct pool *pool = worker->pool;
    struct affinity affinity;
    bool off = worker_avoid_busy_cpus(worker, &affinity);
    atomic_fetch_sub(&pool->awake, 1);
    atomic_store(&worker->is_asleep, true);
    uint_fast64_t job_word = atomic_load(&pool->job_word);
    bool wanted =
        job_word_team(job_word) > worker->number && job_word >> 16 != seen;
    if ((!wanted && !atomic_load(&pool->stop)) ||
        !atomic_exchange(&worker->is_asleep, false))
        semaphore_wait(&worker->wake);
    atomic_fetch_add(&pool->awake, 1);
    if (off)
        affinity_back(&affinity);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    uint_fast64_t seen = 0;
    double idle_since = now_ns();
    for (uint32_t polls = 1; !atomic_load(&pool->stop); polls++) {
        uint_fast64_t job_word =
            atomic_load_explicit(&pool->job_word, memory_order_relaxed);
        if (job_word_team(job_word) > worker->number &&
            job_word >> 16 != seen) {
            if (job_join(worker, &seen))
                idle_since = now_ns();
            continue;
        }
        if (polls % POLLS_PER_CLOCK == 0 &&
            now_ns() - idle_since > atomic_load(&pool->spin_ns)) {
            worker_sleep(worker, seen);
            idle_since = now_ns();
        }
        cpu_pause();
    }
    return NULL;
}

/* Returns true if a worker of the job may still access the job's data. */
static bool workers_are_working(struct pool *pool, uint32_t team)
{
    for (uint32_t i = 1; i < team; i++)
        if (atomic_load(&pool->workers[i].is_working))
            return true;
    return false;
}

/* Waits until no worker accesses the job: spins for spin_ns, then sleeps. */
static void workers_await(struct pool *pool, uint32_t team)
{
    double spin_ns = atomic_load(&pool->spin_ns), start = 0;
    for (uint32_t polls = 0; workers_are_working(pool, team); polls++) {
        cpu_pause();
        if (polls % POLLS_PER_CLOCK != 0)
            continue;
        start = start == 0 ? now_ns() : start;
        if (now_ns() - start < spin_ns)
            continue;
        if (pool->owner != getpid()) {
            /* After fork, a child has no workers but inherits their flags. */
            for (uint32_t i = 1; i <= pool->started; i++)
                atomic_store(&pool->workers[i].is_working, false);
            atomic_store(&pool->threads, 1);
            return;
        }
        atomic_store(&pool->caller_sleeps, true);
        if (workers_are_working(pool, team) ||
            !atomic_exchange(&pool->caller_sleeps, false))
            semaphore_wait(&pool->left);
    }
}

/* Divides the tasks into one contiguous partition for each thread. */
static void partitions_make(struct pool *pool, int64_t tasks, uint32_t team)
{
    int64_t partition = tasks / team, rest = tasks % team, from = 0;
    pool->chunk =
        partition > CHUNKS_PER_PARTITION ? partition / CHUNKS_PER_PARTITION : 1;
    for (uint32_t i = 0; i < team; i++) {
        struct worker *worker = &pool->workers[i];
        atomic_store_explicit(&worker->next, from, memory_order_relaxed);
        from += partition + (i < rest ? 1 : 0);
        worker->end = from;
    }
}

double job_run(struct pool *pool, pool_fn fn, const void *work, int64_t tasks,
               uint32_t team)
{
    uint_fast64_t job_word =
        atomic_load_explicit(&pool->job_word, memory_order_relaxed);
    uint_fast64_t generation = (job_word >> 16) + 1;
    partitions_make(pool, tasks, team);
    pool->fn = fn;
    pool->work = work;
    worker_record_cpu(pool, 0);
    atomic_store(&pool->job_word, generation << 16 | team);
    sleepers_wake(pool, 0, team);
    double start = now_ns();
    int64_t done = job_run_tasks(pool, 0, team);
    double end = now_ns();
    atomic_store(&pool->job_word, generation << 16);
    workers_await(pool, team);
    return done > 0 ? (end - start) / (double)done : 0;
}

void workers_start(struct pool *pool)
{
    uint32_t max = cpu_count_available();
    uint32_t wanted = pool->threads < max ? pool->threads : max;
    pool->owner = getpid();
    for (uint32_t i = 1; i < wanted; i++)
        atomic_store(&pool->last_cpu[i], -1);
    worker_record_cpu(pool, 0);
    while (pool->started + 1 < wanted) {
        struct worker *worker = &pool->workers[pool->started + 1];
        worker->pool = pool;
        worker->number = pool->started + 1;
        sem_init(&worker->wake, 0, 0);
        atomic_fetch_add(&pool->awake, 1);
        if (!guarded_thread_start(&worker->thread, "tandem-cpu", STACK_BYTES,
                                  worker_main, worker)) {
            atomic_fetch_sub(&pool->awake, 1);
            break;
        }
        pool->started++;
    }
    pool->threads = pool->started + 1;
}

void workers_stop(struct pool *pool)
{
    atomic_store(&pool->stop, true);
    /* A child process after fork has no workers to join. */
    for (uint32_t i = 1; pool->owner == getpid() && i <= pool->started; i++) {
        struct worker *worker = &pool->workers[i];
        if (atomic_exchange(&worker->is_asleep, false))
            sem_post(&worker->wake);
        pthread_join(worker->thread, NULL);
        sem_destroy(&worker->wake);
    }
}
