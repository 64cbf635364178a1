/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that hang: calls end, other threads continue, and other devices are
 * used. No test depends on time: a test either waits for the hang timeout to
 * expire, or disables it.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define N 64
#define SHORT_MS 50u

/* The first launch on simulated:0 hangs, and fails later if fault is set. */
static struct tandem_context *context_with_failure(uint32_t hang_timeout_ms,
                                                   const char *fault)
{
    static const char *const keys[] = {"test.fault"};
    const char *const values[] = {fault};
    const struct tandem_context_options options = {
        .struct_size = sizeof options,
        .open_keys = keys,
        .open_values = values,
        .open_count = fault != NULL,
        .hang_timeout_ms = hang_timeout_ms,
        .log_level = TANDEM_LOG_DEBUG};

    setenv("TANDEM_TEST_PLUGIN", "stall=1", 0);
    return context_new(&options);
}

static struct tandem_context *context_with_hang(uint32_t hang_timeout_ms)
{
    return context_with_failure(hang_timeout_ms, NULL);
}

struct vectors {
    struct tandem_context *context;
    uint32_t simulated;
    float x[N], y[N], z[N];
    struct tandem_tensor *tx, *ty, *tz;
    int started; /* Tells another thread that all fields are set. */
};

/* Enqueues y = -x on the device that hangs. */
static void vectors_start(struct vectors *v, struct tandem_context *context)
{
    v->context = context;
    v->simulated = device_named(context, "simulated");
    count_up(v->x, N);
    v->tx = vector_wrap(context, v->x, N);
    v->ty = vector_wrap(context, v->y, N);
    v->tz = vector_wrap(context, v->z, N);
    OK(unary_status(context, v->simulated, TANDEM_OP_NEG, v->tx, v->ty));
    __atomic_store_n(&v->started, 1, __ATOMIC_RELEASE);
}

static void expect_cpu_works(struct vectors *v)
{
    memset(v->z, 0, sizeof v->z);
    OK(tandem_tensor_host_written(v->tz));
    OK(tandem_unary(v->context, TANDEM_OP_NEG, v->tx, v->tz));
    ck_assert_uint_eq(last_device(v->context), 0);
    OK(tensor_wait(v->tz));
    ck_assert_float_eq(v->z[5], -6);
}

/* ---- calls that need the device ---- */

static enum tandem_status wait_run_on_cpu(struct vectors *v)
{
    return unary_status(v->context, 0, TANDEM_OP_NEG, v->ty, v->ty);
}

static enum tandem_status wait_read(struct vectors *v)
{
    return tensor_wait(v->ty);
}

/* Writes every second element; the others must be downloaded first. */
static enum tandem_status wait_write(struct vectors *v)
{
    const int64_t half = N / 2;
    struct tandem_tensor *view = NULL;
    enum tandem_status status =
        tandem_tensor_view(v->ty, 0, 1, &half, &(int64_t){2}, &view);

    if (status == TANDEM_OK)
        status = tandem_tensor_write(view, v->x, sizeof v->x / 2);
    tandem_tensor_destroy(view);
    return status;
}

static enum tandem_status wait_synchronize(struct vectors *v)
{
    return tandem_context_synchronize(v->context, TANDEM_TIMEOUT_INFINITE);
}

static enum tandem_status (*const waits[])(struct vectors *v) = {
    wait_run_on_cpu, wait_write, wait_read, wait_synchronize};

/* The last two calls may wait as long as the caller likes. */
LOOP_TEST(test_calls_end, CASES_IN(waits) - 2)
{
    struct vectors v;

    vectors_start(&v, context_with_hang(SHORT_MS));
    FAILS(TANDEM_DEVICE_LOST, waits[_i](&v));
    expect_last_error("did not complete");
    ck_assert_uint_eq(log_count(TANDEM_LOG_ERROR, "no longer used"), 1);
    FAILS(TANDEM_DEVICE_LOST, tensor_wait(v.ty));
    FAILS(TANDEM_DEVICE_LOST,
          unary_status(v.context, v.simulated, TANDEM_OP_NEG, v.tx, v.tz));
    expect_cpu_works(&v);
    /* The tensor is valid after it is written again. */
    OK(tandem_unary(v.context, TANDEM_OP_NEG, v.tx, v.ty));
    OK(tensor_wait(v.ty));
    ck_assert_float_eq(v.y[3], -4);
}

