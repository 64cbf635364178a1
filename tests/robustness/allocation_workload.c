/* SPDX-License-Identifier: Apache-2.0 */
/* A workload under failing allocations; see allocation_workload.h. */
#include <config.h>

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/host.h>

#include "failing_malloc.h"
#include "../../tools/common/tensor_call.h"
#include "allocation_workload.h"

#define N 256
#define ROWS 16
#define LARGE 65536
#define VIEWS 80

struct work {
    const struct workload_paths *paths;
    struct tandem_context *context;
    uint32_t cpu, simulated;
    struct tandem_tensor *x, *y, *own, *scalar, *a, *b, *c, *gaps, *large;
    struct tandem_tensor *views[VIEWS];
    float x_data[N], y_data[N], a_data[ROWS * ROWS], gap_data[2 * N];
};

static float large_data[LARGE];
static unsigned log_lines;

static void log_count(void *user, enum tandem_log_level level,
                      const char *message)
{
    (void)user, (void)level, (void)message;
    log_lines++;
}

__attribute__((format(printf, 1, 2))) static void give_up(const char *format,
                                                          ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void must(bool good, const char *what)
{
    if (!good)
        give_up("%s: not so", what);
}

/* ---- calls ---- */

static uint64_t failed_before;

static void call_enter(void)
{
    failed_before = allocation_failed();
    allocation_enter();
}

/*
 * Evaluates the status of a call and returns true if the call succeeded.
 * *out_again is set if the caller should repeat the call. If memory runs out,
 * plugins that could not be loaded are skipped with a log message; a context
 * without any plugin fails with TANDEM_NO_DEVICE.
 */
static bool call_finish(enum tandem_status status, const char *call,
                        const char *message, int attempt, bool *out_again)
{
    const bool failed = allocation_failed() > failed_before;

    allocation_leave();
    *out_again = false;
    if (status == TANDEM_OK)
        return true;
    if (!failed)
        give_up("%s: %s without a failed allocation (attempt %d): %s", call,
                tandem_status_name(status), attempt, message);
    if (status != TANDEM_OUT_OF_MEMORY &&
        !(status == TANDEM_NO_DEVICE && log_lines > 0))
        give_up("%s: %s for a failed allocation: %s", call,
                tandem_status_name(status), message);
    if (message[0] == '\0')
        give_up("%s: no message", call);
    *out_again = attempt < 2;
    return false;
}

/*
 * Makes a call and repeats it if an allocation failed. Evaluates to true if
 * the last attempt succeeded.
 */
#define TRY_WITH_MESSAGE(call, say)                                            \
    __extension__({                                                            \
        bool retry_ = true, succeeded_ = false;                                \
        for (int attempt_ = 0; retry_; attempt_++) {                           \
            call_enter();                                                      \
            const enum tandem_status status_ = (call);                         \
            succeeded_ = call_finish(status_, #call, say, attempt_, &retry_);  \
        }                                                                      \
        succeeded_;                                                            \
    })
#define TRY(call) TRY_WITH_MESSAGE(call, tandem_last_error())
/* Like TRY, for a call that creates an object, or NULL if it fails. */
#define MAKE(out, call)                                                        \
    __extension__({                                                            \
        *(out) = (void *)&failed_before;                                       \
        const bool created_ = TRY(call);                                       \
        must(created_ == (*(out) != NULL), #call ": out");                     \
        created_;                                                              \
    })
#define DO(call)                                                               \
    do {                                                                       \
        if (!(call))                                                           \
            return false;                                                      \
    } while (0)

/* ---- contexts ---- */

static void context_end(struct work *work)
{
    allocation_enter();
    tandem_context_destroy(work->context);
    allocation_leave();
    work->context = NULL;
}

/*
 * Creates a context. If a plugin or a profile cannot be read because memory
 * runs out, it is skipped with a log message.
 */
static bool context_new(struct work *work, bool calibrated)
{
    uint32_t found = 0, count = 0;

    DO(TRY(tandem_device_count(work->context, &count)));
    call_enter();
    const bool whole =
        tandem_device_find(work->context, "cpu", &work->cpu) == TANDEM_OK &&
        tandem_device_find(work->context, "simulated", &work->simulated) ==
            TANDEM_OK &&
        tandem_device_is_calibrated(work->context, work->simulated, &found) ==
            TANDEM_OK &&
        found == calibrated;
    allocation_leave();
    if (!whole && (allocation_failed() == 0 || log_lines == 0))
        give_up("a context lacks something, and no log says why");
    return whole;
}

static bool context_begin(struct work *work, bool calibrated)
{
    static const char *const keys[] = {"num_threads", "test.unknown"};
    static const char *const values[] = {"2", "1"};
    struct tandem_context_options options = {
        .struct_size = sizeof options,
        .plugin_path = work->paths->plugins,
        .profile_path = work->paths->profiles,
        .open_keys = keys,
        .open_values = values,
        .open_count = 2,
        .log = log_count,
        .log_level = TANDEM_LOG_WARNING,
    };

    log_lines = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        DO(MAKE(&work->context,
                tandem_context_create(&options, &work->context)));
        if (context_new(work, calibrated))
            return true;
        context_end(work);
    }
    return false;
}

/* ---- profiles ---- */

static bool profile_collect(struct tandem_profile *profile)
{
    static const char *const curves[] = {"elementwise", "reduce", "upload",
                                         "download", "upload"};

    DO(TRY(tandem_profile_set_scalar(profile, "launch", 1000)));
    DO(TRY(tandem_profile_set_scalar(profile, "sync", 2000)));
    for (int i = 0; i < 5; i++) {
        DO(TRY(tandem_profile_add_curve_point(profile, curves[i], 1e6, 1e6)));
        DO(TRY(tandem_profile_add_curve_point(profile, curves[i], 64, 1e3)));
        DO(TRY(tandem_profile_add_curve_point(profile, curves[i], 64, 1e3)));
    }
    for (int m = 1; m <= 64; m *= 8)
        DO(TRY(tandem_profile_add_gemm_point(profile, m, m, m,
                                             100.0 * m * m * m)));
    DO(TRY(tandem_profile_set_tuning(profile, "width", "4")));
    DO(TRY(tandem_profile_set_tuning(profile, "width", "8")));
    DO(TRY(tandem_profile_set_note(profile, "missing", "gemm")));
    return true;
}

/* Writes a profile of the simulated GPU. */
static bool profile_write(struct work *work)
{
    struct tandem_profile *profile = NULL;
    char path[4096];
    bool good;

    DO(MAKE(&profile,
            tandem_profile_create(work->context, work->simulated, &profile)));
    good = profile_collect(profile) &&
           TRY(tandem_profile_save(profile, NULL, path, sizeof path));
    allocation_enter();
    tandem_profile_destroy(profile);
    allocation_leave();
    return good;
}

static bool profile_use(struct work *work)
{
    const char *path = NULL;
    double ns = 0;

    DO(TRY(tandem_device_profile_path(work->context, work->simulated, &path)));
    must(path != NULL && path[0] == '/', "the profile's path");
    DO(TRY(tandem_device_predict_cost(work->context, work->simulated, "launch",
                                      0, &ns)));
    must(ns == 1000, "the scalar that was written");
    DO(TRY(tandem_device_predict_cost(work->context, work->simulated, "upload",
                                      1e6, &ns)));
    must(fabs(ns - 1e6) < 1, "the curve that was written");
    return true;
}

/* ---- devices ---- */

static bool devices_use(struct work *work)
{
    struct tandem_device_info info = {.struct_size = sizeof info};
    const char *name = NULL;
    uint32_t index = 9;

    DO(TRY(tandem_device_describe(work->context, work->simulated, &info)));
    must(strcmp(info.name, "Simulated GPU 0") == 0, "the device's name");
    DO(TRY(tandem_device_name(work->context, work->simulated, &name, &index)));
    must(strcmp(name, "simulated") == 0 && index == 0, "the backend's name");
    must(tandem_context_load_error(work->context, 0) == NULL, "no problem");
    return true;
}

#define PLUGIN(call) TRY_WITH_MESSAGE(call, table->last_error())

static bool plugin_launch(const struct tandem_backend *table,
                          struct tandem_device *device,
                          struct tandem_stream *stream,
                          struct tandem_buffer *buffer)
{
    const struct tandem_tensor_desc desc = {buffer, 0, TANDEM_F32, 1, {N}, {1}};
    const struct tandem_tensor_desc *operand = &desc;
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    struct tandem_event *start = NULL, *end = NULL;
    uint64_t ns;
    bool good = PLUGIN(table->event_record(stream, &start)) &&
                PLUGIN(tensors_launch(table, device, stream, &op, &operand, 1,
                                      &operand, 1, 64)) &&
                PLUGIN(table->event_record(stream, &end)) &&
                PLUGIN(table->event_wait(end, TANDEM_TIMEOUT_INFINITE)) &&
                PLUGIN(table->event_elapsed_ns(start, end, &ns)) &&
                PLUGIN(table->stream_wait_event(stream, end));

    table->event_destroy(start);
    table->event_destroy(end);
    return good;
}

static bool plugin_memory(const struct work *work,
                          const struct tandem_backend *table,
                          struct tandem_device *device,
                          struct tandem_stream *stream,
                          struct tandem_buffer **buffers)
{
    const float two = 2;
    float got[N];
    void *memory = NULL;

    DO(PLUGIN(table->alloc(device, TANDEM_BYTES(sizeof got), &buffers[0])));
    DO(PLUGIN(table->alloc(device, TANDEM_BYTES(1 << 20), &buffers[1])));
    /* If a plugin has no host_alloc, the host library substitutes its own. */
    DO(TRY_WITH_MESSAGE(table->host_alloc(device, 4096, &memory), "no room"));
    table->host_free(device, memory);
    DO(PLUGIN(
        table->upload(stream, buffers[0], 0, work->x_data, sizeof got, 0)));
    DO(plugin_launch(table, device, stream, buffers[0]));
    DO(PLUGIN(table->copy(stream, buffers[1], 0, buffers[0], 0, sizeof got)));
    DO(PLUGIN(table->fill(stream, buffers[1], 0, 4, &two, 4)));
    DO(PLUGIN(table->download(stream, buffers[1], 0, got, sizeof got, 0,
                              TANDEM_TIMEOUT_INFINITE)));
    must(got[0] == 2 && got[1] == -work->x_data[1] &&
             got[N - 1] == -work->x_data[N - 1],
         "what the plugin computed");
    return PLUGIN(table->trim(device, 0));
}

/* Uses the plugin's own function table, a stream and buffers. */
static bool plugin_use(struct work *work, uint32_t id)
{
    const struct tandem_backend *table = NULL;
    struct tandem_device *device = NULL;
    struct tandem_stream *stream = NULL;
    struct tandem_buffer *buffers[2] = {NULL, NULL};
    bool good;

    DO(TRY(tandem_device_backend(work->context, id, &table, &device)));
    good = PLUGIN(table->stream_create(device, TANDEM_STREAM_PROFILING,
                                       &stream)) &&
           plugin_memory(work, table, device, stream, buffers);
    table->free(buffers[0]);
    table->free(buffers[1]);
    table->stream_destroy(stream);
    return good;
}

/*
 * Makes an invalid call of libtandem and of the plugin. The first error of a
 * thread allocates memory for its message. If that fails, the status stays the
 * same, and the message is a static text.
 */
static void errors_report(const struct tandem_backend *table)
{
    const struct tandem_open_options options = {.struct_size = sizeof options};
    struct tandem_device *device = NULL;

    allocation_enter();
    must(tandem_context_create(NULL, NULL) == TANDEM_INVALID_ARGUMENT &&
             tandem_last_error()[0] != '\0',
         "the error of libtandem");
    must(table->open(UINT32_MAX, &options, &device) == TANDEM_NO_DEVICE &&
             table->last_error()[0] != '\0',
         "the error of a plugin");
    allocation_leave();
}

/* Opens and closes a device outside the context. */
static bool plugin_open(const struct work *work)
{
    const struct tandem_open_options options = {.struct_size = sizeof options};
    const struct tandem_backend *table = NULL;
    struct tandem_device *device = NULL;

    DO(TRY(tandem_device_backend(work->context, work->cpu, &table, &device)));
    errors_report(table);
    DO(PLUGIN(table->open(0, &options, &device)));
    table->close(device);
    return true;
}

/* ---- tensors and operators ---- */

static bool tensors_make(struct work *work)
{
    const int64_t n = N, matrix[2] = {ROWS, ROWS}, large = LARGE;
    const int64_t every_other = 2;
    struct tandem_context *context = work->context;

    for (int i = 0; i < N; i++) {
        work->x_data[i] = (float)(i + 1);
        work->a_data[i] = i / ROWS == i % ROWS ? 2 : 0;
    }
    for (int i = 0; i < 2 * N; i++)
        work->gap_data[i] = 7;
    DO(MAKE(&work->x, tandem_tensor_wrap(context, work->x_data, TANDEM_F32, 1,
                                         &n, NULL, 0, &work->x)));
    DO(MAKE(&work->y, tandem_tensor_wrap(context, work->y_data, TANDEM_F32, 1,
                                         &n, NULL, 0, &work->y)));
    DO(MAKE(&work->own,
            tandem_tensor_create(context, TANDEM_F32, 1, &n, &work->own)));
    DO(MAKE(&work->scalar,
            tandem_tensor_create(context, TANDEM_F32, 0, NULL, &work->scalar)));
    DO(MAKE(&work->a,
            tandem_tensor_wrap(context, work->a_data, TANDEM_F32, 2, matrix,
                               NULL, TANDEM_TENSOR_READ_ONLY, &work->a)));
    DO(MAKE(&work->b,
            tandem_tensor_create(context, TANDEM_F32, 2, matrix, &work->b)));
    DO(MAKE(&work->c,
            tandem_tensor_create(context, TANDEM_F32, 2, matrix, &work->c)));
    DO(MAKE(&work->gaps,
            tandem_tensor_wrap(context, work->gap_data, TANDEM_F32, 1, &n,
                               &every_other, 0, &work->gaps)));
    DO(MAKE(&work->large, tandem_tensor_create(context, TANDEM_F32, 1, &large,
                                               &work->large)));
    for (int i = 0; i < VIEWS; i++)
        DO(MAKE(&work->views[i],
                tandem_tensor_view(work->x, i, 1, &(int64_t){1}, NULL,
                                   &work->views[i])));
    return true;
}

static void tensors_end(struct work *work)
{
    struct tandem_tensor **tensors[] = {
        &work->x, &work->y, &work->own,  &work->scalar, &work->a,
        &work->b, &work->c, &work->gaps, &work->large};

    allocation_enter();
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        tandem_tensor_destroy(*tensors[i]);
    for (int i = 0; i < VIEWS; i++)
        tandem_tensor_destroy(work->views[i]);
    allocation_leave();
}

static bool one(struct work *work, uint32_t device, uint32_t id,
                struct tandem_tensor *in, struct tandem_tensor *out)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return TRY(tandem_run_on(work->context, device, &op, &in, 1, &out, 1));
}

/* Moves data from the host to one device, then to the other, then back. */
static bool tensors_move(struct work *work)
{
    const void *data = NULL;
    uint32_t mask = 0;

    DO(one(work, work->simulated, TANDEM_OP_NEG, work->x, work->own));
    DO(one(work, work->cpu, TANDEM_OP_NEG, work->own, work->y));
    DO(TRY(tandem_tensor_sync(work->y, TANDEM_TIMEOUT_INFINITE)));
    must(memcmp(work->y_data, work->x_data, sizeof work->x_data) == 0,
         "x through both devices");
    DO(TRY(tandem_tensor_host_written(work->x)));
    DO(TRY(tandem_tensor_prefetch(work->x, work->simulated)));
    DO(TRY(tandem_tensor_residency(work->x, &mask)));
    must(mask >> work->simulated & 1, "residency after a prefetch");
    DO(one(work, work->simulated, TANDEM_OP_ABS, work->x, work->own));
    DO(TRY(tandem_tensor_host_data(work->own, TANDEM_TIMEOUT_INFINITE, &data)));
    must(memcmp(data, work->x_data, sizeof work->x_data) == 0, "data");
    DO(TRY(tandem_tensor_write(work->own, work->y_data, sizeof work->y_data)));
    return true;
}

/* Downloads results into tensors with gaps that belong to other data. */
static bool gaps_use(struct work *work)
{
    struct tandem_tensor *half = NULL;
    const int64_t n = N / 2, stride = 4;
    float got[N / 2];
    bool good;

    DO(one(work, work->simulated, TANDEM_OP_NEG, work->x, work->gaps));
    DO(TRY(tandem_tensor_sync(work->gaps, TANDEM_TIMEOUT_INFINITE)));
    for (int i = 0; i < N; i++)
        must(work->gap_data[2 * i] == -work->x_data[i] &&
                 (i == N - 1 || work->gap_data[2 * i + 1] == 7),
             "a result with gaps");
    DO(MAKE(&half, tandem_tensor_view(work->gaps, 0, 1, &n, &stride, &half)));
    good = one(work, work->simulated, TANDEM_OP_ABS, half, half) &&
           TRY(tandem_tensor_read(half, got, sizeof got,
                                  TANDEM_TIMEOUT_INFINITE)) &&
           TRY(tandem_tensor_write(half, got, sizeof got));
    allocation_enter();
    tandem_tensor_destroy(half);
    allocation_leave();
    DO(good);
    for (int i = 0; i < N / 2; i++)
        must(got[i] == work->x_data[2 * i] &&
                 work->gap_data[4 * i + 2] == -work->x_data[2 * i + 1],
             "a part of a result with gaps");
    return true;
}

static bool operators_use(struct work *work)
{
    struct tandem_context *context = work->context;
    struct tandem_explanation explanation = {.struct_size = sizeof explanation};
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ADD};
    float sum = 0;

    DO(TRY(tandem_unary(context, TANDEM_OP_NEG, work->x, work->own)));
    DO(TRY(tandem_binary(context, TANDEM_OP_SUB, work->x, work->own, work->y)));
    DO(TRY(tandem_reduce(context, TANDEM_OP_SUM, 1, work->y, work->scalar)));
    DO(TRY(tandem_explain_last(context, &explanation)));
    must(explanation.op == TANDEM_OP_SUM, "what is explained");
    DO(TRY(tandem_explain_op(context, &op,
                             (struct tandem_tensor *[]){work->x, work->own}, 2,
                             &work->y, 1, &explanation)));
    DO(TRY(tandem_tensor_read(work->scalar, &sum, sizeof sum,
                              TANDEM_TIMEOUT_INFINITE)));
    must(sum == 2 * N * (N + 1) / 2, "the sum");
    return true;
}

