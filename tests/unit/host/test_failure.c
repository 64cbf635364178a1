/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures: work that fails after its call returned, devices that are lost or
 * hang, forks, threads.
 */
#include <config.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define N 64

static struct tandem_context *context;
static uint32_t simulated;
static float x[N], y[N], z[N];
static struct tandem_tensor *tx, *ty, *tz;

/*
 * Creates a context and wraps the vectors. The simulated GPU has this fault;
 * NULL means no fault.
 */
static void start(const char *fault)
{
    const char *const pairs[] = {fault ? "test.fault" : NULL, fault, NULL};

    context = context_with(pairs);
    simulated = device_named(context, "simulated");
    count_up(x, N);
    tx = vector_wrap(context, x, N);
    ty = vector_wrap(context, y, N);
    tz = vector_wrap(context, z, N);
}

/* ---- sticky errors ---- */

/*
 * The third launch fails. Its output and those of later launches give an error
 * when read; inputs and earlier outputs remain valid.
 */
TEST(test_work_that_fails_later)
{
    float out[4][N];
    struct tandem_tensor *t[4];

    start("launch:3:7");
    for (int i = 0; i < 4; i++)
        t[i] = vector_wrap(context, out[i], N);
    for (int i = 0; i < 4; i++)
        unary_on(context, simulated, TANDEM_OP_NEG, i ? t[i - 1] : tx, t[i]);
    FAILS(TANDEM_FAILED, tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_FAILED, tandem_tensor_sync(t[3], TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_FAILED, tandem_tensor_read(t[3], out[3], sizeof out[3],
                                            TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_FAILED, tandem_unary(context, TANDEM_OP_ABS, t[2], t[3]));
    OK(tandem_tensor_sync(tx, TANDEM_TIMEOUT_INFINITE));
    OK(tandem_tensor_sync(t[0], TANDEM_TIMEOUT_INFINITE));
    OK(tandem_tensor_sync(t[1], TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(out[0][4], -5);
    ck_assert_float_eq(out[1][4], 5);
    /* The outputs are valid after they are written again. */
    unary_on(context, simulated, TANDEM_OP_ABS, t[0], t[2]);
    unary_on(context, simulated, TANDEM_OP_NEG, t[2], t[3]);
    OK(tandem_tensor_sync(t[2], TANDEM_TIMEOUT_INFINITE));
    OK(tandem_tensor_sync(t[3], TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(out[2][4], 5);
    ck_assert_float_eq(out[3][4], -5);
}

TEST(test_synchronize_reports_the_error_once)
{
    start("launch:1:7");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    FAILS(TANDEM_FAILED,
          tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_FAILED, tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    OK(tandem_tensor_write(ty, x, sizeof x));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_mem_eq(x, y, sizeof x);
}

/* If the caller writes to the wrapped memory, the tensor becomes valid. */
TEST(test_host_written_clears_the_error)
{
    start("launch:1:7");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    FAILS(TANDEM_FAILED, tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    memcpy(y, x, sizeof y);
    OK(tandem_tensor_host_written(ty));
    unary_on(context, simulated, TANDEM_OP_NEG, ty, tx);
    OK(tandem_tensor_sync(tx, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(x[1], -2);
}

TEST(test_out_of_device_memory)
{
    const char *const pairs[] = {"memory_limit_bytes", "1000", NULL};
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    float in[N * 8], out[N * 8];
    struct tandem_tensor *ti, *to;

    context = context_with(pairs);
    ti = vector_wrap(context, in, N * 8);
    to = vector_wrap(context, out, N * 8);
    count_up(in, N * 8);
    FAILS(TANDEM_OUT_OF_MEMORY,
          tandem_run_on(context, device_named(context, "simulated"), &op, &ti,
                        1, &to, 1));
    /* The operator still runs on any device. */
    OK(tandem_unary(context, TANDEM_OP_NEG, ti, to));
    OK(tandem_tensor_sync(to, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(out[9], -10);
}

/* ---- lost devices, hanging waits ---- */

TEST(test_a_lost_device_is_not_used)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_ABS};
    struct script cpu = script_free(), gpu = script_free();

    script_all(&cpu, 1e6, 0);
    script_save("cpu", &cpu);
    script_save("simulated", &gpu);
    start("launch:3:6");
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, tz));
    ck_assert_uint_eq(last_device(context), simulated);
    OK(tandem_tensor_sync(tz, TANDEM_TIMEOUT_INFINITE));
    OK(tandem_unary(context, TANDEM_OP_NEG, tz, ty));
    OK(tandem_unary(context, TANDEM_OP_NEG, ty, ty)); /* The device is lost. */
    FAILS(TANDEM_DEVICE_LOST, tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    /* The host has current copies, so the work continues on the CPU. */
    for (int i = 0; i < 5; i++) {
        OK(tandem_unary(context, TANDEM_OP_ABS, tz, ty));
        ck_assert_uint_eq(last_device(context), 0);
        OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
        ck_assert_float_eq(y[7], 8);
    }
    FAILS(TANDEM_DEVICE_LOST,
          tandem_run_on(context, simulated, &op, &tx, 1, &ty, 1));
}

TEST(test_data_on_a_lost_device_is_lost)
{
    start("launch:2:6");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    unary_on(context, simulated, TANDEM_OP_NEG, ty, tz);
    FAILS(TANDEM_DEVICE_LOST, tandem_tensor_sync(tz, TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_DEVICE_LOST, tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_DEVICE_LOST, tandem_unary(context, TANDEM_OP_NEG, ty, tz));
    /* x was only read, so its host copy is current. */
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y[0], -1);
}

TEST(test_a_wait_that_never_ends)
{
    start("wait:1");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    FAILS(TANDEM_NOT_READY, tandem_tensor_sync(ty, 1000));
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y[0], -1);
}

TEST(test_a_poll_does_not_wait)
{
    struct sim_counters before;
    int polls = 0;

    start(NULL);
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    before = counters_read(0);
    while (tandem_tensor_sync(ty, 0) == TANDEM_NOT_READY)
        ck_assert_int_lt(++polls, 100);
    ck_assert_int_ge(polls, 1);
    ck_assert_uint_eq(counters_since(0, &before).waits, 0);
    OK(tandem_tensor_sync(ty, 0));
    ck_assert_float_eq(y[2], -3);
}

/* ---- fork ---- */

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED_ADDRESS true
#else
#define SANITIZED_ADDRESS false
#endif

/*
 * Runs the function in a child process and returns its result. An alarm ends
 * the child if it hangs.
 */
static int run_in_child(int (*child)(void))
{
    pid_t id = fork();
    int status = 0;

    /* libcheck uses a lock, so the child makes no assertions. */
    if (id == 0) {
        alarm(20);
        _exit(child());
    }
    ck_assert_int_ne(id, -1);
    ck_assert_int_eq(waitpid(id, &status, 0), id);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d",
                  WTERMSIG(status));
    return WEXITSTATUS(status);
}

#define CHILD(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            return __LINE__ % 250 + 1;                                         \
    } while (0)

/* Calls on inherited objects fail with a message, and a new context works. */
static int child_with_used_context(void)
{
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *own = NULL;
    struct tandem_tensor *own_x, *own_y;
    const int64_t shape = 1;
    float in = -4, out = 0, more[N];
    uint32_t count;

    CHILD(tandem_unary(context, TANDEM_OP_NEG, tx, ty) == TANDEM_DEVICE_LOST);
    CHILD(tandem_last_error()[0]);
    CHILD(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE) ==
          TANDEM_DEVICE_LOST);
    CHILD(tandem_tensor_read(ty, more, sizeof more, TANDEM_TIMEOUT_INFINITE) ==
          TANDEM_DEVICE_LOST);
    CHILD(tandem_tensor_write(ty, more, sizeof more) == TANDEM_DEVICE_LOST);
    CHILD(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE) ==
          TANDEM_DEVICE_LOST);
    CHILD(tandem_device_count(context, &count) == TANDEM_DEVICE_LOST);
    CHILD(tandem_tensor_prefetch(tx, 0) == TANDEM_DEVICE_LOST);
    CHILD(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &own_x) ==
          TANDEM_DEVICE_LOST);
    tandem_tensor_destroy(tx);
    tandem_context_destroy(context);
    CHILD(tandem_context_create(&options, &own) == TANDEM_OK);
    CHILD(tandem_tensor_wrap(own, &in, TANDEM_F32, 1, &shape, NULL, 0,
                             &own_x) == TANDEM_OK);
    CHILD(tandem_tensor_wrap(own, &out, TANDEM_F32, 1, &shape, NULL, 0,
                             &own_y) == TANDEM_OK);
    CHILD(tandem_unary(own, TANDEM_OP_NEG, own_x, own_y) == TANDEM_OK);
    CHILD(tandem_tensor_sync(own_y, TANDEM_TIMEOUT_INFINITE) == TANDEM_OK);
    CHILD(out == 4);
    tandem_context_destroy(own);
    return 0;
}

TEST(test_a_child_with_inherited_objects)
{
    start(NULL);
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    ck_assert_int_eq(run_in_child(child_with_used_context), 0);
    /* The parent is not affected. */
    OK(tandem_tensor_sync(ty, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(y[3], -4);
    OK(tandem_unary(context, TANDEM_OP_ABS, ty, tx));
    OK(tandem_tensor_sync(tx, TANDEM_TIMEOUT_INFINITE));
}

static int child_with_unused_context(void)
{
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *own = NULL;

    CHILD(tandem_context_create(&options, &own) == TANDEM_OK);
    tandem_context_destroy(own);
    return 0;
}

TEST(test_a_fork_before_first_use)
{
    ck_assert_int_eq(run_in_child(child_with_unused_context), 0);
}

/*
 * A thread that runs operators while another one forks. The child must not
 * find a lock held. The thread makes no libcheck assertions, which are for one
 * thread only.
 */
struct worker_thread {
    int stop, failures;
};

static void *work_until(void *argument)
{
    struct worker_thread *worker_thread = argument;
    const int64_t shape = N;
    float in[N], out[N];

    count_up(in, N);
    while (!__atomic_load_n(&worker_thread->stop, __ATOMIC_ACQUIRE)) {
        struct tandem_tensor *ti = NULL, *to = NULL;

        worker_thread->failures +=
            tandem_tensor_wrap(context, in, TANDEM_F32, 1, &shape, NULL, 0,
                               &ti) != TANDEM_OK ||
            tandem_tensor_wrap(context, out, TANDEM_F32, 1, &shape, NULL, 0,
                               &to) != TANDEM_OK ||
            tandem_unary(context, TANDEM_OP_NEG, ti, to) != TANDEM_OK ||
            tandem_tensor_sync(to, TANDEM_TIMEOUT_INFINITE) != TANDEM_OK;
        tandem_tensor_destroy(ti);
        tandem_tensor_destroy(to);
    }
    return NULL;
}

/* The sanitizer's malloc may be locked in the child. */
LOOP_TEST(test_forks_while_threads_work, !SANITIZED_ADDRESS)
{
    struct worker_thread worker_thread = {0};
    pthread_t thread;

    start(NULL);
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    ck_assert_int_eq(pthread_create(&thread, NULL, work_until, &worker_thread),
                     0);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(run_in_child(child_with_used_context), 0);
    __atomic_store_n(&worker_thread.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    ck_assert_int_eq(worker_thread.failures, 0);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 300

struct worker {
    uint32_t number;
    const char *failure; /* libcheck's assertions are for one thread only. */
};

#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) != TANDEM_OK) {                                             \
            worker->failure = #call;                                           \
            return NULL;                                                       \
        }                                                                      \
    } while (0)

/* Runs operators on both devices in turn and checks the results exactly. */
static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    const int64_t n = 32 + worker->number, square[2] = {8, 8};
    float in[64], out[64], a[64], b[64], c[64];
    struct tandem_tensor *ti, *to, *ta, *tb, *tc;
    const struct tandem_op neg = {.struct_size = sizeof neg,
                                  .id = TANDEM_OP_NEG};

    for (int i = 0; i < 64; i++) {
        a[i] = i % 9 == 0 ? 2 : 0; /* Twice the identity matrix. */
        b[i] = (float)(i + (int)worker->number);
    }
    count_up(in, n);
    for (int round = 0; round < ROUNDS; round++) {
        MUST(tandem_tensor_wrap(context, in, TANDEM_F32, 1, &n, NULL, 0, &ti));
        MUST(tandem_tensor_create(context, TANDEM_F32, 1, &n, &to));
        MUST(tandem_run_on(context, round % 2 ? simulated : 0, &neg, &ti, 1,
                           &to, 1));
        MUST(tandem_binary(context, TANDEM_OP_SUB, ti, to, to)); /* 2 x. */
        MUST(tandem_run_on(context, round % 3 ? simulated : 0, &neg, &to, 1,
                           &to, 1));
        MUST(tandem_tensor_read(to, out, (uint64_t)n * 4,
                                TANDEM_TIMEOUT_INFINITE));
        for (int64_t i = 0; i < n; i++)
            if (out[i] != -2 * in[i])
                worker->failure = "a wrong element";
        MUST(tandem_tensor_wrap(context, a, TANDEM_F32, 2, square, NULL, 0,
                                &ta));
        MUST(tandem_tensor_wrap(context, b, TANDEM_F32, 2, square, NULL, 0,
                                &tb));
        MUST(tandem_tensor_wrap(context, c, TANDEM_F32, 2, square, NULL, 0,
                                &tc));
        MUST(tandem_matmul(context, NULL, ta, tb, tc));
        MUST(tandem_tensor_sync(tc, TANDEM_TIMEOUT_INFINITE));
        for (int i = 0; i < 64; i++)
            if (c[i] != 2 * b[i])
                worker->failure = "a wrong product";
        tandem_tensor_destroy(ti);
        tandem_tensor_destroy(to);
        tandem_tensor_destroy(ta);
        tandem_tensor_destroy(tb);
        tandem_tensor_destroy(tc);
        if (worker->failure)
            break;
    }
    return NULL;
}

TEST(test_threads_share_a_context)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];

    start(NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){i, NULL};
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_msg(!workers[i].failure, "thread %u: %s", i,
                      workers[i].failure);
}

static void *explain_other(void *argument)
{
    struct tandem_explanation e = {.struct_size = sizeof e};

    return (void *)(uintptr_t)tandem_explain_last(argument, &e);
}

/* Each thread has its own explanations and errors. */
TEST(test_explanations_are_a_threads_own)
{
    pthread_t thread;
    void *status = NULL;

    start(NULL);
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    BAD(tandem_unary(context, TANDEM_OP_ADD, tx, ty));
    pthread_create(&thread, NULL, explain_other, context);
    pthread_join(thread, &status);
    ck_assert_uint_eq((uintptr_t)status, TANDEM_INVALID_ARGUMENT);
    expect_last_error("add");
}

TEST_MAIN(host_tests_run("failure", NULL, NULL))
