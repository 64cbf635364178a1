/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: lifecycle-program MODE DEVICE; see lifecycle_program.h. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle_program.h"

void lifecycle_test_fail(const char *format, ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "lifecycle-program: %s\n", line);
    _exit(3);
}

void lifecycle_test_begin(struct lifecycle_test *test, const char *device)
{
    const int64_t n = LIFECYCLE_N;

    memset(test, 0, sizeof *test);
    for (int i = 0; i < LIFECYCLE_N; i++)
        test->x[i] = (float)(i % 100 + 1);
    OK(tandem_context_create(NULL, &test->context));
    OK(tandem_device_find(test->context, device, &test->device));
    OK(tandem_tensor_wrap(test->context, test->x, TANDEM_F32, 1, &n, NULL,
                          TANDEM_TENSOR_READ_ONLY, &test->tx));
    OK(tandem_tensor_wrap(test->context, test->y, TANDEM_F32, 1, &n, NULL, 0,
                          &test->ty));
}

static void run(struct lifecycle_test *test, uint32_t id,
                struct tandem_tensor *x, struct tandem_tensor *y)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    OK(tandem_run_on(test->context, test->device, &op, &x, 1, &y, 1));
}

void lifecycle_test_start(struct lifecycle_test *test)
{
    run(test, TANDEM_OP_NEG, test->tx, test->ty);
}

void lifecycle_test_read(struct lifecycle_test *test)
{
    OK(tandem_tensor_sync(test->ty, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < LIFECYCLE_N; i++)
        MUST(test->y[i] == -test->x[i]);
}

static void sum_check(struct lifecycle_test *test)
{
    const int64_t ints[2] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SUM,
                                 .int_count = 2,
                                 .ints = ints};
    struct tandem_tensor *sum = NULL;
    float expected = 0, result = 0;

    for (int i = 0; i < LIFECYCLE_N; i++)
        expected += test->x[i];
    OK(tandem_tensor_create(test->context, TANDEM_F32, 0, NULL, &sum));
    OK(tandem_run_on(test->context, test->device, &op, &test->tx, 1, &sum, 1));
    OK(tandem_tensor_read(sum, &result, sizeof result,
                          TANDEM_TIMEOUT_INFINITE));
    MUST(fabsf(result - expected) < 1);
    tandem_tensor_destroy(sum);
}

/* Multiplies x as a 32 x 32 matrix by twice the identity. */
static void gemm_check(struct lifecycle_test *test)
{
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = test->device};
    const int64_t shape[2] = {32, 32};
    float twice[32 * 32] = {0}, out[32 * 32];
    struct tandem_tensor *x = NULL, *b = NULL, *c = NULL;

    for (int i = 0; i < 32; i++)
        twice[i * 33] = 2;
    OK(tandem_tensor_view(test->tx, 0, 2, shape, NULL, &x));
    OK(tandem_tensor_create(test->context, TANDEM_F32, 2, shape, &b));
    OK(tandem_tensor_create(test->context, TANDEM_F32, 2, shape, &c));
    OK(tandem_tensor_write(b, twice, sizeof twice));
    OK(tandem_matmul(test->context, &options, x, b, c));
    OK(tandem_tensor_read(c, out, sizeof out, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 32 * 32; i++)
        MUST(out[i] == 2 * test->x[i]);
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
}

void lifecycle_test_work_own(struct lifecycle_test *test)
{
    lifecycle_test_start(test);
    lifecycle_test_read(test);
    sum_check(test);
}

void lifecycle_test_work(struct lifecycle_test *test)
{
    lifecycle_test_work_own(test);
    gemm_check(test);
}

void lifecycle_test_end(struct lifecycle_test *test)
{
    tandem_tensor_destroy(test->tx);
    tandem_tensor_destroy(test->ty);
    tandem_context_destroy(test->context);
    test->context = NULL;
}

int main(int count, char **words)
{
    const struct lifecycle_mode *const all[] = {end_modes, fork_modes,
                                                signal_modes, crowd_modes};

    if (count != 3)
        lifecycle_test_fail("usage: lifecycle-program MODE DEVICE");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (const struct lifecycle_mode *mode = all[i]; mode->name; mode++)
            if (strcmp(mode->name, words[1]) == 0)
                return mode->run(words[2]);
    lifecycle_test_fail("no mode \"%s\"", words[1]);
}
