/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: descriptions of the library and the devices, the environment,
 * forced devices, the log.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

/* Runs a small relu and returns the device on which it ran. */
static uint32_t relu_device(struct tandem_context *context)
{
    static float x[64], y[64];
    struct tandem_tensor *tx = vector_wrap(context, x, 64);
    struct tandem_tensor *ty = vector_wrap(context, y, 64);
    uint32_t device;

    OK(tandem_unary(context, TANDEM_OP_RELU, tx, ty));
    device = last_device(context);
    OK(tensor_wait(ty));
    tandem_tensor_destroy(tx);
    tandem_tensor_destroy(ty);
    return device;
}

TEST(test_status_names)
{
    static const char *const names[] = {"ok",
                                        "invalid argument",
                                        "unsupported",
                                        "no device",
                                        "out of memory",
                                        "not ready",
                                        "device lost",
                                        "failed"};

    for (uint32_t i = 0; i < 8; i++)
        ck_assert_str_eq(tandem_status_name((enum tandem_status)i), names[i]);
    ck_assert_str_eq(tandem_status_name((enum tandem_status)8),
                     "unknown status");
    ck_assert_str_eq(tandem_status_name((enum tandem_status) - 1),
                     "unknown status");
    ck_assert_str_eq(tandem_version(), PACKAGE_VERSION);
}

#define ROW(ID, number, op_name, op_class_, inputs, outputs, ints, n_ints,     \
            floats, n_floats, cost, metric_, tolerance_, required_, formula_)  \
    info = tandem_op_by_id(number);                                            \
    ck_assert_ptr_nonnull(info);                                               \
    ck_assert_ptr_eq(info, tandem_op_by_name(op_name));                        \
    ck_assert_uint_eq(info->struct_size, sizeof *info);                        \
    ck_assert_uint_eq(info->id, number);                                       \
    ck_assert_str_eq(info->name, op_name);                                     \
    ck_assert_uint_eq(info->op_class, TANDEM_CLASS_##op_class_);               \
    ck_assert_uint_eq(info->cost_class, TANDEM_COST_##cost);                   \
    ck_assert_uint_eq(info->metric, TANDEM_METRIC_##metric_);                  \
    ck_assert_uint_eq(info->input_count, inputs);                              \
    ck_assert_uint_eq(info->output_count, outputs);                            \
    ck_assert_uint_eq(info->int_count, n_ints);                                \
    ck_assert_uint_eq(info->float_count, n_floats);                            \
    ck_assert_uint_eq(info->required, required_);                              \
    ck_assert_double_eq(info->tolerance, tolerance_);                          \
    ck_assert_str_eq(info->int_names, ints);                                   \
    ck_assert_str_eq(info->float_names, floats);                               \
    ck_assert_str_eq(info->formula, formula_);

TEST(test_operator_table)
{
    const struct tandem_op_info *info;

    TANDEM_OPERATORS(ROW)
    ck_assert_ptr_null(tandem_op_by_id(TANDEM_OP_INVALID));
    ck_assert_ptr_null(tandem_op_by_id(TANDEM_OP_ID_END));
    ck_assert_ptr_null(tandem_op_by_id(UINT32_MAX));
    ck_assert_ptr_null(tandem_op_by_id(TANDEM_OP_ID_END - 1));
    ck_assert_ptr_null(tandem_op_by_name("no such operator"));
    ck_assert_ptr_null(tandem_op_by_name(""));
    ck_assert_ptr_null(tandem_op_by_name(NULL));
}

TEST(test_devices_are_described)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_context *context;
    uint32_t count, simulated;

    setenv("TANDEM_TEST_PLUGIN", "devices=3", 1);
    context = context_new(NULL);
    OK(tandem_device_count(context, &count));
    simulated = device_named(context, "simulated");
    ck_assert_uint_eq(device_named(context, "simulated:0"), simulated);
    ck_assert_uint_eq(device_named(context, "simulated:1"), simulated + 1);
    ck_assert_uint_eq(device_named(context, "simulated:2"), simulated + 2);
    ck_assert_uint_le(simulated + 3, count);
    OK(tandem_device_describe(context, simulated + 2, &info));
    ck_assert_str_eq(info.name, "Simulated GPU 2");
    ck_assert_uint_eq(info.kind, TANDEM_DEVICE_GPU);
    OK(tandem_device_describe(context, 0, &info));
    ck_assert_uint_eq(info.kind, TANDEM_DEVICE_CPU);
    ck_assert_uint_ne(info.caps & TANDEM_CAP_CORE_OPERATORS, 0);
}

/*
 * The drivers of other plugins are not started; the log contains a message for
 * every device that is found.
 */
TEST(test_a_device_by_name_starts_no_other)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_context *context;
    const struct tandem_backend *backend;
    struct tandem_device *handle;
    struct tandem_tensor *x, *y;
    float data[64], out[64];
    uint32_t cpu;

    setenv("TANDEM_LOG", "info", 1);
    context = context_new(NULL);
    OK(tandem_device_find(context, "cpu", &cpu));
    OK(tandem_device_describe(context, cpu, &info));
    OK(tandem_device_backend(context, cpu, &backend, &handle));
    count_up(data, 64);
    x = vector_wrap(context, data, 64);
    y = vector_wrap(context, out, 64);
    unary_on(context, cpu, TANDEM_OP_NEG, x, y);
    OK(tensor_wait(y));
    ck_assert_uint_eq(log_count(TANDEM_LOG_INFO, ": cpu:0"), 1);
    ck_assert_uint_eq(log_count(TANDEM_LOG_INFO, ": simulated:0"), 0);
    OK(tandem_unary(context, TANDEM_OP_NEG, x, y));
    ck_assert_uint_eq(log_count(TANDEM_LOG_INFO, ": simulated:0"), 1);
}

TEST(test_a_short_info_is_not_overrun)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_device_info info;

    memset(&info, 0x5a, sizeof info);
    info.struct_size = offsetof(struct tandem_device_info, vendor);
    OK(tandem_device_describe(context, 0, &info));
    ck_assert_uint_eq(info.kind, TANDEM_DEVICE_CPU);
    for (size_t i = info.struct_size; i < sizeof info; i++)
        ck_assert_int_eq(((unsigned char *)&info)[i], 0x5a);
}

