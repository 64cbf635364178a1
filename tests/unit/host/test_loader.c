/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin loader: which files it accepts, which it rejects with which
 * message, and that a plugin that fails does not affect others.
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

#define STRANGER 12345

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

/*
 * Replaces the scratch directory "other". It contains the CPU plugin, and a
 * file of the build directory as tandem-other.so. Returns the path of that
 * file.
 */
static const char *other_make(const char *build_name)
{
    directory_remove(scratch_path("other"));
    directory_make(scratch_path("other"));
    file_copy(scratch_path("other/tandem-cpu.so"), build_path("tandem-cpu.so"));
    file_copy(scratch_path("other/tandem-other.so"), build_path(build_name));
    return scratch_path("other/tandem-other.so");
}

static struct tandem_context *context_at(const char *path)
{
    const struct tandem_context_options options = {.plugin_path = path};

    log_forget();
    return context_new(&options);
}

static bool device_exists(struct tandem_context *context, const char *name)
{
    uint32_t device;

    return tandem_device_find(context, name, &device) == TANDEM_OK;
}

/* Checks that only tandem-other.so is rejected, for a reason with this text. */
static void expect_rejected(const char *reason)
{
    struct tandem_context *context = context_at(scratch_path("other"));
    const char *problem = load_error_with(context, "tandem-other.so");

    ck_assert_msg(problem && strstr(problem, reason), "\"%s\" does not say %s",
                  problem ? problem : "", reason);
    expect_warnings(1, "tandem-other.so");
    context_works(context);
    tandem_context_destroy(context);
}

/* ---- which plugins ---- */

/* The option has priority over the environment. The CPU is the first device.
 * The log names the plugins that do not exist. */
static const struct {
    const char *variable, *option;
    bool has_cpu, has_simulated;
    uint32_t unknown;
} lists[] = {
    {NULL, NULL, true, true, 0},
    {"cpu", NULL, true, false, 0},
    {"simulated,cpu", NULL, true, true, 0},
    {"cpu", "simulated", false, true, 0},
    {"cpu,foo", NULL, true, false, 1},
    {"foo,cpu", NULL, true, false, 1},
    {"cpu, foo", NULL, true, false, 1},
    {"cpu,foo,", NULL, true, false, 2},
};

LOOP_TEST(test_lists_of_backends, CASES_IN(lists))
{
    const struct tandem_context_options options = {.backends =
                                                       lists[_i].option};
    struct tandem_context *context;

    if (lists[_i].variable)
        setenv("TANDEM_BACKENDS", lists[_i].variable, 1);
    context = context_new(&options);
    ck_assert_int_eq(device_exists(context, "cpu"), lists[_i].has_cpu);
    ck_assert_int_eq(device_exists(context, "simulated"),
                     lists[_i].has_simulated);
    ck_assert_uint_eq(
        device_named(context, lists[_i].has_cpu ? "cpu" : "simulated"), 0);
    ck_assert_ptr_null(tandem_context_load_error(context, 0));
    expect_warnings(lists[_i].unknown,
                    "TANDEM_BACKENDS: there is no plugin \"");
    expect_warnings(lists[_i].unknown > 0, "foo\"; expected names from: ");
    context_works(context);
}

TEST(test_no_backend_of_the_list_exists)
{
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "opencll", 1);
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("TANDEM_BACKENDS \"opencll\" names none of: ");
    expect_last_error("simulated");
    options.backends = "";
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("the option backends \"\" names none of: ");
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

/* Elements of the path that are relative, empty or no directory are named. */
TEST(test_elements_of_the_path)
{
    char path[4096];

    ck_assert_int_eq(chdir(scratch_path(".")), 0);
    snprintf(path, sizeof path,
             "plugins::%s:/nowhere:", scratch_path("plugins"));
    context_works(context_at(path));
    expect_warnings(1, "\"plugins\" of the plugin path ignored: it "
                       "is relative");
    expect_warnings(2, "\"\" of the plugin path ignored: it is empty");
    expect_warnings(1,
                    "no plugins from /nowhere: the directory does not exist");
    /* The environment names further directories. */
    setenv("TANDEM_PLUGIN_PATH", scratch_path("plugins"), 1);
    context_works(context_at("/nowhere"));
}

/* ---- files ---- */

/* Files that are no plugins: another library, its first bytes, or a text. */
TEST(test_files_that_are_no_plugins)
{
    const char *file = other_make("libtandem.so");

    expect_rejected(TANDEM_BACKEND_QUERY_SYMBOL);
    file = other_make("tandem-simulated.so");
    ck_assert_int_eq(truncate(file, 3000), 0);
    expect_rejected("");
    ck_assert_int_eq(truncate(file, 0), 0);
    expect_rejected("not a shared object");
    file_write(file, "#!/bin/sh\necho not a shared object\n");
    expect_rejected("not a shared object");
    /* Other names are not those of plugins. */
    ck_assert_int_eq(rename(file, scratch_path("other/libother.so")), 0);
    context_works(context_at(scratch_path("other")));
    expect_warnings(0, "libother.so");
}

TEST(test_links_and_directories_are_no_plugins)
{
    struct tandem_context *context;

    ck_assert_int_eq(remove(other_make("tandem-simulated.so")), 0);
    ck_assert_int_eq(symlink(scratch_path("plugins/tandem-simulated.so"),
                             scratch_path("other/tandem-simulated.so")),
                     0);
    directory_make(scratch_path("other/tandem-dir.so"));
    context = context_at(scratch_path("other"));
    ck_assert(!device_exists(context, "simulated"));
    context_works(context);
}

