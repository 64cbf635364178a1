/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU plugin's thread pool: each task of a job runs exactly once,
 * whichever threads take part, and the number of threads follows the measured
 * cost.
 */
#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu/threads/worker.h"
#include "unit/host/support.h"

#define TASKS 5000

static const struct timespec rest = {.tv_nsec = 1000000};
/* The number of sleeps until the test gives up on another thread. */
#define MAX_SLEEPS 60000

struct count {
    atomic_int times[TASKS];
};

/* Takes long enough for worker threads to join. */
static void tasks_count(const void *work, int64_t first, int64_t end)
{
    struct count *count = *(struct count *const *)work;
    for (int64_t task = first; task < end; task++) {
        atomic_fetch_add(&count->times[task], 1);
        for (volatile int i = 0; i < 500; i++)
            continue;
    }
}

static void tasks_are_done(struct pool *pool, struct count *count,
                           int64_t tasks, int rounds)
{
    for (int64_t i = 0; i < TASKS; i++)
        atomic_store(&count->times[i], 0);
    for (int round = 0; round < rounds; round++)
        pool_run(pool, 1, tasks_count, &count, tasks, 1000);
    for (int64_t i = 0; i < TASKS; i++)
        ck_assert_int_eq(atomic_load(&count->times[i]), i < tasks ? rounds : 0);
}

LOOP_TEST(each_task_once, 4)
{
    static const int64_t tasks[] = {0, 1, 2, 3, 17, 63, 64, 1000, TASKS};
    static struct count count;
    struct pool *pool = pool_create((uint32_t)_i);
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        tasks_are_done(pool, &count, tasks[i], 20);
        nanosleep(&rest, NULL); /* The workers fall asleep. */
    }
    pool_destroy(pool);
}

static void *caller_main(void *pool)
{
    struct count *count = calloc(1, sizeof *count);
    for (int i = 0; i < 20; i++)
        tasks_are_done(pool, count, 700 + i, 5);
    free(count);
    return NULL;
}

TEST(callers_side_by_side)
{
    struct pool *pool = pool_create(0);
    pthread_t callers[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&callers[i], NULL, caller_main, pool);
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i], NULL);
    pool_destroy(pool);
}