static bool gemm_use(struct work *work)
{
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = work->simulated};
    struct tandem_explanation explanation = {.struct_size = sizeof explanation};
    float got[ROWS * ROWS];

    DO(TRY(tandem_matmul(work->context, &options, work->a, work->a, work->b)));
    options.device = work->cpu;
    DO(TRY(tandem_matmul(work->context, &options, work->b, work->a, work->c)));
    DO(TRY(tandem_matmul(work->context, NULL, work->a, work->c, work->b)));
    DO(TRY(tandem_explain_matmul(work->context, NULL, work->a, work->b, work->c,
                                 &explanation)));
    DO(TRY(
        tandem_tensor_read(work->b, got, sizeof got, TANDEM_TIMEOUT_INFINITE)));
    for (int i = 0; i < ROWS * ROWS; i++)
        must(got[i] == (i / ROWS == i % ROWS ? 16 : 0), "the product");
    return true;
}

/* Large enough to start the CPU plugin's threads. */
static bool large_use(struct work *work)
{
    float sum = 0;

    for (int i = 0; i < LARGE; i++)
        large_data[i] = (float)(i % 8);
    DO(TRY(tandem_tensor_write(work->large, large_data, sizeof large_data)));
    DO(one(work, work->cpu, TANDEM_OP_NEG, work->large, work->large));
    for (int i = 0; i < 8; i++)
        DO(one(work, work->cpu, TANDEM_OP_SIN, work->large, work->large));
    DO(TRY(tandem_tensor_write(work->large, large_data, sizeof large_data)));
    DO(TRY(tandem_reduce(work->context, TANDEM_OP_SUM, 1, work->large,
                         work->scalar)));
    DO(TRY(tandem_tensor_read(work->scalar, &sum, sizeof sum,
                              TANDEM_TIMEOUT_INFINITE)));
    must(sum == LARGE / 8 * 28, "a large sum");
    return true;
}