TEST(test_the_environment_or_the_option_forces_a_device)
{
    const struct tandem_context_options options = {.device = "simulated"};
    struct tandem_context *context;

    setenv("TANDEM_TEST_PLUGIN", "devices=2", 1);
    setenv("TANDEM_DEVICE", "simulated:1", 1);
    context = context_new(NULL);
    ck_assert_uint_eq(relu_device(context),
                      device_named(context, "simulated:1"));
    setenv("TANDEM_DEVICE", "cpu", 1);
    ck_assert_uint_eq(relu_device(context_new(NULL)), 0);
    context = context_new(&options);
    ck_assert_uint_eq(relu_device(context), device_named(context, "simulated"));
}

/*
 * An invalid device name, or one of a plugin that is not loaded, is an error
 * when the context is created. The message lists the available ones.
 */
static const struct {
    const char *name, *message;
} invalid_names[] = {
    {"", "\"\" is not a device name"},
    {"frobnicate:1", "there is no device \"frobnicate:1\": no plugin"},
    {"cp", "there is no device \"cp\": no plugin"},
    {"cpu:", "\"cpu:\" is not a device name"},
    {"cpu:x", "\"cpu:x\" is not a device name"},
    {"cpu:-1", "\"cpu:-1\" is not a device name"},
    {"cpu:1 ", "\"cpu:1 \" is not a device name"},
    {"cpu:99999999999999999999", "is not a device name"},
    {":0", "\":0\" is not a device name"},
};

LOOP_TEST(test_invalid_device_names, CASES_IN(invalid_names))
{
    const char *name = invalid_names[_i].name;
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *context;
    uint32_t device;

    FAILS(TANDEM_NO_DEVICE,
          tandem_device_find(context_new(NULL), name, &device));
    if (name[0] != '\0') {
        setenv("TANDEM_DEVICE", name, 1);
        FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
        ck_assert_ptr_null(context);
        expect_last_error("; unset TANDEM_DEVICE to let Tandem choose");
        expect_last_error(invalid_names[_i].message);
        expect_last_error("loaded: cpu, simulated");
    }
    setenv("TANDEM_DEVICE", "cpu", 1);
    options.device = name;
    FAILS(TANDEM_NO_DEVICE, tandem_context_create(&options, &context));
    expect_last_error("the option device");
    expect_last_error(invalid_names[_i].message);
    /* The option has priority. */
    setenv("TANDEM_DEVICE", name, 1);
    options.device = "cpu";
    OK(tandem_context_create(&options, &context));
    tandem_context_destroy(context);
}

