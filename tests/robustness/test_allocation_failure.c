/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out: each allocation of a workload fails in its turn, alone
 * and with all that follow, in a process of its own that has used nothing
 * before.  Nothing crashes, every failure is told, nothing is lost, and what
 * is tried again is right.  TANDEM_TEST_LONG=1: all of them; else some of
 * those with all that follow.  TANDEM_TEST_ALLOCATION=N: the N-th alone.
 */
#include <config.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "unit/host/support.h"
#include "allocation_workload.h"

/* What a process tells of itself. */
struct report {
    uint64_t failed; /* allocations */
    uint64_t live;   /* blocks, after another run that did not fail */
};

static struct report *report; /* shared with the processes */

static void profiles_forget(const char *path)
{
    directory_remove(path);
    directory_make(path);
}

/* In a process of its own: the workload with a failure, then without. */
static void process_main(uint64_t n, enum allocation_mode mode)
{
    const struct workload_paths paths = {scratch_path("plugins"),
                                         scratch_path("profiles")};

    if (getenv("TANDEM_TEST_ALLOCATION") != NULL)
        allocation_trace();
    tzset(); /* what the C library keeps */
    profiles_forget(paths.profiles);
    allocation_fail(n, mode);
    workload_run(&paths);
    report->failed = allocation_failed();
    allocation_fail(0, mode);
    profiles_forget(paths.profiles);
    workload_run(&paths);
    report->live = allocation_live();
}

static struct report process_run(uint64_t n, enum allocation_mode mode,
                                 uint64_t live)
{
    int status = 0;
    pid_t child;

    memset(report, 0, sizeof *report);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60);
        process_main(n, mode);
        if (live > 0 && report->live != live) {
            fprintf(stderr, "%llu blocks live, not %llu\n",
                    (unsigned long long)report->live,
                    (unsigned long long)live);
            allocation_live_print();
            allocation_failure_print();
            _exit(1);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "allocation %llu failed %s: the process %s %d",
                  (unsigned long long)n,
                  mode == ALLOCATION_ONCE ? "alone" : "with all that follow",
                  WIFEXITED(status) ? "exited with" : "was ended by signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return *report;
}

static void each_fails(enum allocation_mode mode, uint64_t step)
{
    const char *only = getenv("TANDEM_TEST_ALLOCATION");
    const uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    const struct report whole = process_run(0, mode, 0);
    uint64_t n = first;

    ck_assert_uint_gt(whole.live, 0);
    while (process_run(n, mode, whole.live).failed > 0 && only == NULL)
        n += step;
    /* The workload is no small one. */
    ck_assert(only != NULL || n > 200);
}

START_TEST(test_once)
{
    each_fails(ALLOCATION_ONCE, 1);
}
END_TEST

START_TEST(test_from)
{
    const char *text = getenv("TANDEM_TEST_LONG");

    each_fails(ALLOCATION_FROM, text && strcmp(text, "1") == 0 ? 1 : 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("allocation");
    TCase *tests = case_new(suite, "allocation");

    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return EXIT_FAILURE;
    /* OpenBLAS need not be loaded by each process anew. */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    (void)dlopen("libopenblas.so.0", RTLD_NOW);
    tcase_set_timeout(tests, 1200);
    tcase_add_test(tests, test_once);
    tcase_add_test(tests, test_from);
    return suite_run(suite);
}
