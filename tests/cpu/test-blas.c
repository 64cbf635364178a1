/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork while threads multiply: the child finds none of them inside a call of
 * the CBLAS, and may make calls itself, as may the parent.
 */
#include <config.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/runner.h"
#include "cpu/blas.h"

#define THREADS 2
#define FORKS 40
#define STEPS 100000 /* inside, of one call */
#define CHILD_LIMIT_S 60

static atomic_int inside;
static atomic_bool stop;

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

/* Whether none was inside when the child began. */
static bool child_finds_none(void)
{
    int status;
    pid_t id = fork();

    ck_assert_int_ne(id, -1);
    if (id == 0) {
        bool none = atomic_load(&inside) == 0;

        alarm(CHILD_LIMIT_S);
        call();
        if (blas_limit(1))
            blas_release();
        _exit(none ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(id, &status, 0), id);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d",
                  WTERMSIG(status));
    return WEXITSTATUS(status) == 0;
}

START_TEST(forks_wait_for_calls)
{
    pthread_t threads[THREADS];
    int good = 0;

    ck_assert(blas_watch());
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, calls, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        good += child_finds_none();
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* A fork does not wait for ever, however busy the machine. */
    ck_assert_int_gt(good, FORKS / 2);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("blas");

    tcase_add_test(tests, forks_wait_for_calls);
    return runner_run_case("blas", tests);
}
