/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin loader: which files it accepts, which it rejects with which
 * message, and that a failing plugin does not affect others.
 */
#include <config.h>

#include <installed_directories.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "required_entries.h"
#include "support.h"

/* Returns the load error that contains text, or NULL. */
static const char *load_error_with(struct tandem_context *context,
                                   const char *text)
{
    const char *problem;

    for (uint32_t i = 0; (problem = tandem_context_load_error(context, i)); i++)
        if (strstr(problem, text))
            return problem;
    return NULL;
}

/* Creates a directory with the CPU plugin and a file as tandem-other.so. */
static const char *directory_with(const char *build_name)
{
    const char *directory = scratch_path("with-%s", build_name);

    directory_remove(directory);
    directory_make(directory);
    file_copy(scratch_path("with-%s/tandem-cpu.so", build_name),
              build_path("tandem-cpu.so"));
    file_copy(scratch_path("with-%s/tandem-other.so", build_name),
              build_path(build_name));
    return directory;
}

static struct tandem_context *context_at(const char *directory)
{
    const struct tandem_context_options options = {.plugin_path = directory};

    return context_new(&options);
}

/* Checks that only tandem-other.so is rejected, with this reason. */
static void expect_rejected(const char *build_name, const char *reason)
{
    struct tandem_context *context = context_at(directory_with(build_name));
    const char *problem = load_error_with(context, "tandem-other.so");

    ck_assert_msg(problem != NULL, "%s was not rejected", build_name);
    ck_assert_msg(!reason || strstr(problem, reason), "\"%s\" does not say %s",
                  problem, reason);
    ck_assert_uint_ge(log_count(TANDEM_LOG_WARNING, "tandem-other.so"), 1);
    context_works(context);
    tandem_context_destroy(context);
}

static void scripted_refused(const char *script, const char *reason)
{
    setenv("TANDEM_TEST_PLUGIN", script, 1);
    expect_rejected("tandem-scripted.so", reason);
}

TEST(test_valid_plugins_load)
{
    struct tandem_context *context = context_new(NULL);
    const char *backend = NULL;
    uint32_t count = 0, index = 9;

    OK(tandem_device_count(context, &count));
    ck_assert_uint_ge(count, 2);
    OK(tandem_device_name(context, 0, &backend, &index));
    ck_assert_str_eq(backend, "cpu");
    ck_assert_uint_eq(index, 0);
    ck_assert_uint_lt(device_named(context, "simulated"), count);
    ck_assert_ptr_null(load_error_with(context, "tandem-cpu.so"));
    ck_assert_ptr_null(load_error_with(context, "tandem-simulated.so"));
    context_works(context);
}

TEST(test_the_environment_names_plugins)
{
    const struct tandem_context_options options = {.plugin_path = "/nowhere"};
    struct tandem_context *context;

    setenv("TANDEM_PLUGIN_PATH", scratch_path("plugins"), 1);
    context = context_new(&options);
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    device_named(context, "simulated");
}

TEST(test_the_environment_names_backends)
{
    struct tandem_context *context;
    uint32_t device;

    setenv("TANDEM_BACKENDS", "cpu", 1);
    context = context_new(NULL);
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    context_works(context);
    tandem_context_destroy(context);
    setenv("TANDEM_BACKENDS", "simulated,cpu", 1);
    context = context_new(NULL);
    device_named(context, "simulated");
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
}

TEST(test_the_option_names_backends)
{
    const struct tandem_context_options options = {.backends = "simulated"};
    struct tandem_context *context;
    uint32_t count = 0;

    setenv("TANDEM_BACKENDS", "cpu", 1);
    context = context_new(&options);
    ck_assert_uint_eq(device_named(context, "simulated"), 0);
    OK(tandem_device_count(context, &count));
    ck_assert_uint_eq(count, 1);
}