/* The child has no worker threads and does not wait for them. */
TEST(child_works_alone)
{
    static struct count count;
    struct pool *pool = pool_create(0);
    tasks_are_done(pool, &count, TASKS, 3);
    pid_t child = fork();
    if (child == 0) {
        tasks_are_done(pool, &count, TASKS, 3);
        pool_destroy(pool);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    tasks_are_done(pool, &count, TASKS, 3);
    pool_destroy(pool);
}

struct blocked {
    struct pool *pool;
    struct count count;
    atomic_int working, released;
};

static void tasks_block(const void *work, int64_t first, int64_t end)
{
    struct blocked *blocked = *(struct blocked *const *)work;
    struct count *count = &blocked->count;
    tasks_count(&count, first, end);
    atomic_fetch_add(&blocked->working, 1);
    while (!atomic_load(&blocked->released))
        nanosleep(&rest, NULL);
}

static void *blocked_main(void *argument)
{
    struct blocked *blocked = argument;
    /* The cost of these tasks is known, so workers are woken. */
    pool_run(blocked->pool, 1, tasks_block, &blocked, TASKS, 1000);
    return NULL;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/*
 * A child that is forked while another thread runs a job has neither that
 * thread nor the workers. It may wait for locks of a sanitizer.
 */
LOOP_TEST(child_of_a_pool_at_work, !SANITIZED)
{
    static struct count count;
    static struct blocked blocked;
    pthread_t caller;
    int status = -1;
    blocked.pool = pool_create(2);
    tasks_are_done(blocked.pool, &count, TASKS, 3);
    pthread_create(&caller, NULL, blocked_main, &blocked);
    while (atomic_load(&blocked.working) == 0)
        nanosleep(&rest, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        tasks_are_done(blocked.pool, &count, TASKS, 3);
        pool_destroy(blocked.pool);
        _exit(0);
    }
    waitpid(child, &status, 0);
    atomic_store(&blocked.released, 1);
    pthread_join(caller, NULL);
    ck_assert_int_eq(status, 0);
    tasks_are_done(blocked.pool, &count, TASKS, 3);
    pool_destroy(blocked.pool);
}

static cpu_set_t allowed_set(void)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static void allow(const cpu_set_t *set)
{
    ck_assert_int_eq(sched_setaffinity(0, sizeof *set, set), 0);
}

/* Moves the calling thread to a CPU. */
static void move_to_cpu(int processor)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    allow(&one);
}

static int first_of(const cpu_set_t *set)
{
    int processor = 0;
    while (!CPU_ISSET(processor, set))
        processor++;
    return processor;
}

#define MOVES 40

TEST(sleeping_workers_stay_off_a_cpu)
{
    cpu_set_t before = allowed_set(), after;
    int first = first_of(&before);
    struct affinity affinity;
    if (CPU_COUNT(&before) < 2)
        return;
    for (uint32_t i = 0; i < MOVES; i++) {
        move_to_cpu(first);
        allow(&before);
        ck_assert(affinity_avoid(&affinity, &first, 1));
        ck_assert_int_ne(sched_getcpu(), first);
        after = allowed_set();
        ck_assert(!CPU_ISSET(first, &after));
        ck_assert_int_eq(CPU_COUNT(&after), CPU_COUNT(&before) - 1);
        affinity_back(&affinity);
        after = allowed_set();
        ck_assert(CPU_EQUAL(&after, &before));
    }
}

TEST(no_free_cpu_is_available)
{
    static const int odd[] = {-1, CPU_SETSIZE, 1 << 30};
    struct affinity affinity;
    cpu_set_t before = allowed_set(), after;
    int first = first_of(&before);
    ck_assert(affinity_avoid(&affinity, odd, 3));
    after = allowed_set();
    ck_assert(CPU_EQUAL(&after, &before));
    move_to_cpu(first);
    ck_assert(!affinity_avoid(&affinity, &first, 1));
    ck_assert_int_eq(sched_getcpu(), first);
    allow(&before);
}

/* An affinity that the host sets meanwhile is not reset. */
TEST(a_new_affinity_is_kept)
{
    struct affinity affinity;
    cpu_set_t before = allowed_set();
    int first = first_of(&before);
    if (CPU_COUNT(&before) < 2)
        return;
    ck_assert(affinity_avoid(&affinity, &first, 1));
    move_to_cpu(first);
    affinity_back(&affinity);
    cpu_set_t after = allowed_set();
    ck_assert(CPU_ISSET(first, &after) && CPU_COUNT(&after) == 1);
    allow(&before);
}

struct meeting_place {
    pthread_t caller;
    /* The thread id of the worker; 0 means that the caller waits for it. */
    atomic_int worker;
    cpu_set_t all;
    int processor;
};

/* Moves the worker to the caller's CPU. */
static void tasks_move_worker(const void *work, int64_t first, int64_t end)
{
    struct meeting_place *place = *(struct meeting_place *const *)work;
    for (int64_t task = first; task < end; task++) {
        for (volatile int i = 0; i < 5000; i++)
            continue;
        if (pthread_equal(pthread_self(), place->caller)) {
            for (int i = 0; i < MAX_SLEEPS && place->worker == 0; i++)
                nanosleep(&rest, NULL);
            if (place->worker == 0)
                place->worker = -1;
        } else if (place->worker == 0) {
            move_to_cpu(place->processor);
            allow(&place->all);
            place->worker = (int)syscall(SYS_gettid);
        }
    }
}

/* Returns the CPU on which a thread of this process ran last. */
static int cpu_of(int thread)
{
    char path[64], text[1024];
    int processor = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
    fclose(file);
    const char *at = strrchr(text, ')');
    ck_assert_ptr_nonnull(at);
    for (int field = 2; field < 39; field++) {
        at = strchr(at + 1, ' ');
        ck_assert_ptr_nonnull(at);
    }
    ck_assert_int_eq(sscanf(at, "%d", &processor), 1);
    return processor;
}

/* Returns true if a thread stays off a CPU, like sleeping workers. */
static bool is_off_cpu(int thread, int processor)
{
    cpu_set_t set;
    for (int i = 0; i < MAX_SLEEPS; i++) {
        ck_assert_int_eq(sched_getaffinity(thread, sizeof set, &set), 0);
        if (!CPU_ISSET(processor, &set))
            return true;
        nanosleep(&rest, NULL);
    }
    return false;
}

/* A worker that runs on the caller's CPU moves to another one. */
TEST(workers_leave_the_callers_cpu)
{
    struct meeting_place place = {
        .caller = pthread_self(), .worker = -1, .all = allowed_set()};
    struct meeting_place *pointer = &place;
    struct pool *pool = pool_create(2);
    if (CPU_COUNT(&place.all) < 2 || pool_threads(pool) < 2) {
        pool_destroy(pool);
        return;
    }
    pool_run(pool, 1, tasks_move_worker, &pointer, TASKS, 1000);
    place.processor = first_of(&place.all);
    move_to_cpu(place.processor);
    for (int i = 0; i < MOVES; i++) {
        place.worker = 0;
        pool_run(pool, 1, tasks_move_worker, &pointer, TASKS, 1000);
        ck_assert_msg(place.worker > 0, "no helper came");
        ck_assert(is_off_cpu(place.worker, place.processor));
        ck_assert_int_ne(cpu_of(place.worker), place.processor);
    }
    allow(&place.all);
    pool_destroy(pool);
}

static const struct team_costs costs = {.two = 1000,
                                        .all = 3800,
                                        .cold = 24000,
                                        .least = 2000,
                                        .fixed = 760,
                                        .each = 190};

static uint32_t team(struct team_credit *credit, double alone, uint32_t awake,
                     double now)
{
    return team_size_choose(&costs, credit, alone, 16, awake, now, 24000);
}

TEST(team_grows_with_work)
{
    struct team_credit credit = {0, 0};
    uint32_t last = 1;
    ck_assert_uint_eq(team(&credit, 1000, 16, 1), 1);
    for (double alone = 1000; alone < 1e6; alone *= 2) {
        uint32_t now = team(&credit, alone, 16, 1);
        ck_assert_uint_ge(now, last);
        last = now;
    }
    ck_assert_uint_eq(last, 16);
    ck_assert_uint_eq(team_size_choose(&costs, &credit, 1e6, 3, 16, 1, 24000),
                      3);
    ck_assert_uint_eq(team_size_choose(&costs, &credit, 1e6, 1, 16, 1, 24000),
                      1);
}

/*
 * A single job is too short to wake threads for. A sequence of jobs is not,
 * unless they are too far apart.
 */
TEST(sleeping_workers_are_woken)
{
    struct team_credit credit = {0, 0};
    double now = 1e9;
    int jobs = 0;
    ck_assert_uint_gt(team(&credit, 1e6, 1, now), 8);
    for (; team(&credit, 10000, 1, now) == 1 && jobs < 100; jobs++)
        now += 12000;
    ck_assert_int_gt(jobs, 1);
    ck_assert_int_lt(jobs, 10);
    for (jobs = 0; jobs < 100; jobs++) {
        now += 1e6;
        ck_assert_uint_eq(team(&credit, 10000, 1, now), 1);
    }
}

TEST(rates_are_learnt)
{
    ck_assert(team_learn(0, 5) == 5);
    ck_assert(team_learn(5, 2) == 2);
    float rate = team_learn(2, 10);
    ck_assert(rate > 2 && rate < 4);
    for (int i = 0; i < 100; i++)
        rate = team_learn(rate, 10);
    ck_assert(rate > 9.9f && rate <= 10);
}

/* One slow worker among many does not exclude others; among few, it counts. */
TEST(slow_workers_are_tolerated)
{
    struct team_costs known = {0};
    ck_assert_uint_eq(team_counted(2), 2);
    ck_assert_uint_eq(team_counted(3), 3);
    ck_assert_uint_eq(team_counted(4), 3);
    ck_assert_uint_eq(team_counted(16), 12);
    team_measured(&known, 1000, 2000, 12, 24000);
    ck_assert(known.each == 1000.0 / (9 - 2));
}

/* A time that was too long once, with two or all threads, is not kept. */
TEST(long_times_are_replaced)
{
    struct team_costs known = {0};
    team_measured(&known, 200000, 200000, 16, 200000);
    ck_assert(known.least == 400000 && known.each == 0);
    ck_assert(known.cold == 200000);
    team_measured(&known, 1000, 200000, 16, 300000);
    ck_assert(known.least == 2000 && known.cold == 200000);
    ck_assert(known.each > 14000);
    team_measured(&known, 5000, 3000, 16, 24000);
    ck_assert(known.least == 2000 && known.each == 200);
    ck_assert(known.fixed == 600 && known.cold == 24000);
    team_measured(&known, 900000, 900000, 16, 900000);
    ck_assert(known.least == 2000 && known.each == 200);
    ck_assert(known.cold == 24000);
}

TEST_MAIN(host_tests_run("pool", NULL, NULL))
