/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins with misbehaving devices, and setuid programs: everything else loads
 * and works.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define STRANGER 12345

static const char *self;

/* Creates a context whose simulated device misbehaves. */
static struct tandem_context *context_with_bad(const char *script)
{
    setenv("TANDEM_TEST_PLUGIN", script, 1);
    return context_new(NULL);
}

/* Runs one operator on the misbehaving device. */
static enum tandem_status bad_device_run(struct tandem_context *context,
                                         float *x, float *y)
{
    struct tandem_tensor *tx = vector_wrap(context, x, 1);
    struct tandem_tensor *ty = vector_wrap(context, y, 1);
    enum tandem_status status = unary_status(
        context, device_named(context, "simulated"), TANDEM_OP_RELU, tx, ty);

    /* With a timeout that ends before the wait begins, the wait is a poll. */
    return status == TANDEM_OK ? tandem_tensor_sync(ty, UINT64_C(10000000000))
                               : status;
}

/* ---- devices ---- */

LOOP_TEST(test_too_many_devices, 2)
{
    struct tandem_context *context =
        context_with_bad(_i == 0 ? "many" : "nodescribe");
    uint32_t count = 0, device;

    OK(tandem_device_count(context, &count));
    ck_assert_uint_le(count, TANDEM_MAX_DEVICES);
    expect_warnings(1, "4294967295");
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    ck_assert_int_eq(tandem_device_find(context, "simulated", &device),
                     _i == 0 ? TANDEM_OK : TANDEM_NO_DEVICE);
    context_works(context);
}

/* The text that is shown and saved is valid, whatever a plugin reports. */
TEST(test_garbage_from_describe)
{
    struct tandem_context *context = context_with_bad("garbage");
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_profile *profile;
    const uint32_t bad = device_named(context, "simulated");
    char expected[128];

    OK(tandem_device_describe(context, bad, &info));
    ck_assert_uint_eq(info.struct_size, sizeof info);
    ck_assert_uint_ge(info.kind, TANDEM_DEVICE_CPU);
    ck_assert_uint_le(info.kind, TANDEM_DEVICE_ACCELERATOR);
    ck_assert_int_eq(info.duplicate_of, -1);
    memset(expected, '?', sizeof expected);
    expected[sizeof expected - 1] = '\0';
    ck_assert_str_eq(info.name, expected);
    ck_assert_str_eq(info.vendor, expected);
    ck_assert_str_eq(info.platform, expected);
    ck_assert_str_eq(info.driver_version, expected);
    ck_assert_uint_eq(strlen(info.pci_address), sizeof info.pci_address - 1);
    ck_assert_uint_eq(strlen(info.extensions), sizeof info.extensions - 1);
    ck_assert_uint_eq(strlen(info.quirks), sizeof info.quirks - 1);
    profile = profile_new(context, "simulated");
    OK(tandem_profile_add_curve_point(profile, "transcendental", 10, 77));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    context_works(context);
}

TEST(test_a_backend_whose_count_fails)
{
    struct tandem_context *context = context_with_bad("count=7");
    uint32_t device;

    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    ck_assert_ptr_nonnull(tandem_context_load_error(context, 0));
    context_works(context);
}

TEST(test_errors_without_a_text)
{
    struct tandem_context *context = context_with_bad("noerror");
    uint32_t device;

    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    expect_warnings(1, "gave no reason");
    context_works(context);
}

static const struct {
    const char *backends, *script;
    enum tandem_status status;
    /* Until the device is excluded; MAX_OOM_OPEN_FAILURES of device.c. */
    int attempts;
} openings[] = {
    {"cpu,simulated", "open=3", TANDEM_NO_DEVICE, 1},
    {"cpu,simulated", "open=7", TANDEM_FAILED, 1},
    {"cpu,simulated", "open=4", TANDEM_OUT_OF_MEMORY, 8},
    {"cpu,simulated", "open=99", TANDEM_FAILED, 1},
    {"cpu,simulated", "open=-1", TANDEM_FAILED, 1},
    {"cpu,simulated", "opennull", TANDEM_FAILED, 1},
    {"cpu,simulated", "stream=7", TANDEM_FAILED, 1},
    {"cpu,simulated", "stream=77", TANDEM_FAILED, 1},
    {"cpu,simulated", "open=1", TANDEM_INVALID_ARGUMENT, 1},
    {"simulated", "open=7", TANDEM_FAILED, 1},
    {"simulated", "open=1", TANDEM_INVALID_ARGUMENT, 1},
};

/*
 * After a failed open there is nothing to close, whatever pointer it returned.
 * After TANDEM_OUT_OF_MEMORY, the open is retried a few times. Later calls
 * return the same error; another device is used if there is one.
 */
LOOP_TEST(test_devices_that_do_not_open, CASES_IN(openings))
{
    const bool has_cpu = strcmp(openings[_i].backends, "simulated") != 0;
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_context *context;
    struct tandem_tensor *tx, *ty;
    float x = 1, y = 0;
    uint32_t simulated;

    setenv("TANDEM_BACKENDS", openings[_i].backends, 1);
    context = context_with_bad(openings[_i].script);
    simulated = device_named(context, "simulated");
    tx = vector_wrap(context, &x, 1);
    ty = vector_wrap(context, &y, 1);
    for (int i = 0; i < openings[_i].attempts + 2; i++) {
        FAILS(openings[_i].status, bad_device_run(context, &x, &y));
        expect_last_error("simulated:0: ");
        FAILS(openings[_i].status, tandem_tensor_prefetch(tx, simulated));
        if (has_cpu)
            continue;
        FAILS(openings[_i].status,
              tandem_unary(context, TANDEM_OP_NEG, tx, ty));
        expect_last_error("simulated:0: could not be opened: ");
    }
    OK(tandem_device_describe(context, simulated, &info));
    /* A program that passes invalid options must see the error. */
    expect_warnings(openings[_i].status != TANDEM_INVALID_ARGUMENT, "not used");
    if (has_cpu)
        context_works(context);
}