TEST(test_unknown_backends_are_named)
{
    static const char *const lists[] = {"cpu,foo", "foo,cpu", "cpu, foo",
                                        "cpu,foo,"};
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        setenv("TANDEM_BACKENDS", lists[i], 1);
        log_forget();
        context_new(NULL);
        ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING,
                                    "TANDEM_BACKENDS: there is no plugin \""),
                          i == 3 ? 2 : 1);
        ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, "foo\"; expected"), 1);
        ck_assert_uint_ge(log_count(TANDEM_LOG_WARNING, "simulated"), 1);
    }
    setenv("TANDEM_BACKENDS", "opencll", 1);
    options.plugin_path = scratch_path("plugins");
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("TANDEM_BACKENDS \"opencll\" names none of: ");
    expect_last_error("simulated");
    options.backends = "";
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("the option backends \"\" names none of: ");
    setenv("TANDEM_BACKENDS", "cpu,simulated", 1);
    log_forget();
    context_new(NULL);
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, "no plugin"), 0);
}

/* A context for the CPU loads no libraries of GPUs, which may be broken. */
static void cpu_plugin_alone(const struct tandem_context_options *options)
{
    struct tandem_context *context = context_new(options);
    uint32_t count = 0, device;

    OK(tandem_device_count(context, &count));
    ck_assert_uint_eq(count, 1);
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    expect_last_error(" allows only cpu");
    ck_assert_ptr_null(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD));
    ck_assert_ptr_null(dlopen("libclblast.so.1", RTLD_NOW | RTLD_NOLOAD));
    context_works(context);
    tandem_context_destroy(context);
}

TEST(test_the_cpu_needs_no_other_plugins)
{
    struct tandem_context_options options = {.device = "cpu",
                                             .plugin_path = build_path(".")};

    cpu_plugin_alone(&options);
    options.device = NULL;
    options.backends = "cpu";
    cpu_plugin_alone(&options);
    options.backends = NULL;
    setenv("TANDEM_DEVICE", "cpu", 1);
    cpu_plugin_alone(&options);
    /* A list has priority. */
    setenv("TANDEM_BACKENDS", "cpu,simulated", 1);
    device_named(context_new(NULL), "simulated");
}

TEST(test_no_plugins_is_no_device)
{
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context = (struct tandem_context *)&options;

    if (access(PLUGINDIR, F_OK) == 0) /* Plugins are installed. */
        return;
    options.plugin_path = "/nowhere";
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    ck_assert_ptr_null(context);
    expect_last_error("no plugins from /nowhere: the directory does not exist");
    options.plugin_path = NULL;
    unsetenv("TANDEM_PLUGIN_PATH");
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("no backend plugin was found in /");
    expect_last_error("set TANDEM_PLUGIN_PATH to their directory");
}

TEST(test_directories_that_are_named_should_exist)
{
    char path[4096];

    snprintf(path, sizeof path, "/nowhere:%s", scratch_path("plugins"));
    log_forget();
    context_works(context_at(path));
    expect_warnings(1,
                    "no plugins from /nowhere: the directory does not exist");
}

TEST(test_relative_and_empty_elements_are_ignored)
{
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context;
    char path[4096];

    ck_assert_int_eq(chdir(scratch_path(".")), 0);
    if (access(PLUGINDIR, F_OK) != 0) {
        options.plugin_path = "plugins::./plugins:";
        FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    }
    snprintf(path, sizeof path, "plugins::%s:", scratch_path("plugins"));
    log_forget();
    context = context_at(path);
    expect_warnings(1, "\"plugins\" of the plugin path ignored: it "
                       "is relative");
    expect_warnings(2, "\"\" of the plugin path ignored: it is empty");
    context_works(context);
}

TEST(test_text_is_no_plugin)
{
    const char *directory = directory_with("no-query-symbol-plugin.so");
    struct tandem_context *context;

    file_write(scratch_path("with-no-query-symbol-plugin.so/tandem-other.so"),
               "#!/bin/sh\necho not a shared object\n");
    context = context_at(directory);
    ck_assert_ptr_nonnull(load_error_with(context, "tandem-other.so"));
    context_works(context);
}

TEST(test_empty_and_cut_files_are_no_plugins)
{
    const char *directory = directory_with("tandem-simulated.so");
    const char *file = scratch_path("with-tandem-simulated.so/tandem-other.so");
    struct tandem_context *context;

    ck_assert_int_eq(truncate(file, 3000), 0);
    context = context_at(directory);
    ck_assert_ptr_nonnull(load_error_with(context, "tandem-other.so"));
    context_works(context);
    tandem_context_destroy(context);
    ck_assert_int_eq(truncate(file, 0), 0);
    context = context_at(directory);
    ck_assert_ptr_nonnull(load_error_with(context, "tandem-other.so"));
    context_works(context);
}