/*
 * Only the driver knows if a device number exists. The error is reported each
 * time the device is needed, and nothing runs on another device.
 */
TEST(test_forcing_a_missing_device)
{
    float x = 1, y = 2;
    struct tandem_context *context;
    uint32_t device;
    struct tandem_tensor *tx, *ty;

    setenv("TANDEM_TEST_PLUGIN", "devices=2", 1);
    setenv("TANDEM_DEVICE", "simulated:7", 1);
    context = context_new(NULL);
    tx = vector_wrap(context, &x, 1);
    ty = vector_wrap(context, &y, 1);
    for (int i = 0; i < 2; i++) {
        FAILS(TANDEM_NO_DEVICE, tandem_unary(context, TANDEM_OP_NEG, tx, ty));
        expect_last_error(
            "TANDEM_DEVICE: there is no device \"simulated:7\": the plugin "
            "has simulated:0, simulated:1");
        ck_assert_float_eq(y, 2);
    }
    FAILS(TANDEM_NO_DEVICE,
          tandem_device_find(context, "simulated:2", &device));
    FAILS(TANDEM_NO_DEVICE,
          tandem_device_find(context, "simulated:4294967296", &device));
    /* Until another device is forced. */
    OK(tandem_context_force_device(context, TANDEM_ANY_DEVICE));
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tensor_wait(ty));
    ck_assert_float_eq(y, -1);
}

TEST(test_cache_directory_that_cannot_be_made)
{
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    context_new(NULL);
    expect_warnings(1, "are not cached in /proc/nowhere/tandem: it cannot be "
                       "made");
}

TEST(test_no_device)
{
    float x = 1, y = 2;
    struct tandem_context *context;

    setenv("TANDEM_TEST_PLUGIN", "devices=0", 1);
    setenv("TANDEM_BACKENDS", "simulated", 1);
    context = context_new(NULL);
    FAILS(TANDEM_NO_DEVICE,
          tandem_unary(context, TANDEM_OP_NEG, vector_wrap(context, &x, 1),
                       vector_wrap(context, &y, 1)));
    expect_last_error("neg: there is no device: ");
}

/* The log has the warnings unless TANDEM_LOG excludes them. */
TEST(test_log_levels)
{
    static const char *const levels[] = {NULL,       "warning", "info", "debug",
                                         "nonsense", "error",   "none"};
    struct tandem_context_options options = {.log = NULL};

    directory_make(scratch_path("noise"));
    file_copy(scratch_path("noise/tandem-cpu.so"), build_path("tandem-cpu.so"));
    file_write(scratch_path("noise/tandem-bad.so"), "bad");
    for (int i = 0; i < CASES_IN(levels); i++) {
        if (levels[i])
            setenv("TANDEM_LOG", levels[i], 1);
        log_forget();
        options.plugin_path = scratch_path("noise");
        relu_device(context_new(&options));
        ck_assert_msg((log_count(TANDEM_LOG_WARNING, NULL) > 0) == (i < 5),
                      "TANDEM_LOG=%s", levels[i] ? levels[i] : "(unset)");
    }
    directory_remove(scratch_path("noise"));
}

/*
 * Each variable with a value that is not allowed is named once, with the values
 * that are allowed, and its default is used.
 */
TEST(test_bad_variables_are_named)
{
    static const struct {
        const char *name, *bad, *good, *expected;
    } cases[] = {
        {"TANDEM_COMPILE_PROCESSES", "many", "0", "from 0 to 6"},
        {"TANDEM_COMPILE_PROCESSES", "7", "6", "from 0 to 6"},
        {"TANDEM_DETERMINISTIC", "yes", "0", "0 or 1"},
        {"TANDEM_DETERMINISTIC", "2", "1", "0 or 1"},
        {"TANDEM_HANG_TIMEOUT_SECONDS", "1e3", "0", "from 0 to 1000000000"},
        {"TANDEM_LOG", "loud", "debug", "none, error, warning, info or debug"},
        {"TANDEM_LOG", "Error", "info", "none, error, warning, info or debug"},
        {"TANDEM_LOG", "warning,info", "warning",
         "none, error, warning, info or debug"},
        {"TANDEM_NUM_THREADS", "two", "2", "a number of threads, or 0"},
        {"TANDEM_OPENCL_BLOCKLIST", "no", "ignore", "ignore"},
        {"TANDEM_PROFILE_DIR", "here", "/tmp", "an absolute path"},
        {"XDG_CACHE_HOME", "cache", "/tmp", "an absolute path"},
    };
    char text[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        environment_setup();
        setenv(cases[i].name, cases[i].bad, 1);
        relu_device(context_new(NULL));
        snprintf(text, sizeof(text), "%s \"%s\" ignored: expected ",
                 cases[i].name, cases[i].bad);
        expect_warnings(1, text);
        expect_warnings(1, cases[i].expected);
        log_forget();
        setenv(cases[i].name, cases[i].good, 1);
        context_new(NULL);
        expect_warnings(0, "ignored: expected");
    }
    unsetenv("TANDEM_OPENCL_BLOCKLIST");
}

