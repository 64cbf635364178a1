/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins with misbehaving devices, directories with very many plugins, and
 * setuid programs: everything else loads and works.
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

static void directory_new(const char *name)
{
    directory_remove(scratch_path("%s", name));
    directory_make(scratch_path("%s", name));
}

/* Creates a context with the CPU plugin, the simulated GPU and a bad plugin. */
static struct tandem_context *context_with_bad(const char *script)
{
    char path[4096];
    const struct tandem_context_options options = {.plugin_path = path};

    snprintf(path, sizeof path, "%s", scratch_path("bad"));
    setenv("TANDEM_TEST_PLUGIN", script, 1);
    directory_new("bad");
    file_copy(scratch_path("bad/tandem-example.so"),
              build_path("tandem-scripted.so"));
    file_copy(scratch_path("bad/tandem-cpu.so"), build_path("tandem-cpu.so"));
    file_copy(scratch_path("bad/tandem-simulated.so"),
              build_path("tandem-simulated.so"));
    return context_new(&options);
}

/* Runs one operator on the misbehaving device. */
static enum tandem_status bad_device_run(struct tandem_context *context,
                                         float *x, float *y)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_RELU};
    struct tandem_tensor *tx = vector_wrap(context, x, 1);
    struct tandem_tensor *ty = vector_wrap(context, y, 1);
    enum tandem_status status = tandem_run_on(
        context, device_named(context, "example"), &op, &tx, 1, &ty, 1);

    if (status == TANDEM_OK)
        status = tandem_tensor_sync(ty, 1000000);
    return status;
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
    ck_assert_int_eq(tandem_device_find(context, "example", &device),
                     _i == 0 ? TANDEM_OK : TANDEM_NO_DEVICE);
    context_works(context);
}

/* The text that is shown and saved is valid, whatever a plugin reports. */
TEST(test_garbage_from_describe)
{
    struct tandem_context *context = context_with_bad("garbage");
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_profile *profile;
    const uint32_t bad = device_named(context, "example");
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
    profile = profile_new(context, "example");
    OK(tandem_profile_add_curve_point(profile, "transcendental", 10, 77));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    context_works(context);
}

TEST(test_errors_without_a_text)
{
    struct tandem_context *context = context_with_bad("noerror");
    uint32_t device;

    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "example", &device));
    expect_warnings(1, "gave no reason");
    context_works(context);
}

static const struct {
    const char *script;
    enum tandem_status status;
    /* Until the device is excluded; MAX_OOM_OPEN_FAILURES of device.c. */
    int attempts;
} openings[] = {
    {"open=3", TANDEM_NO_DEVICE, 1},     {"open=7", TANDEM_FAILED, 1},
    {"open=4", TANDEM_OUT_OF_MEMORY, 8}, {"open=99", TANDEM_FAILED, 1},
    {"open=-1", TANDEM_FAILED, 1},       {"opennull", TANDEM_FAILED, 1},
    {"stream=7", TANDEM_FAILED, 1},      {"stream=77", TANDEM_FAILED, 1},
    {"open=1", TANDEM_INVALID_ARGUMENT, 1},
};

/*
 * After a failed open there is nothing to close, whatever pointer it returned.
 * After TANDEM_OUT_OF_MEMORY, the open is retried a few times. Later calls
 * return the same error.
 */
LOOP_TEST(test_devices_that_do_not_open, CASES_IN(openings))
{
    struct tandem_context *context = context_with_bad(openings[_i].script);
    float x = 1, y = 0;

    for (int i = 0; i < openings[_i].attempts + 2; i++) {
        FAILS(openings[_i].status, bad_device_run(context, &x, &y));
        expect_last_error("example:0: ");
    }
    /* A program that passes invalid options must see the error. */
    expect_warnings(openings[_i].status != TANDEM_INVALID_ARGUMENT, "not used");
    context_works(context);
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
    device_named(stuck.context, "example");
    ck_assert_int_eq(pthread_create(&thread, NULL, stuck_run, &stuck), 0);
    while (log_count(TANDEM_LOG_WARNING, "waits for ever") == 0)
        usleep(1000);
    for (int i = 0; i < 100; i++)
        context_works(stuck.context);
    pthread_detach(thread);
    contexts_leave();
}

