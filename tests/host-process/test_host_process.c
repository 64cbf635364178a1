/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host process isolation of the host library and the CPU plugin: the state of
 * the host process does not change, threads respect the host's limits, nothing
 * is printed, and neither a small stack nor an unusual floating-point
 * environment causes errors.
 */
#include <config.h>

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fp_environment.h"
#include "unit/host/support.h"
#include "process_state.h"
#include "process_workload.h"

static float results[WORK_RESULTS], expected[WORK_RESULTS];

/* Returns a used context with this number of CPU threads (NULL: default). */
static struct tandem_context *context_after_work(const char *threads,
                                                 float *out)
{
    const char *const pairs[] = {threads ? "num_threads" : NULL, threads,
                                 NULL};
    struct tandem_context *context = context_with(pairs);

    work_run(context, device_named(context, "cpu"), out);
    return context;
}

static uint32_t threads_named(const char *name, struct process_thread *out)
{
    const uint32_t count = process_threads(out);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(out[i].name, name) == 0)
            out[kept++] = out[i];
    }
    return kept;
}

static struct process_thread threads[PROCESS_THREADS];

/* ---- state of the host process ---- */

static void signal_ignore(int number)
{
    (void)number;
}

TEST(process_state_is_unchanged)
{
    struct process before, after;
    struct sigaction own = {.sa_handler = signal_ignore};
    char path[4096], changes[1024];
    struct tandem_profile *profile;
    struct tandem_context *context;

    sigaction(SIGUSR1, &own, NULL);
    sigaction(SIGFPE, &own, NULL);
    umask(037);
    process_read(&before);
    context = context_after_work(NULL, results);
    profile = profile_new(context, "cpu");
    OK(tandem_profile_set_scalar(profile, "launch", 1234.5));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    process_read(&after);
    process_compare(&before, &after);
    process_changes(&before, &after, changes, sizeof changes);
    ck_assert_str_eq(changes, "");
    tandem_context_destroy(context);
    process_free(&after);
    process_read(&after);
    process_compare(&before, &after);
    process_changes(&before, &after, changes, sizeof changes);
    ck_assert_str_eq(changes, "");
    process_free(&before);
    process_free(&after);
}

static volatile sig_atomic_t handled, handled_elsewhere;
static pid_t own_thread;

static void thread_note(int number)
{
    (void)number;
    if (gettid() != own_thread)
        handled_elsewhere = 1;
    handled = handled + 1;
}

TEST(signals_are_left_to_the_host)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    struct sigaction own = {.sa_handler = thread_note};
    sigset_t usr1;
    uint32_t count;

    own_thread = gettid();
    sigaction(SIGUSR1, &own, NULL);
    context_after_work(NULL, results);
    count = process_threads(threads);
    ck_assert_msg(sysconf(_SC_NPROCESSORS_ONLN) == 1 || count > 0,
                  "nothing to test: no helper was started");
    threads_blocked(threads, count);
    /* If this thread blocks the signal, no other thread may handle it. */
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    kill(getpid(), SIGUSR1);
    nanosleep(&moment, NULL);
    ck_assert_int_eq(handled, 0);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    ck_assert_int_eq(handled, 1);
    ck_assert_int_eq(handled_elsewhere, 0);
}

/* ---- threads ---- */

TEST(helpers_have_names_and_end)
{
    struct tandem_context *context = context_after_work(NULL, results);

    ck_assert_msg(sysconf(_SC_NPROCESSORS_ONLN) == 1 ||
                      threads_named("tandem-cpu", threads) > 0,
                  "no thread is named tandem-cpu");
    tandem_context_destroy(context);
    ck_assert_uint_eq(threads_named("tandem-cpu", threads), 0);
}

/* Limits the process to one of its CPUs, which it returns. */
static cpu_set_t one_processor_set(void)
{
    cpu_set_t all, one;
    int processor = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(processor, &all))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    return one;
}

TEST(one_processor_no_helper)
{
    const cpu_set_t one = one_processor_set();
    uint32_t count;

    context_after_work(NULL, results);
    ck_assert_uint_eq(threads_named("tandem-cpu", threads), 0);
    count = process_threads(threads);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(CPU_EQUAL(&threads[i].processors, &one),
                      "\"%s\" may leave the processor", threads[i].name);
}