TEST(test_force_device)
{
    struct tandem_context *one = context_new(NULL), *two = context_new(NULL);

    OK(tandem_context_force_device(one, device_named(one, "simulated")));
    ck_assert_uint_eq(relu_device(one), device_named(one, "simulated"));
    ck_assert_uint_eq(last_explanation(one).forced, 1);
    OK(tandem_context_force_device(two, 0));
    ck_assert_uint_eq(relu_device(two), 0);
    OK(tandem_context_force_device(one, TANDEM_ANY_DEVICE));
    relu_device(one);
    ck_assert_uint_eq(last_explanation(one).forced, 0);
    tandem_context_destroy(one);
    ck_assert_uint_eq(relu_device(two), 0);
    ck_assert_uint_eq(last_explanation(two).forced, 1);
}

TEST(test_options_may_be_absent_or_short)
{
    struct tandem_context *context = NULL;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = TANDEM_CONTEXT_OPTIONS_MIN_SIZE_0_1;
    struct tandem_context_options *options;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    setenv("TANDEM_PLUGIN_PATH", scratch_path("plugins"), 1);
    OK(tandem_context_create(NULL, &context));
    ck_assert_uint_eq(device_named(context, "cpu"), 0);
    tandem_context_destroy(context);
    /* Fields past struct_size must not be read: the memory is not mapped. */
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
    options = (void *)(pages + page - bytes);
    options->struct_size = bytes;
    OK(tandem_context_create(options, &context));
    tandem_context_destroy(context);
    ck_assert_int_eq(munmap(pages, 2 * page), 0);
    tandem_context_destroy(NULL);
}

/* ---- duplicates ---- */

/* Creates a context with three GPUs; the CPU is expensive. */
static struct tandem_context *context_with_gpus(const char *plugin,
                                                const double *costs)
{
    struct script script = script_free();

    setenv("TANDEM_TEST_PLUGIN", plugin, 1);
    script_all(&script, 1e6, 0);
    script_save("cpu", &script);
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "simulated:%d", i);
        script_all(&script, costs[i], 0);
        script_save(name, &script);
    }
    return context_new(NULL);
}

TEST(test_the_cheapest_of_several_gpus)
{
    for (int i = 0; i < 3; i++) {
        double costs[] = {200, 200, 200};
        struct tandem_context *context;

        costs[i] = 100;
        context = context_with_gpus("devices=3", costs);
        ck_assert_uint_eq(relu_device(context),
                          device_named(context, "simulated") + (uint32_t)i);
        ck_assert_uint_eq(last_explanation(context).candidate_count, 4);
    }
}

/* If two platforms list the same GPU, the first one is used. A caller who names
 * the duplicate gets it. */
TEST(test_a_duplicate_is_not_selected)
{
    static const double costs[] = {1e5, 0, 1e5};
    struct tandem_context *context =
        context_with_gpus("devices=3,duplicates=1:0", costs);
    uint32_t duplicate = device_named(context, "simulated:1");

    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(relu_device(context),
                          device_named(context, "simulated:0"));
    ck_assert_uint_eq(last_explanation(context).candidate_count, 3);
    ck_assert_uint_eq(counters_read(1).opens, 0);
    OK(tandem_context_force_device(context, duplicate));
    ck_assert_uint_eq(relu_device(context), duplicate);
    ck_assert_uint_eq(counters_read(1).opens, 1);
}

TEST(test_a_duplicate_is_used_if_the_first_does_not_open)
{
    static const double costs[] = {0, 0, 0};
    struct tandem_context *context =
        context_with_gpus("devices=3,duplicates=1:0+2:0,open=7:0", costs);

    relu_device(context);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(relu_device(context),
                          device_named(context, "simulated:1"));
    ck_assert_uint_eq(counters_read(2).opens, 0);
}

TEST_MAIN(host_tests_run("context", NULL, NULL))