TEST(test_missing_symbol)
{
    expect_rejected("no-query-symbol-plugin.so", TANDEM_BACKEND_QUERY_SYMBOL);
}

TEST(test_wrong_major)
{
    scripted_refused("null", NULL);
    scripted_refused("major", NULL);
}

TEST(test_truncated_table)
{
    scripted_refused("size=0", NULL);
    scripted_refused("size=8", NULL);
    scripted_refused("size=64", NULL);
}

TEST(test_invalid_names)
{
    scripted_refused("noname", NULL);
    scripted_refused("name=", NULL);
    scripted_refused("name=Upper", NULL);
    scripted_refused("name=a b", NULL);
    scripted_refused("name=a:0", NULL);
}

/*
 * The first plugin of a name is used. A second one is not a load error,
 * because several directories often contain the same plugins.
 */
TEST(test_duplicate_name)
{
    struct tandem_context *context;
    uint32_t count = 0;

    setenv("TANDEM_TEST_PLUGIN", "name=cpu", 1);
    setenv("TANDEM_LOG", "info", 1);
    context = context_at(directory_with("tandem-scripted.so"));
    ck_assert_uint_ge(log_count(TANDEM_LOG_INFO, "tandem-other.so"), 1);
    OK(tandem_device_count(context, &count));
    ck_assert_uint_ge(count, 1);
    context_works(context);
}

static const char *const required[] = {
#define NAME(entry) #entry,
    REQUIRED_ENTRIES(NAME)};
static const char *const optional[] = {OPTIONAL_ENTRIES(NAME)};

LOOP_TEST(test_missing_required_entry, CASES_IN(required))
{
    char script[64];

    snprintf(script, sizeof script, "missing=%s", required[_i]);
    scripted_refused(script, required[_i]);
}

/* Checks that the plugin loads. It may have no device. */
static void expect_accepted(const char *script)
{
    struct tandem_context *context;
    uint32_t count;

    setenv("TANDEM_TEST_PLUGIN", script, 1);
    context = context_at(directory_with("tandem-scripted.so"));
    ck_assert_msg(!load_error_with(context, "tandem-other.so"), "%s: %s",
                  script, load_error_with(context, "tandem-other.so"));
    OK(tandem_device_count(context, &count));
    context_works(context);
    tandem_context_destroy(context);
}

LOOP_TEST(test_missing_optional_entry, CASES_IN(optional))
{
    char script[64];

    snprintf(script, sizeof script, "missing=%s", optional[_i]);
    /* An incomplete pair, such as host_free without host_alloc, is an error. */
    if (strstr(script, "host_") || strstr(script, "map") ||
        strstr(script, "capture") || strstr(script, "graph"))
        return;
    expect_accepted(script);
}

/* The table of a plugin that was built with an older header ends before the
 * entries that were appended later. */
TEST(test_older_table)
{
    for (size_t size = offsetof(struct tandem_backend, event_elapsed_ns);
         size <= sizeof(struct tandem_backend); size += sizeof(void *)) {
        char script[64];

        snprintf(script, sizeof script, "size=%zu", size);
        expect_accepted(script);
    }
}

/* The table of a newer plugin is larger than the host's. */
TEST(test_newer_minor_version)
{
    expect_accepted("good");
    expect_accepted("newer");
}

TEST(test_a_backend_whose_count_fails)
{
    struct tandem_context *context;
    uint32_t count = 0, device;

    setenv("TANDEM_TEST_PLUGIN", "count=7", 1);
    context = context_at(directory_with("tandem-scripted.so"));
    OK(tandem_device_count(context, &count));
    ck_assert_uint_ge(count, 1);
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "example", &device));
    ck_assert_ptr_nonnull(load_error_with(context, "example"));
    context_works(context);
}

/*
 * Returns true if a context with the plugin path with-tandem-simulated.so has
 * the simulated device.
 */
static bool simulated_device_is_found(void)
{
    struct tandem_context *context =
        context_at(scratch_path("with-tandem-simulated.so"));
    uint32_t device;
    const bool used =
        tandem_device_find(context, "simulated", &device) == TANDEM_OK;

    context_works(context);
    tandem_context_destroy(context);
    return used;
}

