/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the tests of the host library share; see support.h. */
#include <config.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static char build_directory[2048];

void expect_last_error(const char *text)
{
    ck_assert_msg(strstr(tandem_last_error(), text) != NULL,
                  "\"%s\" does not say \"%s\"", tandem_last_error(), text);
}

/* ---- scratch directory ---- */

const char *build_path(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", build_directory, name);
    return path;
}

char *file_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text;
    long bytes;

    ck_assert_msg(file != NULL, "%s cannot be read", path);
    fseek(file, 0, SEEK_END);
    bytes = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)bytes + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    return text;
}

void file_copy(const char *to, const char *from)
{
    char block[65536];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    size_t bytes;

    ck_assert_msg(in && out, "%s cannot be copied to %s", from, to);
    while ((bytes = fread(block, 1, sizeof block, in)) > 0)
        ck_assert_uint_eq(fwrite(block, 1, bytes, out), bytes);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

void directory_make(const char *path)
{
    mkdir(path, 0700);
    ck_assert_msg(access(path, W_OK) == 0, "%s cannot be made", path);
}

void scratch_setup(void)
{
    /* The first test removes the variable. */
    const char *plugins = getenv("TANDEM_PLUGIN_PATH");

    if (plugins)
        snprintf(build_directory, sizeof build_directory, "%.*s",
                 (int)strcspn(plugins, ":"), plugins);
    ck_assert_msg(build_directory[0] == '/',
                  "TANDEM_PLUGIN_PATH must name the plugins to test");
    scratch_create();
    directory_make(scratch_path("plugins"));
    file_copy(scratch_path("plugins/tandem-cpu.so"),
              build_path("tandem-cpu.so"));
    file_copy(scratch_path("plugins/tandem-simulated.so"),
              build_path("tandem-simulated.so"));
}

/* ---- contexts ---- */

void environment_setup(void)
{
    static const char *const variables[] = {"TANDEM_PLUGIN_PATH",
                                            "TANDEM_DEVICE",
                                            "TANDEM_PROFILE_DIR",
                                            "TANDEM_LOG",
                                            "TANDEM_DETERMINISTIC",
                                            "TANDEM_NUM_THREADS",
                                            "TANDEM_TRACE",
                                            "TANDEM_TEST_PLUGIN",
                                            "TANDEM_BACKENDS",
                                            "TANDEM_HANG_TIMEOUT_SECONDS",
                                            "TANDEM_COMPILE_PROCESSES"};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    setenv("HOME", scratch, 1);
    directory_remove(scratch_path("profiles"));
    directory_remove(scratch_path("cache"));
    directory_make(scratch_path("profiles"));
    log_forget();
}

/* The latest objects. The library ignores those that were destroyed. */
static struct tandem_context *contexts[MAX_CONTEXTS];
static struct tandem_profile *profiles[MAX_CONTEXTS];
static uint32_t context_count, profile_count;

static void contexts_destroy(void)
{
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        tandem_profile_destroy(profiles[i]);
        tandem_context_destroy(contexts[i]);
    }
    contexts_leave();
}

void contexts_leave(void)
{
    memset(contexts, 0, sizeof contexts);
    memset(profiles, 0, sizeof profiles);
}

struct tandem_context *context_new(const struct tandem_context_options *options)
{
    struct tandem_context_options own = {.struct_size = sizeof own};
    struct tandem_context *context = NULL;

    if (options)
        own = *options;
    own.struct_size = sizeof own;
    if (!own.plugin_path)
        own.plugin_path = scratch_path("plugins");
    if (!own.profile_path)
        own.profile_path = scratch_path("profiles");
    if (!own.log)
        own.log = log_capture;
    OK(tandem_context_create(&own, &context));
    ck_assert_ptr_nonnull(context);
    contexts[context_count++ % MAX_CONTEXTS] = context;
    return context;
}

struct tandem_context *context_with(const char *const *pairs)
{
    struct tandem_context_options options = {.struct_size = sizeof options};
    const char *keys[16], *values[16];

    for (; pairs[0]; pairs += 2) {
        keys[options.open_count] = pairs[0];
        values[options.open_count++] = pairs[1];
    }
    options.open_keys = keys;
    options.open_values = values;
    return context_new(&options);
}

