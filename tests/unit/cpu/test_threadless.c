/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system that refuses new threads, as beyond RLIMIT_NPROC. The simulated
 * machine has 8 CPUs and a limit of threads that the test sets. The CPU plugin
 * must load and multiply, or report what is missing, without raising a signal
 * or printing anything. One thread makes all calls; each test runs in its own
 * process.
 */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_list.h"
#include "unit/host/support.h"

#define PROCESSORS 8
#define SIZE 256
#define CHILD_LIMIT_S 60
/* Replaces the C library's function for all libraries. */
#define REPLACES __attribute__((visibility("default")))

/* ---- the simulated system ------------------------------------------------ */

/* Threads in addition to the first one. */
static atomic_int thread_limit = PROCESSORS;
static atomic_int alive;
static atomic_int refused_threads;
/* The CPUs of the calling thread; 0 means all. */
static _Thread_local int own_processors;

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *thread_run(void *argument)
{
    const struct start start = *(struct start *)argument;
    void *result;

    free(argument);
    result = start.run(start.argument);
    atomic_fetch_sub(&alive, 1);
    return result;
}

REPLACES int pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                            void *(*run)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                  void *);
    struct start *start = malloc(sizeof *start);
    int result;

    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (start == NULL || atomic_load(&alive) >= atomic_load(&thread_limit)) {
        free(start);
        atomic_fetch_add(&refused_threads, 1);
        return EAGAIN;
    }
    *start = (struct start){run, argument};
    atomic_fetch_add(&alive, 1);
    result = create(out, attributes, thread_run, start);
    if (result != 0) {
        atomic_fetch_sub(&alive, 1);
        free(start);
    }
    return result;
}

REPLACES int sched_getaffinity(pid_t id, size_t bytes, cpu_set_t *out)
{
    const int count = own_processors > 0 ? own_processors : PROCESSORS;

    (void)id;
    memset(out, 0, bytes);
    for (int i = 0; i < count; i++)
        CPU_SET_S((size_t)i, bytes, out);
    return 0;
}

REPLACES int sched_setaffinity(pid_t id, size_t bytes, const cpu_set_t *set)
{
    (void)id;
    own_processors = CPU_COUNT_S(bytes, set);
    return 0;
}

/*
 * ---- observations of the host ---------------------------------------------
 */

static atomic_int interrupts;

static void interrupt(int number)
{
    (void)number;
    atomic_fetch_add(&interrupts, 1);
}

/* Redirects standard error to a file. */
static void host_setup(void)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const int file =
        open(scratch_path("stderr"), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(sigaction(SIGINT, &action, NULL), 0);
    ck_assert_int_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
}

static bool expect_host_undisturbed(void)
{
    struct stat printed;

    return atomic_load(&interrupts) == 0 &&
           stat(scratch_path("stderr"), &printed) == 0 && printed.st_size == 0;
}

/* Runs a GEMM of ones. */
static enum tandem_status gemm_run(struct tandem_context *context)
{
    static float a[SIZE * SIZE], c[SIZE * SIZE];
    const int64_t shape[2] = {SIZE, SIZE};
    struct tandem_tensor *ta, *tc;
    enum tandem_status status;

    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = 1;
        c[i] = 0;
    }
    OK(tandem_tensor_wrap(context, a, TANDEM_F32, 2, shape, NULL, 0, &ta));
    OK(tandem_tensor_wrap(context, c, TANDEM_F32, 2, shape, NULL, 0, &tc));
    status = tandem_matmul(context, NULL, ta, ta, tc);
    if (status == TANDEM_OK)
        status = tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE);
    for (int i = 0; status == TANDEM_OK && i < SIZE * SIZE; i++)
        ck_assert(c[i] == SIZE);
    tandem_tensor_destroy(ta);
    tandem_tensor_destroy(tc);
    return status;
}

static struct tandem_context *cpu_context(void)
{
    setenv("TANDEM_BACKENDS", "cpu", 1);
    return context_new(NULL);
}

/* ---- tests -------------------------------------------------------------- */

/* OpenBLAS starts 7 threads if it can. */
static const int numbers[] = {0, 1, 3, PROCESSORS - 2, PROCESSORS - 1};

LOOP_TEST(loading, CASES_IN(numbers))
{
    struct tandem_context *context;
    const bool enough = numbers[_i] >= PROCESSORS - 1;

    host_setup();
    atomic_store(&thread_limit, numbers[_i]);
    context = cpu_context();
    ck_assert(expect_host_undisturbed());
    ck_assert_int_eq(own_processors == 0 || own_processors == PROCESSORS, 1);
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, "refuses new threads") > 0,
                      !enough);
    OK(gemm_run(context));
    tandem_context_destroy(context);
    ck_assert(expect_host_undisturbed());
}

/* OpenBLAS stops its threads before a fork and starts them again later. */
static void gemm_run_after_fork(struct tandem_context *context)
{
    const enum tandem_status status = gemm_run(context);

    if (status != TANDEM_OK) {
        ck_assert_int_eq(status, TANDEM_OUT_OF_MEMORY);
        expect_last_error("ulimit -u");
    }
    ck_assert(expect_host_undisturbed());
    atomic_store(&thread_limit, 4 * PROCESSORS);
    OK(gemm_run(context));
    ck_assert(expect_host_undisturbed());
}

TEST(forking)
{
    struct tandem_context *context;
    int status;
    pid_t child;

    host_setup();
    atomic_store(&thread_limit, 4 * PROCESSORS);
    context = cpu_context();
    OK(gemm_run(context));
    atomic_store(&thread_limit, 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(CHILD_LIMIT_S);
        atomic_store(&alive, 0);
        gemm_run_after_fork(cpu_context());
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gemm_run_after_fork(context);
}

int main(void)
{
    Suite *suite = suite_create("threadless");
    TCase *tests = case_new("threadless");

    tests_add(tests);
    suite_add_tcase(suite, tests);
    return runner_run(suite, CK_FORK);
}