/* The upload of a large tensor waits for earlier work. */
TEST(test_a_large_input_for_a_device_that_hangs)
{
    const int64_t large = (int64_t)2 << 20;
    float *memory = calloc((size_t)large, sizeof(*memory));
    struct tandem_tensor *tensor, *result;
    struct vectors v;

    ck_assert_ptr_nonnull(memory);
    vectors_start(&v, context_with_hang(SHORT_MS));
    tensor = vector_wrap(v.context, memory, large);
    OK(tandem_tensor_create(v.context, TANDEM_F32, 1, &large, &result));
    FAILS(TANDEM_DEVICE_LOST,
          unary_status(v.context, v.simulated, TANDEM_OP_NEG, tensor, result));
    expect_last_error("did not complete");
    expect_cpu_works(&v);
    tandem_context_destroy(v.context);
    free(memory);
}

TEST(test_any_selected_device)
{
    struct script cpu = script_free(), gpu = script_free();
    struct vectors v;

    script_all(&gpu, 1e6, 0);
    script_save("cpu", &cpu);
    script_save("simulated", &gpu);
    vectors_start(&v, context_with_hang(SHORT_MS));
    FAILS(TANDEM_DEVICE_LOST,
          tandem_unary(v.context, TANDEM_OP_NEG, v.ty, v.tz));
    expect_last_error("did not complete");
    expect_cpu_works(&v);
}

TEST(test_a_wait_with_a_timeout_ends)
{
    struct vectors v;

    vectors_start(&v, context_with_hang(UINT32_MAX));
    FAILS(TANDEM_NOT_READY, tandem_tensor_sync(v.ty, 1000000));
    FAILS(TANDEM_NOT_READY, tandem_tensor_sync(v.ty, 0));
    FAILS(TANDEM_NOT_READY, tandem_context_synchronize(v.context, 1000000));
    OK(tandem_tensor_prefetch(v.ty, 0));
    expect_cpu_works(&v);
    hangs_release();
    OK(tensor_wait(v.ty));
    ck_assert_float_eq(v.y[3], -4);
    OK(tandem_context_synchronize(v.context, TANDEM_TIMEOUT_INFINITE));
}

/* A download that timed out may complete, so its memory is not reused. */
TEST(test_memory_that_may_still_be_written)
{
    struct vectors v;

    vectors_start(&v, context_with_hang(SHORT_MS));
    FAILS(TANDEM_NOT_READY, tandem_tensor_sync(v.ty, 1000000));
    for (int i = 0; i < 2; i++) {
        FAILS(TANDEM_DEVICE_LOST, tandem_tensor_write(v.ty, v.x, sizeof v.x));
        expect_last_error("another tensor");
    }
    ck_assert_uint_eq(log_count(TANDEM_LOG_ERROR, "did not complete"), 1);
    tandem_tensor_destroy(v.ty);
    expect_cpu_works(&v);
    tandem_context_destroy(v.context);
    hangs_release();
}

TEST(test_a_timed_operator)
{
    struct vectors v;

    vectors_start(&v, context_with_hang(SHORT_MS));
    OK(tandem_context_set_timing(v.context, 1));
    /* The launch succeeds, but its output cannot be read. */
    OK(unary_status(v.context, v.simulated, TANDEM_OP_NEG, v.tx, v.tz));
    FAILS(TANDEM_DEVICE_LOST, tensor_wait(v.tz));
    FAILS(TANDEM_DEVICE_LOST,
          tandem_context_synchronize(v.context, TANDEM_TIMEOUT_INFINITE));
    expect_cpu_works(&v);
}

TEST(test_a_context_with_errors_can_be_destroyed)
{
    struct vectors v;

    vectors_start(&v, context_with_hang(SHORT_MS));
    tandem_context_destroy(v.context);
    ck_assert_uint_eq(log_count(TANDEM_LOG_ERROR, "did not complete"), 1);
    ck_assert_uint_eq(counters_read(0).closes, 0);
}