uint32_t device_named(struct tandem_context *context, const char *name)
{
    uint32_t device = TANDEM_ANY_DEVICE;

    OK(tandem_device_find(context, name, &device));
    return device;
}

/* ---- explanations ---- */

struct tandem_explanation last_explanation(struct tandem_context *context)
{
    struct tandem_explanation out = {.struct_size = sizeof out};

    OK(tandem_explain_last(context, &out));
    return out;
}

uint32_t last_device(struct tandem_context *context)
{
    return last_explanation(context).chosen;
}

const struct tandem_candidate *
candidate_of(const struct tandem_explanation *explanation, uint32_t device)
{
    for (uint32_t i = 0; i < explanation->candidate_count; i++)
        if (explanation->candidates[i].device == device)
            return &explanation->candidates[i];
    ck_abort_msg("no candidate %u", device);
    return NULL;
}

/* ---- costs ---- */

double cost(struct tandem_context *context, uint32_t device, const char *curve,
            double x)
{
    double ns = -1;

    OK(tandem_device_predict_cost(context, device, curve, x, &ns));
    return ns;
}

uint32_t calibrated(struct tandem_context *context, uint32_t device)
{
    uint32_t value = 9;

    OK(tandem_device_is_calibrated(context, device, &value));
    return value;
}

struct tandem_profile *profile_new(struct tandem_context *context,
                                   const char *device)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_create(context, device_named(context, device), &profile));
    profiles[profile_count++ % MAX_CONTEXTS] = profile;
    return profile;
}

struct tandem_profile *profile_edit(struct tandem_context *context,
                                    const char *device)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_edit(context, device_named(context, device), &profile));
    profiles[profile_count++ % MAX_CONTEXTS] = profile;
    return profile;
}

bool op_is_blocked(struct tandem_context *context, uint32_t device, uint32_t op)
{
    uint32_t is_blocked = 9;

    OK(tandem_device_is_op_blocked(context, device, op, &is_blocked));
    ck_assert_uint_le(is_blocked, 1);
    return is_blocked == 1;
}

/* ---- log ---- */

#define LOG_LINES 256u

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum tandem_log_level level;
    char text[512];
} log_lines[LOG_LINES];
static uint32_t log_used;

void log_forget(void)
{
    log_used = 0;
}

void log_capture(void *user, enum tandem_log_level level, const char *message)
{
    (void)user;
    /* OpenBLAS does not know the processor of every machine. */
    if (strstr(message, "GEMM is slow") != NULL)
        return;
    pthread_mutex_lock(&log_mutex);
    if (log_used < LOG_LINES) {
        log_lines[log_used].level = level;
        snprintf(log_lines[log_used++].text, sizeof log_lines[0].text, "%s",
                 message);
    }
    pthread_mutex_unlock(&log_mutex);
}

uint32_t log_count(enum tandem_log_level level, const char *text)
{
    uint32_t count = 0;

    pthread_mutex_lock(&log_mutex);
    for (uint32_t i = 0; i < log_used; i++)
        count += log_lines[i].level == level &&
                 (!text || strstr(log_lines[i].text, text));
    pthread_mutex_unlock(&log_mutex);
    return count;
}

void expect_warnings(uint32_t number, const char *text)
{
    const uint32_t count = log_count(TANDEM_LOG_WARNING, text);

    ck_assert_msg(count == number, "%u warnings say \"%s\", not %u", count,
                  text ? text : "", number);
}

/* ---- counters ---- */

static void *sim_symbol(const char *name)
{
    void *object =
        dlopen(scratch_path("plugins/tandem-simulated.so"), RTLD_NOW);
    void *symbol;

    ck_assert_msg(object != NULL, "%s", dlerror());
    symbol = dlsym(object, name);
    ck_assert_ptr_nonnull(symbol);
    return symbol;
}

struct sim_counters counters_read(uint32_t device)
{
    static sim_counters_fn read;
    struct sim_counters counters;
    void *symbol;

    if (!read) {
        symbol = sim_symbol("tandem_sim_counters");
        memcpy(&read, &symbol, sizeof read);
    }
    read(device, &counters);
    return counters;
}