TEST(test_world_writable_files)
{
    const char *directory = directory_with("tandem-simulated.so");
    const char *file = scratch_path("with-tandem-simulated.so/tandem-other.so");

    ck_assert(simulated_device_is_found());
    ck_assert_int_eq(chmod(file, 0666), 0);
    ck_assert(!simulated_device_is_found());
    ck_assert_int_eq(chmod(file, 0600), 0);
    ck_assert(simulated_device_is_found());
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(file, 12345, 12345), 0);
        ck_assert(!simulated_device_is_found());
        ck_assert_int_eq(chown(file, 0, 0), 0);
    }
    (void)directory;
}

TEST(test_world_writable_directories)
{
    const char *directory = directory_with("tandem-simulated.so");
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context;
    char path[8192];

    ck_assert_int_eq(chmod(directory, 0777), 0);
    snprintf(path, sizeof path, "%s:%s", directory, scratch_path("plugins"));
    options.plugin_path = path;
    file_copy(scratch_path("with-tandem-simulated.so/tandem-zzz.so"),
              build_path("no-query-symbol-plugin.so"));
    context = context_new(&options);
    ck_assert_msg(!load_error_with(context, TANDEM_BACKEND_QUERY_SYMBOL),
                  "a library in a directory open to all was loaded");
    tandem_context_destroy(context);
    ck_assert_int_eq(chmod(directory, 0700), 0);
    ck_assert(simulated_device_is_found());
}

TEST(test_links_and_directories_are_no_plugins)
{
    struct tandem_context *context;
    uint32_t device;

    directory_with("tandem-simulated.so");
    ck_assert_int_eq(
        remove(scratch_path("with-tandem-simulated.so/tandem-other.so")), 0);
    ck_assert_int_eq(
        symlink(scratch_path("plugins/tandem-simulated.so"),
                scratch_path("with-tandem-simulated.so/tandem-simulated.so")),
        0);
    directory_make(scratch_path("with-tandem-simulated.so/tandem-dir.so"));
    context = context_at(scratch_path("with-tandem-simulated.so"));
    FAILS(TANDEM_NO_DEVICE, tandem_device_find(context, "simulated", &device));
    context_works(context);
}

TEST(test_other_names_are_ignored)
{
    struct tandem_context *context;

    directory_with("no-query-symbol-plugin.so");
    ck_assert_int_eq(
        rename(scratch_path("with-no-query-symbol-plugin.so/tandem-other.so"),
               scratch_path("with-no-query-symbol-plugin.so/libother.so")),
        0);
    context = context_at(scratch_path("with-no-query-symbol-plugin.so"));
    ck_assert_ptr_null(load_error_with(context, "libother.so"));
}

TEST(test_fallbacks_fill_the_table)
{
    struct tandem_context *context = context_new(NULL);
    const struct tandem_backend *table = NULL, *cpu = NULL;
    struct tandem_device *device = NULL;
    struct tandem_stream *stream = NULL;
    struct tandem_buffer *buffer = NULL;
    void *memory = NULL;

    OK(tandem_device_backend(context, device_named(context, "cpu"), &cpu,
                             &device));
    ck_assert_ptr_null(cpu->extension("test.1"));
    OK(tandem_device_backend(context, device_named(context, "simulated"),
                             &table, &device));
#define IS_THERE(entry) ck_assert_msg(table->entry != NULL, #entry);
    REQUIRED_ENTRIES(IS_THERE)
    OPTIONAL_ENTRIES(IS_THERE)
    ck_assert_ptr_nonnull(table->extension("test.1"));
    OK(table->trim(device, 0));
    OK(table->host_alloc(device, 100, &memory));
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq((uintptr_t)memory % 4096, 0);
    memset(memory, 1, 100);
    table->host_free(device, memory);
    OK(table->stream_create(device, 0, &stream));
    OK(table->alloc(device, TANDEM_BYTES(64), &buffer));
    ck_assert_int_eq(table->map(stream, buffer, 0, 64, TANDEM_MAP_READ,
                                TANDEM_TIMEOUT_INFINITE, &memory),
                     TANDEM_UNSUPPORTED);
    ck_assert_int_eq(table->launch(stream, NULL, NULL, 0, NULL, 0),
                     TANDEM_INVALID_ARGUMENT);
    table->prepared_release(NULL);
    ck_assert_int_eq(table->event_callback(NULL, NULL, NULL),
                     TANDEM_UNSUPPORTED);
    table->free(buffer);
    table->stream_destroy(stream);
}

