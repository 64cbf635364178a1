/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin over a layer that counts objects: every object is
 * released, nothing grows while the plugin works, and the plugin neither reads
 * back data nor waits before the caller asks for it. All tests run in one
 * process, because OpenCL does not survive a fork.
 *
 * TANDEM_TEST_LONG=1 runs a million operators; TANDEM_TEST_OPERATORS sets
 * another number.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_list.h"
#include "unit/host/support.h"
#include "plugin_under_layer.h"

#define N 256
static float x[N], square[16 * 16];
static struct plug plug;

static void layer_setup(void)
{
    plug_layer(&plug);
}

static struct tandem_context *opencl_new(uint32_t *out_device)
{
    struct tandem_context *context = context_new(NULL);

    if (tandem_device_find(context, "opencl", out_device) != TANDEM_OK) {
        fprintf(stderr, "skipped: %s\n", tandem_last_error());
        scratch_remove();
        exit(77);
    }
    return context;
}

/* Tensors that remain on their devices during all rounds. */
struct round_tensors {
    struct tandem_context *context;
    uint32_t device;
    struct tandem_tensor *x, *y, *a, *c, *sum;
};

static struct round_tensors round_tensors_new(struct tandem_context *context,
                                              uint32_t device)
{
    struct round_tensors tensors = {.context = context, .device = device};

    count_up(x, N);
    for (int i = 0; i < 256; i++)
        square[i] = i % 17 == 0;
    tensors.x = vector_new(context, N);
    tensors.y = vector_new(context, N);
    tensors.a = matrix_new(context, 16, 16);
    tensors.c = matrix_new(context, 16, 16);
    OK(tandem_tensor_create(context, TANDEM_F32, 0, NULL, &tensors.sum));
    OK(tandem_tensor_write(tensors.x, x, sizeof x));
    OK(tandem_tensor_write(tensors.a, square, sizeof square));
    return tensors;
}

static void operator_run(const struct round_tensors *tensors, uint32_t id,
                         struct tandem_tensor *in, struct tandem_tensor *out)
{
    static const int64_t axes[2] = {1, 0};
    struct tandem_op op = {.struct_size = sizeof op, .id = id};

    if (id == TANDEM_OP_SUM || id == TANDEM_OP_SOFTMAX) {
        op.int_count = tandem_op_by_id(id)->int_count;
        op.ints = id == TANDEM_OP_SUM ? axes : axes + 1;
    }
    OK(tandem_run(tensors->context, &op, &in, 1, &out, 1,
                  TANDEM_RUN_ON(tensors->device)));
}

#define ROUND_OPERATORS 8u

static void round_run(const struct round_tensors *tensors)
{
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = tensors->device};
    struct tandem_tensor *temporary = vector_new(tensors->context, N);

    operator_run(tensors, TANDEM_OP_NEG, tensors->x, tensors->y);
    operator_run(tensors, TANDEM_OP_EXP, tensors->y, temporary);
    operator_run(tensors, TANDEM_OP_RELU, temporary, tensors->y);
    operator_run(tensors, TANDEM_OP_SOFTMAX, tensors->y, temporary);
    operator_run(tensors, TANDEM_OP_ABS, temporary, tensors->y);
    operator_run(tensors, TANDEM_OP_SUM, tensors->y, tensors->sum);
    OK(tandem_matmul(tensors->context, &options, tensors->a, tensors->a,
                     tensors->c));
    operator_run(tensors, TANDEM_OP_NEG, tensors->c, tensors->c);
    tandem_tensor_destroy(temporary);
}

