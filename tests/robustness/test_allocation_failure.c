/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs out of memory: each allocation of a workload fails, alone and together
 * with all later ones, in a new process each time. The process must not crash,
 * must report each failure, must not leak, and must compute correct results
 * when it repeats the call. A call that returns TANDEM_OUT_OF_MEMORY changed
 * nothing and may be repeated. The operators of the CPU plugin are tested in
 * one process, while each allocation of a launch fails.
 *
 * TANDEM_TEST_LONG=1 tests all allocations; otherwise only some of them fail
 * together with all later ones. TANDEM_TEST_ALLOCATION=N tests the N-th alone.
 */
#include <config.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap_tracking.h"
#include "host_workload.h"
#include "opencl_workload.h"
#include "operator_example.h"
#include "unit/host/support.h"

/* Elements of a tensor that starts the CPU plugin's threads. */
#define LARGE 65536

/* Report of a child process. */
struct report {
    uint64_t failed; /* The number of allocations that failed. */
    /* The number of live blocks after a second run without failures. */
    uint64_t live;
};

/* Memory that is shared with the child processes. */
static struct report *report;

/* ---- what calls return ---- */

static uint64_t failed_before;
static unsigned log_lines;

static void log_add(void *user, enum tandem_log_level level,
                    const char *message)
{
    (void)user, (void)level, (void)message;
    log_lines++;
}

/* A child process ends with a message and status 1. */
void host_violation(const char *what)
{
    fprintf(stderr, "%s (%s)\n", what, tandem_last_error());
    exit(1);
}

void host_call_begin(void)
{
    failed_before = heap_failed();
    heap_call_enter();
}

void host_call_end(void)
{
    heap_call_leave();
}

/*
 * If memory runs out, plugins that could not be loaded are skipped with a log
 * message; a context without any plugin fails with TANDEM_NO_DEVICE.
 */
bool host_call_succeeded(enum tandem_status status, const char *call,
                         int attempt, bool *out_again)
{
    *out_again = false;
    if (status == TANDEM_OK)
        return true;
    if (heap_failed() == failed_before || tandem_last_error()[0] == '\0' ||
        (status != TANDEM_OUT_OF_MEMORY &&
         !(status == TANDEM_NO_DEVICE && log_lines > 0))) {
        fprintf(stderr, "%s, attempt %d: ", tandem_status_name(status),
                attempt);
        host_violation(call);
    }
    *out_again = attempt < 2;
    return false;
}

bool host_synchronize(struct host_workload *work)
{
    enum tandem_status status;
    bool again;

    host_call_begin();
    status = tandem_context_synchronize(work->context, TANDEM_TIMEOUT_INFINITE);
    host_call_end();
    failed_before = 0; /* The error may be that of an earlier call. */
    return host_call_succeeded(status, "tandem_context_synchronize", 2, &again);
}

/* ---- the workload ---- */

static void context_end(struct host_workload *work)
{
    host_call_begin();
    tandem_context_destroy(work->context);
    host_call_end();
}

/* Returns true if the context has both devices, and the profile if any. */
static bool context_is_whole(struct host_workload *work, bool calibrated)
{
    uint32_t found = 0, count = 0;
    bool whole;

    if (!HOST_TRY(tandem_device_count(work->context, &count)))
        return false;
    host_call_begin();
    whole = tandem_device_find(work->context, "cpu", &work->cpu) == TANDEM_OK &&
            tandem_device_find(work->context, "simulated", &work->device) ==
                TANDEM_OK &&
            tandem_device_is_calibrated(work->context, work->device, &found) ==
                TANDEM_OK &&
            found == calibrated;
    host_call_end();
    if (!whole && (heap_failed() == 0 || log_lines == 0))
        host_violation("a context lacks something, and no log says why");
    return whole;
}

/*
 * Creates a context. If a plugin or a profile cannot be read because memory
 * runs out, it is skipped with a log message.
 */