void hangs_release(void)
{
    sim_release_fn release;
    void *symbol = sim_symbol("tandem_sim_release");

    memcpy(&release, &symbol, sizeof release);
    release();
}

struct sim_counters counters_since(uint32_t device,
                                   const struct sim_counters *before)
{
    struct sim_counters after = counters_read(device);
    uint64_t a[sizeof after / 8], b[sizeof after / 8];

    memcpy(a, &after, sizeof after);
    memcpy(b, before, sizeof after);
    for (size_t i = 0; i < sizeof after / 8; i++)
        a[i] -= b[i];
    memcpy(&after, a, sizeof after);
    return after;
}

/* ---- tensors ---- */

struct tandem_tensor *vector_wrap(struct tandem_context *context, float *data,
                                  int64_t elements)
{
    struct tandem_tensor *tensor = NULL;

    OK(tandem_tensor_wrap(context, data, TANDEM_F32, 1, &elements, NULL, 0,
                          &tensor));
    return tensor;
}

struct tandem_tensor *vector_new(struct tandem_context *context,
                                 int64_t elements)
{
    struct tandem_tensor *tensor = NULL;

    OK(tandem_tensor_create(context, TANDEM_F32, 1, &elements, &tensor));
    return tensor;
}

struct tandem_tensor *matrix_wrap(struct tandem_context *context, float *data,
                                  int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *tensor = NULL;

    OK(tandem_tensor_wrap(context, data, TANDEM_F32, 2, shape, NULL, 0,
                          &tensor));
    return tensor;
}

struct tandem_tensor *matrix_new(struct tandem_context *context, int64_t rows,
                                 int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    struct tandem_tensor *tensor = NULL;

    OK(tandem_tensor_create(context, TANDEM_F32, 2, shape, &tensor));
    return tensor;
}

uint32_t residency(const struct tandem_tensor *tensor)
{
    uint32_t mask = 0;

    OK(tandem_tensor_residency(tensor, &mask));
    return mask;
}

enum tandem_status unary_status(struct tandem_context *context, uint32_t device,
                                uint32_t op, struct tandem_tensor *x,
                                struct tandem_tensor *y)
{
    const struct tandem_op call = {.struct_size = sizeof call, .id = op};

    return tandem_run(context, &call, &x, 1, &y, 1, TANDEM_RUN_ON(device));
}

void unary_on(struct tandem_context *context, uint32_t device, uint32_t op,
              struct tandem_tensor *x, struct tandem_tensor *y)
{
    OK(unary_status(context, device, op, x, y));
}

enum tandem_status tensor_wait(struct tandem_tensor *tensor)
{
    return tandem_tensor_sync(tensor, TANDEM_TIMEOUT_INFINITE);
}

void count_up(float *data, int64_t elements)
{
    for (int64_t i = 0; i < elements; i++)
        data[i] = (float)(i + 1);
}

void context_works(struct tandem_context *context)
{
    float x = -3, y = 0;
    struct tandem_tensor *tx = vector_wrap(context, &x, 1);
    struct tandem_tensor *ty = vector_wrap(context, &y, 1);

    OK(tandem_unary(context, TANDEM_OP_ABS, tx, ty));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y, 3);
    tandem_tensor_destroy(tx);
    tandem_tensor_destroy(ty);
}

/* ---- memory ---- */

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_FREED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS_FREED 1
#endif

uint64_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long size = 0, resident = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
#ifdef KEEPS_FREED
    resident = 0;
#endif
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- programs ---- */

TCase *case_new(const char *name)
{
    TCase *tests = tcase_create(name);

    tcase_add_unchecked_fixture(tests, scratch_setup, scratch_remove);
    tcase_add_checked_fixture(tests, environment_setup, contexts_destroy);
    return tests;
}

static void opencl_plugin_copy(void)
{
    file_copy(scratch_path("plugins/tandem-opencl.so"),
              build_path("tandem-opencl.so"));
}

static void opencl_select(void)
{
    setenv("TANDEM_BACKENDS", "cpu,opencl", 1);
}

TCase *opencl_case_new(const char *name)
{
    TCase *tests = case_new(name);

    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, opencl_plugin_copy, NULL);
    tcase_add_checked_fixture(tests, opencl_select, NULL);
    return tests;
}