/* Checks the results, which are the same after any number of rounds. */
static void expect_results(const struct round_tensors *tensors)
{
    float sum = 0, c[256];

    OK(tandem_tensor_read(tensors->sum, &sum, sizeof sum,
                          TANDEM_TIMEOUT_INFINITE));
    ck_assert_float_eq_tol(sum, 1, 1e-4f);
    OK(tandem_tensor_read(tensors->c, c, sizeof c, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < 256; i++)
        ck_assert_float_eq(c[i], -square[i]);
}

TEST(test_nothing_waits_before_a_read)
{
    struct tandem_context *context;
    struct layer_counts before, after;
    struct round_tensors tensors;
    uint32_t device;

    context = opencl_new(&device);
    tensors = round_tensors_new(context, device);
    for (int i = 0; i < 2; i++)
        round_run(&tensors); /* The first round compiles. */
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    before = plug_counts(&plug);
    for (int i = 0; i < 20; i++)
        round_run(&tensors);
    after = plug_counts(&plug);
    ck_assert_uint_ge(after.kernels - before.kernels, 20 * ROUND_OPERATORS);
    ck_assert_uint_eq(after.waits, before.waits);
    ck_assert_uint_eq(after.reads, before.reads);
    ck_assert_uint_eq(after.writes, before.writes);
    ck_assert_uint_eq(after.maps, before.maps);
    ck_assert_uint_eq(after.builds, before.builds);
    /*
     * CLBlast creates a kernel for each GEMM, and a device that shares the
     * host's memory creates a buffer for each new tensor. No other objects may
     * be created.
     */
    ck_assert_uint_le(after.created[LAYER_KERNEL],
                      before.created[LAYER_KERNEL] + 20);
    ck_assert_uint_le(after.created[LAYER_MEMORY],
                      before.created[LAYER_MEMORY] + 20);
    expect_results(&tensors);
}

/*
 * Drivers that compile allocate and free memory all the time, so the test
 * compares the peak of the second quarter with that of the second half.
 */
static void peak_note(uint64_t peaks[2], uint64_t round, uint64_t rounds)
{
    uint64_t *peak = &peaks[round >= rounds / 2];
    uint64_t resident;

    if (round < rounds / 4 || round % 4 != 0)
        return;
    resident = resident_bytes();
    if (resident > *peak)
        *peak = resident;
}

static uint64_t operators_wanted(void)
{
    const char *number = getenv("TANDEM_TEST_OPERATORS");
    const char *text = getenv("TANDEM_TEST_LONG");

    if (number != NULL)
        return strtoull(number, NULL, 10);
    return text != NULL && strcmp(text, "1") == 0 ? 1000000 : 100000;
}

TEST(test_no_growth)
{
    const uint64_t rounds = operators_wanted() / ROUND_OPERATORS;
    struct tandem_memory_stats early = {.struct_size = sizeof early}, late;
    const struct tandem_backend *table = NULL;
    struct tandem_device *handle = NULL;
    struct layer_counts middle = plug_counts(&plug);
    struct layer_counts end;
    struct tandem_context *context;
    uint64_t peaks[2] = {0, 0};
    struct round_tensors tensors;
    uint32_t device;

    context = opencl_new(&device);
    tensors = round_tensors_new(context, device);
    late = early;
    OK(tandem_device_backend(context, device, &table, &handle));
    for (uint64_t i = 0; i < rounds; i++) {
        round_run(&tensors);
        if (i % 64 == 63)
            expect_results(&tensors);
        peak_note(peaks, i, rounds);
        if (i == rounds / 4) {
            OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
            middle = plug_counts(&plug);
            OK(table->memory_stats(handle, &early));
        }
    }
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    end = plug_counts(&plug);
    for (int i = 0; i < LAYER_OBJECTS; i++)
        ck_assert_msg(plug_alive(&end, i) <= plug_alive(&middle, i),
                      "%s: %llu alive became %llu", plug_objects[i],
                      (unsigned long long)plug_alive(&middle, i),
                      (unsigned long long)plug_alive(&end, i));
    OK(table->memory_stats(handle, &late));
    ck_assert_uint_eq(late.allocated_bytes, early.allocated_bytes);
    ck_assert_uint_eq(late.buffer_count, early.buffer_count);
    ck_assert_uint_eq(late.peak_bytes, early.peak_bytes);
    ck_assert_uint_eq(late.cached_kernel_count, early.cached_kernel_count);
    ck_assert_uint_eq(late.driver_alloc_count, early.driver_alloc_count);
    ck_assert_msg(peaks[1] <= peaks[0] + (4u << 20),
                  "%llu resident bytes became %llu",
                  (unsigned long long)peaks[0], (unsigned long long)peaks[1]);
    expect_results(&tensors);
}

int main(void)
{
    Suite *suite = suite_create("layer");
    TCase *tests = opencl_case_new("layer");

    tcase_add_unchecked_fixture(tests, layer_setup, NULL);
    tests_add(tests);
    suite_add_tcase(suite, tests);
    return runner_run(suite, CK_NOFORK);
}
