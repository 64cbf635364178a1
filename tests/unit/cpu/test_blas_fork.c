/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork while threads run CBLAS calls: no thread is inside a CBLAS call in
 * the child, and child and parent may make such calls. The fork's wait sleeps
 * on a simulated clock.
 */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/test_list.h"
#include "cpu/gemm/blas_guard.h"

#define THREADS 2
#define FORKS 40
#define STEPS 100000 /* Steps inside one call. */
#define CHILD_LIMIT_S 60
/* A fork gives up after thousands of sleeps. */
#define LONG_NAP_NS 10000000

static atomic_int inside;
static atomic_bool stop;
static int naps;    /* Sleeps of the current fork. */
static long nap_ns; /* 0 means that time stands still. */

/* Counts only the sleeps of the forking thread. */
int nanosleep(const struct timespec *length, struct timespec *left)
{
    const struct timespec nap = {.tv_nsec = nap_ns};

    (void)length, (void)left;
    naps++;
    return nap_ns > 0 ? clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) : 0;
}

static void call(void)
{
    blas_enter();
    atomic_fetch_add(&inside, 1);
    for (volatile int i = 0; i < STEPS; i++)
        continue;
    atomic_fetch_sub(&inside, 1);
    blas_leave();
}

static void *calls(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop))
        call();
    return NULL;
}

/* Returns true if no thread was inside a call when the child started. */
static bool child_finds_no_caller(void)
{
    int status;
    pid_t id;

    naps = 0;
    id = fork();
    ck_assert_int_ne(id, -1);
    if (id == 0) {
        bool none = atomic_load(&inside) == 0;

        alarm(CHILD_LIMIT_S);
        call();
        if (blas_limit())
            blas_release();
        _exit(none ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(id, &status, 0), id);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d",
                  WTERMSIG(status));
    return WEXITSTATUS(status) == 0;
}

TEST(forks_wait_for_calls)
{
    pthread_t threads[THREADS];

    ck_assert(blas_fork_guard_install());
    nap_ns = LONG_NAP_NS;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, calls, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        ck_assert(child_finds_no_caller());
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Simulates a fork in a signal handler that interrupted a call. */
TEST(forks_stop_waiting)
{
    ck_assert(blas_fork_guard_install());
    ck_assert(child_finds_no_caller());
    ck_assert_int_eq(naps, 0);
    blas_enter();
    atomic_fetch_add(&inside, 1);
    ck_assert(!child_finds_no_caller());
    ck_assert_int_gt(naps, 1000);
    atomic_fetch_sub(&inside, 1);
    blas_leave();
    ck_assert(child_finds_no_caller());
    ck_assert_int_eq(naps, 0);
}

TEST_MAIN(tests_run("blas"))
