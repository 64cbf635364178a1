/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures: work that fails after its call returned, devices that are lost or
 * hang, errors of other threads.
 */
#include <config.h>

#include <pthread.h>
#include <string.h>

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
    FAILS(TANDEM_FAILED, tensor_wait(t[2]));
    FAILS(TANDEM_FAILED, tensor_wait(t[3]));
    FAILS(TANDEM_FAILED, tandem_tensor_read(t[3], out[3], sizeof out[3],
                                            TANDEM_TIMEOUT_INFINITE));
    FAILS(TANDEM_FAILED, tandem_unary(context, TANDEM_OP_ABS, t[2], t[3]));
    OK(tensor_wait(tx));
    OK(tensor_wait(t[0]));
    OK(tensor_wait(t[1]));
    ck_assert_float_eq(out[0][4], -5);
    ck_assert_float_eq(out[1][4], 5);
    /* The outputs are valid after they are written again. */
    unary_on(context, simulated, TANDEM_OP_ABS, t[0], t[2]);
    unary_on(context, simulated, TANDEM_OP_NEG, t[2], t[3]);
    OK(tensor_wait(t[2]));
    OK(tensor_wait(t[3]));
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
    FAILS(TANDEM_FAILED, tensor_wait(ty));
    OK(tandem_tensor_write(ty, x, sizeof x));
    OK(tensor_wait(ty));
    ck_assert_mem_eq(x, y, sizeof x);
}

/* If the caller writes to the wrapped memory, the tensor becomes valid. */
TEST(test_host_written_clears_the_error)
{
    start("launch:1:7");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    FAILS(TANDEM_FAILED, tensor_wait(ty));
    memcpy(y, x, sizeof y);
    OK(tandem_tensor_host_written(ty));
    unary_on(context, simulated, TANDEM_OP_NEG, ty, tx);
    OK(tensor_wait(tx));
    ck_assert_float_eq(x[1], -2);
}

TEST(test_out_of_device_memory)
{
    const char *const pairs[] = {"memory_limit_bytes", "1000", NULL};
    float in[N * 8], out[N * 8];
    struct tandem_tensor *ti, *to;

    context = context_with(pairs);
    ti = vector_wrap(context, in, N * 8);
    to = vector_wrap(context, out, N * 8);
    count_up(in, N * 8);
    FAILS(TANDEM_OUT_OF_MEMORY,
          unary_status(context, device_named(context, "simulated"),
                       TANDEM_OP_NEG, ti, to));
    /* The operator still runs on any device. */
    OK(tandem_unary(context, TANDEM_OP_NEG, ti, to));
    OK(tensor_wait(to));
    ck_assert_float_eq(out[9], -10);
}

/* ---- lost devices, hanging waits ---- */

TEST(test_a_lost_device_is_not_used)
{
    struct script cpu = script_free(), gpu = script_free();

    script_all(&cpu, 1e6, 0);
    script_save("cpu", &cpu);
    script_save("simulated", &gpu);
    start("launch:3:6");
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, tz));
    ck_assert_uint_eq(last_device(context), simulated);
    OK(tensor_wait(tz));
    OK(tandem_unary(context, TANDEM_OP_NEG, tz, ty));
    OK(tandem_unary(context, TANDEM_OP_NEG, ty, ty)); /* The device is lost. */
    FAILS(TANDEM_DEVICE_LOST, tensor_wait(ty));
    /* The host has current copies, so the work continues on the CPU. */
    for (int i = 0; i < 5; i++) {
        OK(tandem_unary(context, TANDEM_OP_ABS, tz, ty));
        ck_assert_uint_eq(last_device(context), 0);
        OK(tensor_wait(ty));
        ck_assert_float_eq(y[7], 8);
    }
    FAILS(TANDEM_DEVICE_LOST,
          unary_status(context, simulated, TANDEM_OP_NEG, tx, ty));
}

TEST(test_data_on_a_lost_device_is_lost)
{
    start("launch:2:6");
    unary_on(context, simulated, TANDEM_OP_NEG, tx, ty);
    unary_on(context, simulated, TANDEM_OP_NEG, ty, tz);
    FAILS(TANDEM_DEVICE_LOST, tensor_wait(tz));
    FAILS(TANDEM_DEVICE_LOST, tensor_wait(ty));
    FAILS(TANDEM_DEVICE_LOST, tandem_unary(context, TANDEM_OP_NEG, ty, tz));
    /* x was only read, so its host copy is current. */
    OK(tandem_unary(context, TANDEM_OP_NEG, tx, ty));
    OK(tensor_wait(ty));
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

/* ---- threads; check-threads computes in several ---- */

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