/* All plugins are examined in order, and invalid ones do not hide others. */
TEST(test_many_plugins_in_a_directory)
{
    struct tandem_context *context;
    uint32_t problems = 0;

    other_make("tandem-simulated.so");
    for (int i = 0; i < 200; i++)
        file_write(scratch_path("other/tandem-%03d.so", i), "no plugin");
    context = context_at(scratch_path("other"));
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
 * The first plugin of a name is used: a directory listed twice or under two
 * names, a plugin with two names or in two directories, and another plugin of
 * the name. This is not a load error, because several directories often contain
 * the same plugins.
 */
TEST(test_duplicate_plugins)
{
    struct tandem_context *context;
    char path[8192];
    uint32_t count = 0;

    other_make("tandem-simulated.so");
    file_copy(scratch_path("other/tandem-aaa.so"), build_path("tandem-cpu.so"));
    ck_assert_int_eq(link(scratch_path("other/tandem-other.so"),
                          scratch_path("other/tandem-zzz.so")),
                     0);
    ck_assert_int_eq(symlink("other", scratch_path("alias")), 0);
    snprintf(path, sizeof path, "%s:%s:%s/../other", scratch_path("other"),
             scratch_path("alias"), scratch_path("plugins"));
    context = context_at(path);
    OK(tandem_device_count(context, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    ck_assert_ptr_null(tandem_context_load_error(context, 0));
    context_works(context);
    tandem_context_destroy(context);
    ck_assert_int_eq(unlink(scratch_path("alias")), 0);
}

/* The file "other/tandem-other.so", or a directory that contains it, belongs to
 * somebody else, or others can write it. */
static const struct {
    const char *path;
    mode_t mode; /* 0 stands for another owner */
    const char *problem;
} untrusted[] = {
    {"other/tandem-other.so", 0666, "can be written by others"},
    {"other", 0777, "/other can be written by others"},
    {".", 0777, "can be written by others"},
    {"other/tandem-other.so", 0, "belongs to another user"},
    {"other", 0, "/other belongs to another user"},
};

LOOP_TEST(test_untrusted_files_and_directories, CASES_IN(untrusted))
{
    struct tandem_context *context;
    const char *file = other_make("tandem-simulated.so");
    char path[4096], list[8192];

    if (untrusted[_i].mode == 0 && geteuid() != 0)
        return;
    snprintf(path, sizeof path, "%s", scratch_path("%s", untrusted[_i].path));
    snprintf(list, sizeof list, "%s:%s", scratch_path("other"),
             build_path("."));
    setenv("TANDEM_BACKENDS", "cpu,other", 1);
    if (untrusted[_i].mode != 0)
        ck_assert_int_eq(chmod(path, untrusted[_i].mode), 0);
    else
        ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
    context = context_at(list);
    ck_assert(!device_exists(context, "simulated"));
    ck_assert_uint_ge(log_count(TANDEM_LOG_WARNING, untrusted[_i].problem), 1);
    ck_assert_ptr_null(dlopen(file, RTLD_NOW | RTLD_NOLOAD));
    context_works(context);
    tandem_context_destroy(context);
    ck_assert_int_eq(chown(path, geteuid(), getegid()), 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
    device_named(context_at(list), "simulated");
}

/* ---- tables ---- */

static const struct {
    const char *script, *reason;
} rejected[] = {{"null", ""},
                {"major", ""},
                {"size=0", ""},
                {"size=8", ""},
                {"size=64", ""},
                {"noname", ""},
                {"name=", ""},
                {"name=Upper", ""},
                {"name=a b", ""},
                {"name=a:0", ""},
                {"missing=host_alloc", "only one of host_alloc and host_free"},
                {"missing=unmap", "map"},
#define MISSING(entry) {"missing=" #entry, #entry},
                REQUIRED_ENTRIES(MISSING)};

LOOP_TEST(test_invalid_tables, CASES_IN(rejected))
{
    setenv("TANDEM_TEST_PLUGIN", rejected[_i].script, 1);
    other_make("tandem-simulated.so");
    expect_rejected(rejected[_i].reason);
}

/* Checks that the plugin loads. It has no device. */
static void expect_accepted(const char *script)
{
    struct tandem_context *context;
    uint32_t count = 0;

    setenv("TANDEM_TEST_PLUGIN", script, 1);
    context = context_at(scratch_path("other"));
    OK(tandem_device_count(context, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_msg(!load_error_with(context, "not used"), "%s: %s", script,
                  load_error_with(context, "not used"));
    context_works(context);
    tandem_context_destroy(context);
}

/*
 * The table of a plugin that was built with an older header ends before the
 * entries that were appended later. The table of a newer plugin is larger than
 * the host's. Optional entries may be missing, and another plugin may have the
 * name.
 */
TEST(test_tables_of_other_versions)
{
    static const char *const accepted[] = {"good",
                                           "newer",
                                           "missing=extension",
                                           "missing=trim",
                                           "missing=import_host",
                                           "missing=buffer_seal",
                                           "missing=event_callback",
                                           "missing=event_elapsed_ns",
                                           "name=cpu"};

    other_make("tandem-simulated.so");
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        expect_accepted(accepted[i]);
    for (size_t size = offsetof(struct tandem_backend, event_elapsed_ns);
         size <= sizeof(struct tandem_backend); size += sizeof(void *)) {
        char script[64];

        snprintf(script, sizeof script, "good,size=%zu", size);
        expect_accepted(script);
    }
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

TEST_MAIN(host_tests_run("loader", NULL, NULL))
