/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for more memory than available through the host library: a limit on
 * a device's memory, and sizes that no device has. The conformance suite tests
 * the plugins' own errors.
 */
#include <config.h>

#include <stdlib.h>

#include "unit/host/support.h"

#define N 65536 /* 256 KiB. */
#define CAP_TEXT "1100000"
#define CAP 1100000u

static float fill_ramp[N], got[N];

static struct tandem_memory_stats stats_of(struct tandem_context *context,
                                           const char *name)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};
    const struct tandem_backend *table = NULL;
    struct tandem_device *handle = NULL;

    OK(tandem_device_backend(context, device_named(context, name), &table,
                             &handle));
    OK(table->memory_stats(handle, &stats));
    return stats;
}

static enum tandem_status negate(struct tandem_context *context,
                                 uint32_t device, struct tandem_tensor *in,
                                 struct tandem_tensor *out)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    return tandem_run_on(context, device, &op, &in, 1, &out, 1);
}

static void content_matches(struct tandem_tensor *tensor, float factor)
{
    OK(tandem_tensor_read(tensor, got, sizeof got, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(got[i], factor * fill_ramp[i]);
}

/* Creates tensors until the memory is full. Only the last one may fail. */
static uint32_t fill(struct tandem_context *context, uint32_t device,
                     struct tandem_tensor **tensors, uint32_t most)
{
    uint32_t count = 0;

    tensors[0] = vector_wrap(context, fill_ramp, N);
    for (;;) {
        ck_assert_uint_lt(++count, most);
        tensors[count] = vector_new(context, N);
        const enum tandem_status status =
            negate(context, device, tensors[count - 1], tensors[count]);
        if (status == TANDEM_OK)
            continue;
        ck_assert_int_eq(status, TANDEM_OUT_OF_MEMORY);
        expect_last_error("simulated");
        return count;
    }
}

TEST(test_memory_limit)
{
    struct tandem_context *context = context_with(
        (const char *const[]){"memory_limit_bytes", CAP_TEXT, NULL});
    const uint32_t simulated = device_named(context, "simulated");
    struct tandem_tensor *tensors[16];
    uint32_t count, mask;

    count_up(fill_ramp, N);
    count = fill(context, simulated, tensors, 16);
    ck_assert_uint_eq(count, CAP / sizeof fill_ramp);
    ck_assert_uint_le(stats_of(context, "simulated").peak_bytes, CAP);
    /* Operators on another device still work, and no data was lost. */
    OK(tandem_unary(context, TANDEM_OP_NEG, tensors[count - 1],
                    tensors[count]));
    OK(tandem_tensor_residency(tensors[count], &mask));
    ck_assert_uint_eq(mask >> simulated & 1, 0);
    for (uint32_t i = 0; i <= count; i++)
        content_matches(tensors[i], i % 2 == 0 ? 1 : -1);
    /* Memory that was freed is used again. */
    tandem_tensor_destroy(tensors[1]);
    OK(negate(context, simulated, tensors[2], tensors[count]));
    content_matches(tensors[count], -1);
    ck_assert_uint_le(stats_of(context, "simulated").peak_bytes, CAP);
}

/* Freed blocks of one size are released for blocks of another size. */
TEST(test_memory_limit_trims)
{
    struct tandem_context *context = context_with(
        (const char *const[]){"memory_limit_bytes", CAP_TEXT, NULL});
    const uint32_t cpu = device_named(context, "cpu");
    const struct tandem_backend *table = NULL;
    struct tandem_device *handle = NULL;
    struct tandem_buffer *buffers[4];

    OK(tandem_device_backend(context, cpu, &table, &handle));
    for (int round = 0; round < 50; round++) {
        const uint64_t bytes = 200000 + 1000 * (uint64_t)round;

        for (int i = 0; i < 4; i++)
            OK(table->alloc(handle, TANDEM_BYTES(bytes), &buffers[i]));
        for (int i = 0; i < 4; i++)
            table->free(buffers[i]);
    }
    ck_assert_uint_le(stats_of(context, "cpu").peak_bytes, CAP);
}

/* Tensors whose shape is valid and whose size no device can allocate. */
TEST(test_tensors_larger_than_any_device)
{
    const char *const devices[] = {"cpu", "simulated"};
    const int64_t shape = INT64_C(1) << 60;
    struct tandem_context *context = context_new(NULL);
    struct tandem_tensor *small = vector_wrap(context, fill_ramp, N), *out;
    struct tandem_tensor *large, *other, *one;
    const struct tandem_op copy = {.struct_size = sizeof copy,
                                   .id = TANDEM_OP_COPY};

    count_up(fill_ramp, N);
    OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &large));
    OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &other));
    one = vector_wrap(context, fill_ramp, 1);
    for (int i = 0; i < 2; i++) {
        const uint32_t device = device_named(context, devices[i]);

        BAD(negate(context, device, large, other)); /* Never written. */
        FAILS(TANDEM_OUT_OF_MEMORY,
              tandem_run_on(context, device, &copy, &one, 1, &large, 1));
    }
    FAILS(TANDEM_OUT_OF_MEMORY, tandem_run(context, &copy, &one, 1, &large, 1));
    BAD(tandem_tensor_write(large, fill_ramp, 4));
    BAD(tandem_tensor_read(large, got, sizeof got, 0));
    BAD(tandem_tensor_sync(large, TANDEM_TIMEOUT_INFINITE));
    /* These tensors must leave address space for others. */
    for (int i = 0; i < 8; i++) {
        OK(tandem_tensor_create(context, TANDEM_F32, 1, &shape, &other));
        FAILS(TANDEM_OUT_OF_MEMORY,
              tandem_run(context, &copy, &one, 1, &other, 1));
    }
    out = vector_new(context, N);
    OK(tandem_binary(context, TANDEM_OP_ADD, small, small, out));
    content_matches(out, 2);
}

TEST_MAIN(host_tests_run("caps", NULL, NULL))