/* The chosen device stays the same, because its plugin rejects an option. */
TEST(test_rejected_options_are_reported_every_time)
{
    static const char *const options[] = {"max_isa", "x", NULL};
    struct tandem_context *context = context_with(options);
    float x = 1, y = 0;
    struct tandem_tensor *tx = vector_wrap(context, &x, 1);
    struct tandem_tensor *ty = vector_wrap(context, &y, 1);

    for (int i = 0; i < 3; i++) {
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_unary(context, TANDEM_OP_NEG, tx, ty));
        expect_last_error("cpu:0: could not be opened: open: max_isa \"x\"");
    }
}

TEST(test_undefined_statuses)
{
    struct tandem_context *context = context_with_bad("status");
    float x = 1, y = 0;

    FAILS(TANDEM_FAILED, bad_device_run(context, &x, &y));
    context_works(context);
}

struct stuck {
    struct tandem_context *context;
    float x, y;
};

static void *stuck_run(void *user)
{
    struct stuck *stuck = user;

    bad_device_run(stuck->context, &stuck->x, &stuck->y);
    return NULL;
}

/*
 * A plugin that ignores its timeouts blocks its caller, but no other thread.
 * The thread and the context remain until the process ends.
 */
TEST(test_waits_that_never_return)
{
    static struct stuck stuck;
    pthread_t thread;

    stuck.context = context_with_bad("deaf");
    context_works(stuck.context);
    device_named(stuck.context, "simulated");
    ck_assert_int_eq(pthread_create(&thread, NULL, stuck_run, &stuck), 0);
    while (counters_read(0).waits == 0)
        usleep(1000);
    for (int i = 0; i < 100; i++)
        context_works(stuck.context);
    pthread_detach(thread);
    contexts_leave();
}

/* ---- secure execution ---- */

static const char *const environment[] = {
    "TANDEM_PLUGIN_PATH", "TANDEM_BACKENDS", "TANDEM_DEVICE",
    "TANDEM_PROFILE_DIR", "TANDEM_LOG",      "TANDEM_NUM_THREADS",
    "XDG_CACHE_HOME"};
#define ENVIRONMENT_COUNT (sizeof environment / sizeof *environment)

/*
 * Runs the program with more rights than its user has. The environment must be
 * ignored, with a log message for each variable. plain: runs the program
 * without these rights, and the environment is used.
 */
static int secure_child(const char *plugins, bool plain)
{
    const struct tandem_context_options options = {.struct_size =
                                                       sizeof options,
                                                   .plugin_path = plugins,
                                                   .log = log_capture};
    struct tandem_context *context;
    struct tandem_profile *profile;
    uint32_t device, ignored = 0;
    char path[4096];
    bool simulated;

    if (tandem_context_create(&options, &context) != TANDEM_OK)
        return 2;
    /* TANDEM_BACKENDS selects only the CPU. */
    simulated = tandem_device_find(context, "simulated", &device) == TANDEM_OK;
    for (size_t i = 0; i < ENVIRONMENT_COUNT; i++)
        ignored += log_count(TANDEM_LOG_WARNING, environment[i]) > 0;
    if (plain)
        return !simulated && ignored == 0 ? 0 : 3;
    if (!simulated || ignored != ENVIRONMENT_COUNT)
        return 4;
    /* TANDEM_PROFILE_DIR and XDG_CACHE_HOME contain directories. */
    if (tandem_profile_create(context, device, &profile) != TANDEM_OK ||
        tandem_profile_save(profile, NULL, path, sizeof path) == TANDEM_OK)
        return 5;
    tandem_context_destroy(context);
    return 0;
}

/*
 * A setgid program gives its user an effective group that is not the real one.
 */
static int secure_run(const char *kind)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(60);
        if (strcmp(kind, "secure") == 0 &&
            setresgid((gid_t)-1, STRANGER, (gid_t)-1) != 0)
            _exit(8);
        execl(self, self, kind, scratch_path("plugins"), (char *)NULL);
        _exit(9);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(test_secure_execution)
{
    setenv("TANDEM_PLUGIN_PATH", "/nowhere", 1);
    setenv("TANDEM_BACKENDS", "cpu", 1);
    setenv("TANDEM_DEVICE", "cpu", 1);
    setenv("TANDEM_PROFILE_DIR", scratch_path("profiles"), 1);
    setenv("TANDEM_LOG", "warning", 1);
    setenv("TANDEM_NUM_THREADS", "1", 1);
    ck_assert_int_eq(secure_run("plain"), 0);
    ck_assert_int_eq(access(scratch_path("cache/tandem"), F_OK), 0);
    directory_remove(scratch_path("cache"));
    if (geteuid() != 0) /* Only root can change groups. */
        return;
    ck_assert_int_eq(secure_run("secure"), 0);
    ck_assert_int_ne(access(scratch_path("cache/tandem"), F_OK), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return secure_child(argv[2], strcmp(argv[1], "plain") == 0);
    self = realpath("/proc/self/exe", NULL);
    return host_tests_run("hostile", NULL, NULL);
}