TEST(test_the_limit_of_the_environment)
{
    struct vectors v;

    setenv("TANDEM_HANG_TIMEOUT_SECONDS", "1", 1);
    vectors_start(&v, context_with_hang(0));
    FAILS(TANDEM_DEVICE_LOST,
          unary_status(v.context, 0, TANDEM_OP_NEG, v.ty, v.tz));
    expect_last_error("within 1 s");
}

/* ---- several threads ---- */

struct blocked_thread {
    struct vectors *v;
    enum tandem_status (*call)(struct vectors *v);
    enum tandem_status status;
    int ended;
};

static void *blocked_thread_main(void *argument)
{
    struct blocked_thread *blocked_thread = argument;

    blocked_thread->status = blocked_thread->call(blocked_thread->v);
    __atomic_store_n(&blocked_thread->ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Starts a thread that waits for simulated:0, and returns once it waits. */
static pthread_t blocked_thread_start(struct blocked_thread *blocked_thread)
{
    const uint64_t before = counters_read(0).waits;
    pthread_t thread;

    ck_assert_int_eq(
        pthread_create(&thread, NULL, blocked_thread_main, blocked_thread), 0);
    while (counters_read(0).waits == before ||
           !__atomic_load_n(&blocked_thread->v->started, __ATOMIC_ACQUIRE)) {
        ck_assert_msg(
            !__atomic_load_n(&blocked_thread->ended, __ATOMIC_ACQUIRE),
            "it did not wait");
        usleep(1000);
    }
    return thread;
}

/* Checks that operations that do not need the device work. */
static void expect_others_work(struct vectors *v)
{
    uint32_t other = device_named(v->context, "simulated:1"), count;
    const struct tandem_backend *backend;
    struct tandem_device *device;
    const struct tandem_op negate = {.struct_size = sizeof negate,
                                     .id = TANDEM_OP_NEG};
    struct tandem_explanation e = {.struct_size = sizeof e};

    for (int i = 0; i < 20; i++) {
        struct tandem_tensor *own = vector_new(v->context, N);
        float read[N];

        expect_cpu_works(v);
        OK(unary_status(v->context, other, TANDEM_OP_NEG, v->tz, own));
        OK(unary_status(v->context, 0, TANDEM_OP_NEG, own, own));
        OK(tandem_tensor_read(own, read, sizeof read, TANDEM_TIMEOUT_INFINITE));
        ck_assert_float_eq(read[5], -6);
        OK(tandem_tensor_write(own, v->x, sizeof v->x));
        OK(tandem_explain_op(v->context, &negate, &own, 1, &own, 1, &e));
        tandem_tensor_destroy(own);
    }
    OK(tandem_device_count(v->context, &count));
    OK(tandem_device_backend(v->context, 0, &backend, &device));
    FAILS(TANDEM_NOT_READY, tandem_context_synchronize(v->context, 0));
}

LOOP_TEST(test_others_work_during_a_wait, CASES_IN(waits))
{
    struct vectors v;
    struct blocked_thread blocked_thread = {&v, waits[_i], TANDEM_FAILED, 0};
    pthread_t thread;

    setenv("TANDEM_TEST_PLUGIN", "devices=2,stall=1", 1);
    vectors_start(&v, context_with_hang(UINT32_MAX));
    thread = blocked_thread_start(&blocked_thread);
    expect_others_work(&v);
    hangs_release();
    pthread_join(thread, NULL);
    ck_assert_int_eq(blocked_thread.status, TANDEM_OK);
    OK(tensor_wait(v.ty));
}

static enum tandem_status wait_alone(struct vectors *v)
{
    vectors_start(v, context_with_hang(SHORT_MS));
    return tensor_wait(v->ty);
}

/*
 * A thread that is alone in the context waits for the device. When another
 * thread needs the device, it treats the device as lost and uses another
 * device.
 */
TEST(test_a_device_that_another_thread_waits_for)
{
    struct script cpu = script_free(), gpu = script_free();
    struct vectors v;
    struct blocked_thread blocked_thread = {&v, wait_alone, TANDEM_OK, 0};
    pthread_t thread;

    v.started = 0;
    script_all(&cpu, 1e6, 0);
    script_save("cpu", &cpu);
    script_save("simulated", &gpu);
    thread = blocked_thread_start(&blocked_thread);
    expect_cpu_works(&v);
    ck_assert_uint_ge(log_count(TANDEM_LOG_WARNING, "not run on simulated:0"),
                      1);
    FAILS(TANDEM_DEVICE_LOST,
          unary_status(v.context, 0, TANDEM_OP_NEG, v.ty, v.tz));
    hangs_release();
    pthread_join(thread, NULL);
    ck_assert_int_eq(blocked_thread.status, TANDEM_DEVICE_LOST);
}

/* Lets two threads read the same tensor; both calls must return status. */
static void readers_run(struct vectors *v, enum tandem_status status)
{
    struct blocked_thread readers[2] = {{v, wait_read, TANDEM_UNSUPPORTED, 0},
                                        {v, wait_read, TANDEM_UNSUPPORTED, 0}};
    pthread_t threads[2];

    threads[0] = blocked_thread_start(&readers[0]);
    ck_assert_int_eq(
        pthread_create(&threads[1], NULL, blocked_thread_main, &readers[1]), 0);
    usleep(20000);
    hangs_release();
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(readers[i].status, status);
    }
}

/* Two threads need the host copy of the same tensor; it is downloaded once. */
TEST(test_two_readers_of_one_tensor)
{
    struct sim_counters before;
    struct vectors v;

    vectors_start(&v, context_with_hang(UINT32_MAX));
    before = counters_read(0);
    readers_run(&v, TANDEM_OK);
    ck_assert_uint_eq(counters_since(0, &before).downloads, 1);
    ck_assert_float_eq(v.y[3], -4);
}

/* A thread that waited for another thread's download also gets its error. */
TEST(test_two_readers_of_a_failed_tensor)
{
    struct vectors v;

    vectors_start(&v, context_with_failure(UINT32_MAX, "launch:1:7"));
    readers_run(&v, TANDEM_FAILED);
}

static void *write_main(void *tensor)
{
    float written[N];

    for (int i = 0; i < N; i++)
        written[i] = 100.0f + (float)i;
    OK(tandem_tensor_write(tensor, written, sizeof written));
    return NULL;
}

/*
 * A write waits for the call of another thread that uses the tensor, and is not
 * lost.
 */
TEST(test_a_write_during_a_call_is_preserved)
{
    struct vectors v;
    struct blocked_thread blocked_thread = {&v, wait_run_on_cpu, TANDEM_FAILED,
                                            0};
    float read[N];
    pthread_t threads[2];

    vectors_start(&v, context_with_hang(UINT32_MAX));
    threads[0] = blocked_thread_start(&blocked_thread);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, write_main, v.ty), 0);
    usleep(20000);
    hangs_release();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    ck_assert_int_eq(blocked_thread.status, TANDEM_OK);
    OK(tandem_tensor_read(v.ty, read, sizeof read, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(read[i], 100.0f + (float)i);
}

static enum tandem_status wait_overwrite(struct vectors *v)
{
    return tandem_tensor_write(v->ty, v->x, sizeof v->x);
}

/*
 * A download that timed out may still write to the tensor's host memory, so
 * the next write waits for it.
 */
TEST(test_a_write_after_a_read_timeout)
{
    struct vectors v;
    struct blocked_thread blocked_thread = {&v, wait_overwrite, TANDEM_FAILED,
                                            0};
    pthread_t thread;

    vectors_start(&v, context_with_hang(UINT32_MAX));
    FAILS(TANDEM_NOT_READY, tandem_tensor_sync(v.ty, 1000000));
    thread = blocked_thread_start(&blocked_thread);
    hangs_release();
    pthread_join(thread, NULL);
    ck_assert_int_eq(blocked_thread.status, TANDEM_OK);
    OK(tensor_wait(v.ty));
    ck_assert_mem_eq(v.y, v.x, sizeof v.x);
}

TEST_MAIN(host_tests_run("hang", NULL, NULL))