TEST(test_creation_touches_no_device)
{
    const struct sim_counters before = counters_read(UINT32_MAX);
    struct tandem_context *context = context_new(NULL);

    ck_assert_uint_eq(counters_since(UINT32_MAX, &before).opens, 0);
    context_works(context); /* A small operator, which runs on the CPU. */
    device_named(context, "simulated");
    ck_assert_uint_eq(counters_since(UINT32_MAX, &before).opens, 0);
}

TEST(test_a_device_that_does_not_open)
{
    struct tandem_context *context;
    float x[4] = {1, -2, 3, -4}, y[4];
    struct tandem_tensor *tx, *ty;
    uint32_t simulated;

    setenv("TANDEM_SIM_OPEN", "3", 1);
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    tx = vector_wrap(context, x, 4);
    ty = vector_wrap(context, y, 4);
    FAILS(TANDEM_NO_DEVICE,
          tandem_run_on(
              context, simulated,
              &(struct tandem_op){.struct_size = sizeof(struct tandem_op),
                                  .id = TANDEM_OP_NEG},
              &tx, 1, &ty, 1));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y[3], 4);
    context_works(context);
}

static enum tandem_status neg_on(struct tandem_context *context,
                                 uint32_t device, struct tandem_tensor *x,
                                 struct tandem_tensor *y)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    return tandem_run_on(context, device, &op, &x, 1, &y, 1);
}

/* Each call reports why the device does not open, with the same status. */
TEST(test_a_failure_to_open_is_reported_every_time)
{
    static const struct {
        const char *backends, *open;
        enum tandem_status status;
    } cases[] = {{"simulated", "7", TANDEM_FAILED},
                 {"simulated", "1", TANDEM_INVALID_ARGUMENT},
                 {"cpu,simulated", "7", TANDEM_FAILED}};
    struct tandem_context *context;
    struct tandem_device_info info = {.struct_size = sizeof info};
    float x[4] = {1, -2, 3, -4}, y[4];
    struct tandem_tensor *tx, *ty;

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint32_t simulated;

        setenv("TANDEM_SIM_OPEN", cases[c].open, 1);
        setenv("TANDEM_BACKENDS", cases[c].backends, 1);
        context = context_new(NULL);
        simulated = device_named(context, "simulated");
        tx = vector_wrap(context, x, 4);
        ty = vector_wrap(context, y, 4);
        for (int i = 0; i < 3; i++) {
            FAILS(cases[c].status, neg_on(context, simulated, tx, ty));
            expect_last_error("simulated:0: could not be opened: ");
            FAILS(cases[c].status, tandem_tensor_prefetch(tx, simulated));
            if (c < 2) {
                FAILS(cases[c].status,
                      neg_on(context, TANDEM_ANY_DEVICE, tx, ty));
                expect_last_error("simulated:0: could not be opened: ");
            } else {
                OK(neg_on(context, TANDEM_ANY_DEVICE, tx, ty));
            }
        }
        OK(tandem_device_describe(context, simulated, &info));
    }
}

/* The chosen device stays the same, because its plugin rejects an option. */
TEST(test_rejected_options_are_reported_every_time)
{
    static const char *const options[] = {"max_isa", "x", NULL};
    struct tandem_context *context = context_with(options);
    float x[4] = {1, -2, 3, -4}, y[4];
    struct tandem_tensor *tx = vector_wrap(context, x, 4);
    struct tandem_tensor *ty = vector_wrap(context, y, 4);

    for (int i = 0; i < 3; i++) {
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_unary(context, TANDEM_OP_NEG, tx, ty));
        expect_last_error("cpu:0: could not be opened: open: max_isa \"x\"");
        FAILS(TANDEM_INVALID_ARGUMENT, neg_on(context, 0, tx, ty));
        expect_last_error("max_isa \"x\"");
    }
}

TEST_MAIN(host_tests_run("loader", NULL, NULL))