/*
 * The host limits its CPUs after the device was opened; worker threads start
 * later and must respect the limit.
 */
TEST(cpus_limited_after_open)
{
    struct tandem_context *context = context_new(NULL);
    const struct tandem_backend *backend;
    struct tandem_device *device;

    OK(tandem_device_backend(context, device_named(context, "cpu"), &backend,
                             &device));
    one_processor_set();
    work_run(context, device_named(context, "cpu"), results);
    ck_assert_uint_eq(threads_named("tandem-cpu", threads), 0);
}

static const struct {
    const char *value;
    bool warned, alone;
} thread_cases[] = {
    {"1", false, true},
    {"0", false, false},
    {"100000", false, false},
    {"99999999999999999999999999", false, false},
    {"-1", true, false},
    {" 1", true, false},
    {"1 ", true, false},
    {"+1", true, false},
    {"0x1", true, false},
    {"1e3", true, false},
    {"many", true, false},
    {"1.5", true, false},
};

LOOP_TEST(threads_by_environment, CASES_IN(thread_cases))
{
    const bool several = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    uint32_t count;

    setenv("TANDEM_NUM_THREADS", thread_cases[_i].value, 1);
    context_after_work(NULL, results);
    count = threads_named("tandem-cpu", threads);
    if (thread_cases[_i].alone)
        ck_assert_uint_eq(count, 0);
    else
        ck_assert_msg(!several || count > 0, "no helper with \"%s\"",
                      thread_cases[_i].value);
    ck_assert_int_lt((int)count, (int)sysconf(_SC_NPROCESSORS_ONLN));
    expect_warnings(thread_cases[_i].warned, "TANDEM_NUM_THREADS");
}

/* Options of the caller must be valid. */
TEST(threads_by_option)
{
    static const char *const wrong[] = {"-1", " 1", "many", "", "1.5"};
    struct tandem_context *context;

    context = context_after_work("1", results);
    ck_assert_uint_eq(threads_named("tandem-cpu", threads), 0);
    tandem_context_destroy(context);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const pairs[] = {"num_threads", wrong[i], NULL};
        const struct tandem_backend *backend;
        struct tandem_device *device;

        context = context_with(pairs);
        BAD(tandem_device_backend(context, device_named(context, "cpu"),
                                  &backend, &device));
        tandem_context_destroy(context);
    }
}

/* ---- a small stack ---- */

/* Sanitizers enlarge stack frames. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMALL_BYTES ((size_t)1 << 20)
#else
#define SMALL_BYTES ((size_t)64 << 10)
#endif

/* Includes loading the plugins. */
static void *small_main(void *argument)
{
    (void)argument;
    tandem_context_destroy(context_after_work(NULL, results));
    return NULL;
}

TEST(small_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;

    tandem_context_destroy(context_after_work(NULL, expected));
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_BYTES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, small_main, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    work_compare(expected, results, "on a stack of 64 KiB");
}

/* ---- files ---- */

TEST(files_closed)
{
    static struct process_files before, during, after;
    struct tandem_context *context;

    process_files(&before);
    context = context_after_work(NULL, results);
    process_files(&during);
    tandem_context_destroy(context);
    process_files(&after);
    for (uint32_t i = 0; i < during.count; i++)
        ck_assert_msg(during.left_open == before.left_open,
                      "an exec would inherit one of these: %s",
                      during.names[i]);
    for (uint32_t i = 0; i < after.count; i++)
        ck_assert_msg(after.count == before.count,
                      "%u files were open, now %u: %s", before.count,
                      after.count, after.names[i]);
}