static bool context_begin(struct host_workload *work, bool calibrated)
{
    static const char *const keys[] = {"num_threads", "test.unknown"};
    static const char *const values[] = {"2", "1"};
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .plugin_path = scratch_path("plugins"),
        .profile_path = scratch_path("profiles"),
        .open_keys = keys,
        .open_values = values,
        .open_count = 2,
        .log = log_add,
        .log_level = TANDEM_LOG_WARNING,
    };

    log_lines = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!HOST_TRY(tandem_context_create(&options, &work->context)))
            return false;
        if (context_is_whole(work, calibrated))
            return true;
        context_end(work);
    }
    return false;
}

/* Writes a profile of the simulated GPU. */
static bool profile_write(struct host_workload *work)
{
    struct tandem_profile *profile = NULL;
    char path[4096];
    bool written =
        HOST_TRY(tandem_profile_create(work->context, work->device, &profile));

    for (int i = 0; i < 3 && written; i++)
        written =
            HOST_TRY(tandem_profile_set_scalar(profile, "launch", 1000)) &&
            HOST_TRY(tandem_profile_add_curve_point(
                profile, i < 2 ? "upload" : "reduce", 64 << i, 1e3)) &&
            HOST_TRY(
                tandem_profile_add_gemm_point(profile, 1 << i, 1, 1, 100.0)) &&
            HOST_TRY(
                tandem_profile_set_tuning(profile, "width", i ? "4" : "8")) &&
            HOST_TRY(tandem_profile_set_note(profile, "missing", "gemm"));
    written = written &&
              HOST_TRY(tandem_profile_save(profile, NULL, path, sizeof path));
    host_call_begin();
    tandem_profile_destroy(profile);
    host_call_end();
    return written;
}

/* Uses devices and the profile. */
static bool devices_use(struct host_workload *work)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    const struct tandem_backend *table = NULL;
    struct tandem_device *device = NULL;
    const char *name = NULL, *path = NULL;
    uint32_t index = 9;
    double ns = 0;
    bool passed =
        HOST_TRY(tandem_device_describe(work->context, work->device, &info)) &&
        HOST_TRY(
            tandem_device_name(work->context, work->device, &name, &index)) &&
        HOST_TRY(
            tandem_device_profile_path(work->context, work->device, &path)) &&
        HOST_TRY(tandem_device_predict_cost(work->context, work->device,
                                            "launch", 0, &ns)) &&
        HOST_TRY(tandem_device_backend(work->context, work->device, &table,
                                       &device));

    if (passed && (strcmp(info.name, "Simulated GPU 0") != 0 ||
                   strcmp(name, "simulated") != 0 || index != 0 ||
                   path[0] != '/' || ns != 1000))
        host_violation("a device is not described as before");
    return passed;
}

/* The first error of a thread allocates memory for its message. */
static void error_report(void)
{
    host_call_begin();
    if (tandem_context_create(NULL, NULL) != TANDEM_INVALID_ARGUMENT ||
        tandem_last_error()[0] == '\0')
        host_violation("the error of libtandem");
    host_call_end();
}

/* Makes the profile directory empty and runs the workload. */
static void workload_run(void)
{
    struct host_workload work;

    directory_remove(scratch_path("profiles"));
    directory_make(scratch_path("profiles"));
    error_report();
    for (int calibrated = 0; calibrated < 2; calibrated++) {
        if (!context_begin(&work, calibrated))
            return;
        if (!calibrated)
            profile_write(&work);
        else if (devices_use(&work))
            host_sections_run(&work, LARGE);
        context_end(&work);
    }
}

/* Runs the workload with a failure, then without, in a child process. */
static void process_main(uint64_t n, uint64_t times)
{
    tzset(); /* Allocates what the C library never frees. */
    heap_fail(n, times);
    workload_run();
    report->failed = heap_failed();
    heap_fail(0, 0);
    workload_run();
    report->live = heap_blocks();
}

static struct report process_run(uint64_t n, uint64_t times, uint64_t live)
{
    int status = 0;
    pid_t child;

    memset(report, 0, sizeof *report);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60);
        process_main(n, times);
        if (live > 0 && report->live != live) {
            fprintf(stderr, "%llu blocks live, not %llu\n",
                    (unsigned long long)report->live, (unsigned long long)live);
            heap_print();
            heap_failure_print();
            _exit(1);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "allocation %llu failed %s: the process %s %d",
                  (unsigned long long)n,
                  times == 1 ? "alone" : "with all that follow",
                  WIFEXITED(status) ? "exited with" : "was ended by signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return *report;
}

