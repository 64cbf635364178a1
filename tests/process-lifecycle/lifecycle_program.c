/* SPDX-License-Identifier: Apache-2.0 */
/* guest MODE DEVICE; see lifecycle_program.h. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle_program.h"

void guest_fail(const char *format, ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "guest: %s\n", line);
    _exit(3);
}

void guest_begin(struct guest *guest, const char *device)
{
    const int64_t n = GUEST_N;

    memset(guest, 0, sizeof *guest);
    for (int i = 0; i < GUEST_N; i++)
        guest->x[i] = (float)(i % 100 + 1);
    OK(tandem_context_create(NULL, &guest->context));
    OK(tandem_device_find(guest->context, device, &guest->device));
    OK(tandem_tensor_wrap(guest->context, guest->x, TANDEM_F32, 1, &n, NULL,
                          TANDEM_TENSOR_READ_ONLY, &guest->tx));
    OK(tandem_tensor_wrap(guest->context, guest->y, TANDEM_F32, 1, &n, NULL, 0,
                          &guest->ty));
}

static void run(struct guest *guest, uint32_t id, struct tandem_tensor *x,
                struct tandem_tensor *y)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    OK(tandem_run_on(guest->context, guest->device, &op, &x, 1, &y, 1));
}

void guest_start(struct guest *guest)
{
    run(guest, TANDEM_OP_NEG, guest->tx, guest->ty);
}

void guest_read(struct guest *guest)
{
    OK(tandem_tensor_sync(guest->ty, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < GUEST_N; i++)
        MUST(guest->y[i] == -guest->x[i]);
}

static void sum_check(struct guest *guest)
{
    const int64_t ints[2] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_SUM,
                                 .int_count = 2,
                                 .ints = ints};
    struct tandem_tensor *sum = NULL;
    float expected = 0, result = 0;

    for (int i = 0; i < GUEST_N; i++)
        expected += guest->x[i];
    OK(tandem_tensor_create(guest->context, TANDEM_F32, 0, NULL, &sum));
    OK(tandem_run_on(guest->context, guest->device, &op, &guest->tx, 1, &sum,
                     1));
    OK(tandem_tensor_read(sum, &result, sizeof result,
                          TANDEM_TIMEOUT_INFINITE));
    MUST(fabsf(result - expected) < 1);
    tandem_tensor_destroy(sum);
}

/* x as a 32 x 32 matrix, times twice the identity. */
static void product_check(struct guest *guest)
{
    const struct tandem_matmul_options options = {.struct_size = sizeof options,
                                                  .alpha = 1,
                                                  .device = guest->device};
    const int64_t shape[2] = {32, 32};
    float twice[32 * 32] = {0}, out[32 * 32];
    struct tandem_tensor *x = NULL, *b = NULL, *c = NULL;

    for (int i = 0; i < 32; i++)
        twice[i * 33] = 2;
    OK(tandem_tensor_view(guest->tx, 0, 2, shape, NULL, &x));
    OK(tandem_tensor_create(guest->context, TANDEM_F32, 2, shape, &b));
    OK(tandem_tensor_create(guest->context, TANDEM_F32, 2, shape, &c));
    OK(tandem_tensor_write(b, twice, sizeof twice));
    OK(tandem_matmul(guest->context, &options, x, b, c));
    OK(tandem_tensor_read(c, out, sizeof out, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 32 * 32; i++)
        MUST(out[i] == 2 * guest->x[i]);
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(b);
    tandem_tensor_destroy(c);
}

void guest_work_own(struct guest *guest)
{
    guest_start(guest);
    guest_read(guest);
    sum_check(guest);
}

void guest_work(struct guest *guest)
{
    guest_work_own(guest);
    product_check(guest);
}

void guest_end(struct guest *guest)
{
    tandem_tensor_destroy(guest->tx);
    tandem_tensor_destroy(guest->ty);
    tandem_context_destroy(guest->context);
    guest->context = NULL;
}

int main(int count, char **words)
{
    const struct guest_mode *const all[] = {end_modes, fork_modes, signal_modes,
                                            crowd_modes};

    if (count != 3)
        guest_fail("usage: guest MODE DEVICE");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (const struct guest_mode *mode = all[i]; mode->name; mode++)
            if (strcmp(mode->name, words[1]) == 0)
                return mode->run(words[2]);
    guest_fail("no mode \"%s\"", words[1]);
}
