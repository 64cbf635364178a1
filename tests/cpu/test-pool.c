/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU plugin's threads: every task of a job is done once, whoever comes to
 * help, and the team is as large as what was measured makes worth it. */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu/pool.h"
#include "cpu/team.h"
#include "host/support.h"

#define TASKS 5000

struct count {
    atomic_int times[TASKS];
};

/* Long enough for helpers to come. */
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

START_TEST(each_task_once)
{
    static const int64_t tasks[] = {0, 1, 2, 3, 17, 63, 64, 1000, TASKS};
    static struct count count;
    struct pool *pool = pool_create((uint32_t)_i);
    const struct timespec rest = {.tv_nsec = 1000000};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        tasks_are_done(pool, &count, tasks[i], 20);
        nanosleep(&rest, NULL); /* helpers fall asleep */
    }
    pool_destroy(pool);
}
END_TEST

static void *caller_main(void *pool)
{
    struct count *count = calloc(1, sizeof *count);
    for (int i = 0; i < 20; i++)
        tasks_are_done(pool, count, 700 + i, 5);
    free(count);
    return NULL;
}

START_TEST(callers_side_by_side)
{
    struct pool *pool = pool_create(0);
    pthread_t callers[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&callers[i], NULL, caller_main, pool);
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i], NULL);
    pool_destroy(pool);
}
END_TEST

/* The child has none of the helpers, and does not wait for them. */
START_TEST(child_works_alone)
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
END_TEST

static const struct team_costs costs = {2000, 760, 190, 24000};

static uint32_t team(struct team_credit *credit, double alone, uint32_t awake,
                     double now)
{
    return team_choose(&costs, credit, alone, 16, awake, now, 24000);
}

START_TEST(team_grows_with_work)
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
    ck_assert_uint_eq(team_choose(&costs, &credit, 1e6, 3, 16, 1, 24000), 3);
    ck_assert_uint_eq(team_choose(&costs, &credit, 1e6, 1, 16, 1, 24000), 1);
}
END_TEST

/* One job is too short to wake threads for; a row of them is not, unless they
 * are too far apart. */
START_TEST(sleepers_are_woken)
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
END_TEST

START_TEST(rates_are_learnt)
{
    ck_assert(team_learn(0, 5) == 5);
    ck_assert(team_learn(5, 2) == 2);
    float rate = team_learn(2, 10);
    ck_assert(rate > 2 && rate < 4);
    for (int i = 0; i < 100; i++)
        rate = team_learn(rate, 10);
    ck_assert(rate > 9.9f && rate <= 10);
}
END_TEST

START_TEST(less_is_kept)
{
    struct team_costs known = {0}, seen;
    team_measured(&seen, 200000, 200000, 16, 200000);
    team_better(&known, &seen);
    ck_assert(known.least == 400000 && known.cold == 200000);
    team_measured(&seen, 1000, 3800, 16, 300000);
    team_better(&known, &seen);
    ck_assert(known.least == 2000 && known.each == 200);
    ck_assert(known.cold == 200000);
    team_measured(&seen, 5000, 6000, 16, 24000);
    team_better(&known, &seen);
    ck_assert(known.least == 2000 && known.each == 200);
    ck_assert(known.cold == 24000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = case_new(suite, "pool");

    tcase_add_loop_test(tests, each_task_once, 0, 4);
    tcase_add_test(tests, callers_side_by_side);
    tcase_add_test(tests, child_works_alone);
    tcase_add_test(tests, team_grows_with_work);
    tcase_add_test(tests, less_is_kept);
    tcase_add_test(tests, sleepers_are_woken);
    tcase_add_test(tests, rates_are_learnt);
    return suite_run(suite);
}
