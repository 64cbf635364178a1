/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of sizes that no device has, through the host library. test-failure
 * and the conformance suite test limits of a device's memory.
 */
#include <config.h>

#include <stdlib.h>

#include "unit/host/support.h"

#define N 16

static float ones[N], got[N];

static enum tandem_status negate(struct tandem_context *context,
                                 uint32_t device, struct tandem_tensor *in,
                                 struct tandem_tensor *out)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    return tandem_run(context, &op, &in, 1, &out, 1, TANDEM_RUN_ON(device));
}

/* Tensors whose shape is valid and whose size no device can allocate. */
TEST(test_tensors_larger_than_any_device)
{
    const char *const devices[] = {"cpu", "simulated"};
    const int64_t shape = INT64_C(1) << 60;
    struct tandem_context *context = context_new(NULL);
    struct tandem_tensor *small = vector_wrap(context, ones, N), *out;
    struct tandem_tensor *large, *other, *one;
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};

    count_up(ones, N);
    OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &large));
    OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &other));
    one = vector_wrap(context, ones, 1);
    for (int i = 0; i < 2; i++) {
        const uint32_t device = device_named(context, devices[i]);

        BAD(negate(context, device, large, other)); /* Never written. */
        FAILS(TANDEM_OUT_OF_MEMORY, tandem_run(context, &copy, &one, 1, &large,
                                               1, TANDEM_RUN_ON(device)));
    }
    FAILS(TANDEM_OUT_OF_MEMORY,
          tandem_run(context, &copy, &one, 1, &large, 1, NULL));
    BAD(tandem_tensor_write(large, ones, 4));
    BAD(tandem_tensor_read(large, got, sizeof got, 0));
    BAD(tandem_tensor_sync(large, TANDEM_TIMEOUT_INFINITE));
    /* These tensors must leave address space for others. */
    for (int i = 0; i < 8; i++) {
        OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &other));
        FAILS(TANDEM_OUT_OF_MEMORY,
              tandem_run(context, &copy, &one, 1, &other, 1, NULL));
    }
    out = vector_new(context, N);
    OK(tandem_binary(context, TANDEM_OP_ADD, small, small, out));
    OK(tandem_tensor_read(out, got, sizeof got, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(got[i], 2 * ones[i]);
}

TEST_MAIN(host_tests_run("caps", NULL, NULL))