/* The host has closed descriptors 0 to 2 and opened files with the numbers. */
TEST(nothing_printed)
{
    const struct tandem_context_options options = {
        .log_level = TANDEM_LOG_DEBUG};
    struct tandem_profile *profile;
    struct tandem_context *context;
    struct stat status;
    off_t bytes = 0;
    uint32_t device;
    int saved[3], files[3];

    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    for (int i = 0; i < 3; i++)
        files[i] = open(scratch_path("file%d", i), O_RDWR | O_CREAT, 0600);
    context = context_new(&options);
    device = device_named(context, "cpu");
    work_run(context, device, results);
    if (tandem_device_find(context, "no such", &device) == TANDEM_OK ||
        tandem_profile_create(context, 99, &profile) == TANDEM_OK)
        files[0] = -1;
    if (tandem_profile_create(context, 0, &profile) != TANDEM_OK ||
        tandem_profile_save(profile, NULL, NULL, 0) != TANDEM_OK)
        files[0] = -1;
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    for (int i = 0; i < 3; i++) {
        if (fstat(i, &status) == 0)
            bytes += status.st_size;
        dup2(saved[i], i);
        close(saved[i]);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(files[i], i);
    ck_assert_int_eq(bytes, 0);
}

/* ---- the floating-point environment ---- */

static void down_set(void)
{
    fesetround(FE_DOWNWARD);
}

static void up_set(void)
{
    fesetround(FE_UPWARD);
}

static void chop_set(void)
{
    fesetround(FE_TOWARDZERO);
}

/* Enables traps for all exceptions that the CPU can trap. */
static void traps_set(void)
{
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
}

static void plain_set(void)
{
}

static const struct {
    const char *name;
    void (*set)(void);
} environments[] = {
    {"traps enabled", traps_set},
    {"rounding down", down_set},
    {"rounding up", up_set},
    {"rounding to zero", chop_set},
    {"subnormals flushed", fp_environment_flush},
    {"the default", plain_set},
};

/* Runs the work in a thread with this environment, and restores it. */
static void work_in_environment(void (*set)(void),
                                struct fp_environment *out_before,
                                struct fp_environment *out_after)
{
    struct tandem_profile *profile;
    struct tandem_context *context;
    struct tandem_explanation why = {.struct_size = sizeof why};
    enum tandem_status status;
    double ns = 0;

    set();
    *out_before = fp_environment_read();
    context = context_after_work(NULL, results);
    OK(tandem_explain_last(context, &why));
    OK(tandem_device_predict_cost(context, 0, "transcendental", 1e15, &ns));
    profile = profile_new(context, "cpu");
    status = tandem_profile_add_curve_point(profile, "transcendental", 4096,
                                            777.125);
    ck_assert_int_eq(status, TANDEM_OK);
    OK(tandem_profile_set_scalar(profile, "launch", 0.1));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    *out_after = fp_environment_read();
    fesetenv(FE_DFL_ENV);
}

LOOP_TEST(float_environment_of_the_host, CASES_IN(environments))
{
    struct fp_environment before, after;

    tandem_context_destroy(context_after_work(NULL, expected));
    work_in_environment(environments[_i].set, &before, &after);
    fp_environment_compare(before, after);
    work_compare(expected, results, environments[_i].name);
}

/* A profile with values out of range, read while traps are enabled. */
TEST(extreme_values_with_traps)
{
    static const char *const numbers[] = {"1e999", "-1e999", "1e-999",
                                          "4.9e-324", "1e308", "0.1"};
    struct tandem_profile *profile;
    struct tandem_context *context = context_new(NULL);
    char path[4096], *text, *at;

    work_run(context, device_named(context, "cpu"), expected);
    profile = profile_new(context, "cpu");
    OK(tandem_profile_set_scalar(profile, "launch", 12345.5));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    text = file_read(path);
    at = strstr(text, "12345.5");
    ck_assert_ptr_nonnull(at);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char changed[8192];
        uint32_t calibrated = 2;

        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text,
                 numbers[i], at + strlen("12345.5"));
        file_write(path, changed);
        traps_set();
        context = context_new(NULL);
        OK(tandem_device_is_calibrated(context, 0, &calibrated));
        work_run(context, device_named(context, "cpu"), results);
        tandem_context_destroy(context);
        fesetenv(FE_DFL_ENV);
        work_compare(expected, results, numbers[i]);
        ck_assert_msg(calibrated == (i >= 2 && i != 4), "%s: %u", numbers[i],
                      calibrated);
    }
    free(text);
}

TEST_MAIN(host_tests_run("host-process", NULL, NULL))