static void each_fails(uint64_t times, uint64_t step)
{
    const char *only = getenv("TANDEM_TEST_ALLOCATION");
    const uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    const struct report whole = process_run(0, times, 0);
    uint64_t n = first;

    ck_assert_uint_gt(whole.live, 0);
    while (process_run(n, times, whole.live).failed > 0 && only == NULL)
        n += step;
    /* The workload must be large enough to test something. */
    ck_assert(only != NULL || n > 200);
}

TEST(test_once)
{
    each_fails(1, 1);
}

TEST(test_from)
{
    const char *text = getenv("TANDEM_TEST_LONG");

    each_fails(UINT64_MAX, text && strcmp(text, "1") == 0 ? 1 : 5);
}

/* ---- operators of the CPU plugin ---- */

/* A sequence of calls (shape SIZE_MAX), or the example of an operator. */
static bool part_run(struct workload *work, const struct tandem_op_info *info,
                     size_t shape, struct example_outputs *want)
{
    return info ? example_run(work, info, shape, want)
                : sequence_run(work, 1000, shape);
}

/*
 * Runs the part on a new device while allocation n fails, then again. Returns
 * true if an allocation failed.
 */
static bool part_fails(const struct tandem_backend *api,
                       const struct tandem_op_info *info, size_t shape,
                       struct example_outputs *want, uint64_t n)
{
    const char *name = info ? info->name : "sequence";
    const uint64_t live = heap_blocks();
    struct workload work = {.api = api, .section = name};
    uint64_t failed;
    bool passed;

    ck_assert(workload_open(&work, NULL));
    heap_fail(n, 1);
    passed = part_run(&work, info, shape, want);
    failed = heap_failed();
    heap_fail(0, 0);
    ck_assert_msg(passed || (failed > 0 && work.status == TANDEM_OUT_OF_MEMORY),
                  "%s: allocation %" PRIu64 ": %s", name, n, work.failed);
    ck_assert_msg(part_run(&work, info, shape, want),
                  "%s: after %" PRIu64 ": %s", name, n, work.failed);
    ck_assert_msg(!work.wrong[0], "%s: allocation %" PRIu64 ": %s", name, n,
                  work.wrong);
    workload_close(&work);
    if (heap_blocks() != live)
        heap_print();
    ck_assert_msg(heap_blocks() == live,
                  "%s: %" PRIu64 " blocks left after allocation %" PRIu64
                  " failed",
                  name, heap_blocks() - live, n);
    return failed > 0;
}

/* Lets each allocation of the part fail. Returns the number of failures. */
static uint64_t part_test(const struct tandem_backend *api,
                          const struct tandem_op_info *info, size_t shape)
{
    struct example_outputs want = {{NULL}};
    uint64_t n = 1;

    part_fails(api, info, shape, &want, 0);
    while (part_fails(api, info, shape, &want, n))
        n++;
    example_outputs_free(&want);
    return n - 1;
}

TEST(test_operators)
{
    const struct tandem_backend *api = workload_plugin(".libs/tandem-cpu.so");
    struct resident_op op;
    uint64_t failures = 0;

    ck_assert_ptr_nonnull(api);
    heap_watch(api);
    for (uint64_t seed = 1; seed <= 4; seed++)
        failures += part_test(api, NULL, seed);
    for (uint32_t id = 1; id < TANDEM_OP_ID_END; id++) {
        const struct tandem_op_info *info = tandem_op_by_id(id);
        bool tested = false;

        for (size_t i = 0; info && i < EXAMPLE_SHAPES &&
                           (i < FALLBACK_EXAMPLE_SHAPE || !tested);
             i++)
            if (example_build(&op, info, i)) {
                failures += part_test(api, info, i);
                tested = true;
            }
        ck_assert_msg(!info || tested, "%s has no example", info->name);
    }
    printf("%" PRIu64 " allocations of launches failed\n", failures);
    ck_assert_uint_gt(failures, 0);
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
