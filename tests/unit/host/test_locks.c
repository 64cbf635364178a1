/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that blocks in a plugin delays no calls of other threads, except those
 * that need the same device or tensor. No test depends on time.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define N 64

/* Entries of the plugin. The first is called when devices are found. */
static const char *const entries[] = {"device_count",  "open",
                                      "stream_create", "prepare",
                                      "prepared_wait", "alloc",
                                      "upload",        "buffer_seal",
                                      "launch",        "event_record",
                                      "event_wait",    "event_destroy",
                                      "download",      "stream_synchronize",
                                      "free"};

struct user {
    struct tandem_context *context;
    float x[N], y[N];
};

/* Uses the blocking device so that each entry is called. */
static void *user_main(void *argument)
{
    struct user *user = argument;
    struct tandem_context *context = user->context;
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};
    const int64_t n = N;
    const uint32_t device = device_named(context, "simulated:0");
    struct tandem_tensor *x, *y = vector_new(context, N);

    OK(tandem_tensor_wrap(context, user->x, TANDEM_F32, 1, &n, NULL,
                          TANDEM_TENSOR_READ_ONLY, &x));
    OK(tandem_prepare_on(context, device, &op, &x, 1, &y, 1));
    OK(unary_status(context, device, TANDEM_OP_NEG, x, y));
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    OK(unary_status(context, device, TANDEM_OP_NEG, y, y));
    OK(tandem_tensor_read(y, user->y, sizeof user->y, TANDEM_TIMEOUT_INFINITE));
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return NULL;
}

/* Calls that need no device. */
static void expect_tensors_work(struct tandem_context *context)
{
    struct tandem_tensor *tensor = vector_new(context, N), *view;
    const int64_t half = N / 2;
    uint32_t dtype, rank;
    float data[N], read[N];

    count_up(data, N);
    OK(tandem_tensor_write(tensor, data, sizeof data));
    OK(tandem_tensor_view(tensor, 0, 1, &half, NULL, &view));
    OK(tandem_tensor_describe(view, &dtype, &rank, NULL, NULL));
    ck_assert_uint_ne(residency(view), 0);
    tandem_tensor_destroy(view);
    OK(tandem_tensor_read(tensor, read, sizeof read, TANDEM_TIMEOUT_INFINITE));
    ck_assert_mem_eq(read, data, sizeof data);
    tandem_tensor_destroy(tensor);
}

static void expect_device_works(struct tandem_context *context,
                                const char *name)
{
    const uint32_t device = device_named(context, name);
    struct tandem_device_info info = {.struct_size = sizeof info};
    struct tandem_tensor *x, *y = vector_new(context, N);
    float data[N], read[N];

    count_up(data, N);
    x = vector_wrap(context, data, N);
    OK(tandem_device_describe(context, device, &info));
    OK(unary_status(context, device, TANDEM_OP_NEG, x, y));
    OK(tandem_tensor_read(y, read, sizeof read, TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq(read[5], -data[5]);
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
}

LOOP_TEST(test_a_blocked_entry_delays_no_other_device, CASES_IN(entries))
{
    const struct tandem_context_options options = {
        .struct_size = sizeof options, .hang_timeout_ms = UINT32_MAX};
    const bool finds_devices = _i == 0;
    struct user user = {.context = NULL};
    char script[64];
    pthread_t thread;

    snprintf(script, sizeof script, "devices=2,block=%s", entries[_i]);
    setenv("TANDEM_TEST_PLUGIN", script, 1);
    user.context = context_new(&options);
    count_up(user.x, N);
    if (!finds_devices)
        expect_device_works(user.context, "simulated:1");
    ck_assert_int_eq(pthread_create(&thread, NULL, user_main, &user), 0);
    while (counters_read(0).blocked == 0)
        usleep(1000);
    for (int i = 0; i < 20; i++) {
        expect_tensors_work(user.context);
        if (finds_devices)
            continue;
        expect_device_works(user.context, "cpu");
        expect_device_works(user.context, "simulated:1");
    }
    hangs_release();
    pthread_join(thread, NULL);
    ck_assert_float_eq(user.y[5], user.x[5]);
}

int main(void)
{
    return host_tests_run("locks", NULL, NULL);
}