static void observe(void *user, const struct tandem_explanation *explanation,
                    bool after)
{
    (void)explanation, (void)after;
    ++*(unsigned *)user;
}

static bool observers_use(struct work *work)
{
    unsigned calls = 0;
    bool good;

    DO(TRY(tandem_context_set_timing(work->context, 1)));
    DO(TRY(tandem_context_set_observer(work->context, observe, &calls)));
    good = one(work, TANDEM_ANY_DEVICE, TANDEM_OP_NEG, work->x, work->own);
    DO(TRY(tandem_context_set_observer(work->context, NULL, NULL)));
    DO(TRY(tandem_context_set_timing(work->context, 0)));
    DO(good);
    must(calls >= 2, "the observer's calls");
    DO(TRY(tandem_context_force_device(work->context, work->simulated)));
    DO(TRY(tandem_unary(work->context, TANDEM_OP_NEG, work->own, work->y)));
    DO(TRY(tandem_context_force_device(work->context, TANDEM_ANY_DEVICE)));
    return TRY(
        tandem_context_synchronize(work->context, TANDEM_TIMEOUT_INFINITE));
}

/* Makes calls in a second thread, which has its own thread-local state. */
static void *thread_main(void *argument)
{
    struct work *work = argument;

    return one(work, TANDEM_ANY_DEVICE, TANDEM_OP_NEG, work->x, work->y) ? work
                                                                         : NULL;
}

static bool thread_use(struct work *work)
{
    pthread_t thread;
    void *result;

    must(pthread_create(&thread, NULL, thread_main, work) == 0, "a thread");
    pthread_join(thread, &result);
    return result != NULL;
}

/* ---- the whole workload ---- */

static bool workload_all(struct work *work)
{
    return devices_use(work) && profile_use(work) &&
           plugin_use(work, work->cpu) && plugin_use(work, work->simulated) &&
           plugin_open(work) && tensors_make(work) && tensors_move(work) &&
           gaps_use(work) && operators_use(work) && gemm_use(work) &&
           large_use(work) && observers_use(work) && thread_use(work);
}

void workload_run(const struct workload_paths *paths)
{
    static struct work work;

    memset(&work, 0, sizeof work);
    work.paths = paths;
    if (!context_begin(&work, false))
        return;
    if (!profile_write(&work)) {
        context_end(&work);
        return;
    }
    context_end(&work);
    if (!context_begin(&work, true))
        return;
    workload_all(&work);
    tensors_end(&work);
    context_end(&work);
}