/* ---- directories ---- */

/* All plugins are examined in order, and invalid ones do not hide others. */
TEST(test_many_plugins_in_a_directory)
{
    char path[4096];
    const struct tandem_context_options options = {.plugin_path = path};
    struct tandem_context *context;
    uint32_t problems = 0;

    snprintf(path, sizeof path, "%s", scratch_path("many"));
    directory_new("many");
    for (int i = 0; i < 200; i++)
        file_write(scratch_path("many/tandem-%03d.so", i), "no plugin");
    file_copy(scratch_path("many/tandem-simulated.so"),
              build_path("tandem-simulated.so"));
    file_copy(scratch_path("many/tandem-cpu.so"), build_path("tandem-cpu.so"));
    context = context_new(&options);
    while (problems < 200) {
        const char *problem = tandem_context_load_error(context, problems);
        char name[32];

        snprintf(name, sizeof name, "tandem-%03u.so", problems++);
        ck_assert_msg(problem != NULL && strstr(problem, name) != NULL,
                      "%s is not about %s", problem, name);
    }
    ck_assert_ptr_null(tandem_context_load_error(context, problems));
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    device_named(context, "simulated");
    context_works(context);
}

/*
 * A directory listed twice, under two names, and a plugin in two directories:
 * each plugin is loaded once.
 */
TEST(test_duplicate_plugins)
{
    char path[8192];
    const struct tandem_context_options options = {.plugin_path = path};
    struct tandem_context *context;
    uint32_t count = 0;

    directory_new("twice");
    file_copy(scratch_path("twice/tandem-simulated.so"),
              build_path("tandem-simulated.so"));
    file_copy(scratch_path("twice/tandem-cpu.so"), build_path("tandem-cpu.so"));
    file_copy(scratch_path("twice/tandem-aaa.so"), build_path("tandem-cpu.so"));
    ck_assert_int_eq(link(scratch_path("twice/tandem-simulated.so"),
                          scratch_path("twice/tandem-zzz.so")),
                     0);
    ck_assert_int_eq(symlink("twice", scratch_path("alias")), 0);
    snprintf(path, sizeof path, "%s:%s:%s/../twice", scratch_path("twice"),
             scratch_path("alias"), scratch_path("plugins"));
    context = context_new(&options);
    OK(tandem_device_count(context, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    ck_assert_ptr_null(tandem_context_load_error(context, 0));
    context_works(context);
    tandem_context_destroy(context);
    ck_assert_int_eq(unlink(scratch_path("alias")), 0);
}

TEST(test_untrusted_directories)
{
    struct tandem_context *context;
    char path[8192];
    const struct tandem_context_options both = {.plugin_path = path};
    uint32_t device;

    directory_new("open");
    directory_new("open/in");
    file_copy(scratch_path("open/in/tandem-simulated.so"),
              build_path("tandem-simulated.so"));
    file_copy(scratch_path("open/in/tandem-cpu.so"),
              build_path("tandem-cpu.so"));
    directory_new("good");
    file_copy(scratch_path("good/tandem-cpu.so"), build_path("tandem-cpu.so"));
    snprintf(path, sizeof path, "%s:%s", scratch_path("open/in"),
             scratch_path("good"));
    context = context_new(&both);
    device_named(context, "simulated");
    tandem_context_destroy(context);
    ck_assert_int_eq(chmod(scratch_path("open"), 0777), 0);
    context = context_new(&both);
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    expect_warnings(1, "/open can be written by others");
    context_works(context);
    tandem_context_destroy(context);
    ck_assert_int_eq(chmod(scratch_path("open"), 0700), 0);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(scratch_path("open/in"), STRANGER, STRANGER), 0);
    context = context_new(&both);
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    expect_warnings(1, "/open/in belongs to another user");
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
