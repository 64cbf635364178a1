/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs out of memory: each allocation of a workload fails, alone and together
 * with all later ones, in a new process each time. The process must not crash,
 * must report each failure, must not leak, and must compute correct results
 * when it repeats the call. Each operator of the CPU plugin is tested alone, in
 * one process, while each allocation of its launch fails.
 *
 * TANDEM_TEST_LONG=1 tests all allocations; otherwise only some of them fail
 * together with all later ones. TANDEM_TEST_ALLOCATION=N tests the N-th alone.
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
#include "operator_allocations.h"

/* Report of a child process. */
struct report {
    uint64_t failed; /* The number of allocations that failed. */
    /* The number of live blocks after a second run without failures. */
    uint64_t live;
};

/* Memory that is shared with the child processes. */
static struct report *report;

static void profiles_forget(const char *path)
{
    directory_remove(path);
    directory_make(path);
}

/* Runs the workload with a failure, then without, in a child process. */
static void process_main(uint64_t n, enum allocation_mode mode)
{
    const struct workload_paths paths = {scratch_path("plugins"),
                                         scratch_path("profiles")};

    if (getenv("TANDEM_TEST_ALLOCATION") != NULL)
        allocation_trace();
    tzset(); /* Allocates what the C library never frees. */
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
                    (unsigned long long)report->live, (unsigned long long)live);
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

static void each_fails(enum allocation_mode mode, uint64_t call_succeeded)
{
    const char *only = getenv("TANDEM_TEST_ALLOCATION");
    const uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    const struct report whole = process_run(0, mode, 0);
    uint64_t n = first;

    ck_assert_uint_gt(whole.live, 0);
    while (process_run(n, mode, whole.live).failed > 0 && only == NULL)
        n += call_succeeded;
    /* The workload must be large enough to test something. */
    ck_assert(only != NULL || n > 200);
}

TEST(test_once)
{
    each_fails(ALLOCATION_ONCE, 1);
}

TEST(test_from)
{
    const char *text = getenv("TANDEM_TEST_LONG");

    each_fails(ALLOCATION_FROM, text && strcmp(text, "1") == 0 ? 1 : 5);
}

TEST(test_operators)
{
    operator_allocations_fail(scratch_path("plugins"));
}

int main(void)
{
    TCase *tests = case_new("allocation");

    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return EXIT_FAILURE;
    /* Makes OpenBLAS start faster in each process. */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    (void)dlopen("libopenblas.so.0", RTLD_NOW);
    tcase_set_timeout(tests, 1200);
    tests_add(tests);
    return runner_run_case("allocation", tests);
}
