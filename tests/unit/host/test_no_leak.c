/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No growth: after many operators, the process, the plugin's pool and the
 * number of handles are as large as after a few. TANDEM_TEST_LONG=1 runs a
 * million operators on each device, otherwise fewer.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define N 256

static struct tandem_memory_stats stats_of(struct tandem_context *context,
                                           uint32_t device)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof stats};
    const struct tandem_backend *table = NULL;
    struct tandem_device *handle = NULL;

    OK(tandem_device_backend(context, device, &table, &handle));
    OK(table->memory_stats(handle, &stats));
    return stats;
}

static float x[N], y[N], square[16 * 16];

/* Runs eight operators over wrapped, owned and temporary tensors. */
static void round_run(struct tandem_context *context, uint32_t device,
                      struct tandem_tensor *tx, struct tandem_tensor *ty)
{
    static const int64_t axes[2] = {1, 0};
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = device};
    const struct tandem_op add = {.struct_size = sizeof add,
                                  .id = TANDEM_OP_ADD};
    const struct tandem_op sum = {.struct_size = sizeof sum,
                                  .id = TANDEM_OP_SUM,
                                  .int_count = 2,
                                  .ints = axes};
    struct tandem_tensor *own = vector_new(context, N);
    struct tandem_tensor *scalar = NULL;
    struct tandem_tensor *a = matrix_wrap(context, square, 16, 16);
    struct tandem_tensor *c = matrix_new(context, 16, 16);

    unary_on(context, device, TANDEM_OP_NEG, tx, own);
    unary_on(context, device, TANDEM_OP_EXP, own, own);
    unary_on(context, device, TANDEM_OP_RELU, own, ty);
    OK(tandem_run(context, &add, (struct tandem_tensor *[]){own, ty}, 2, &ty, 1,
                  TANDEM_RUN_ON(device)));
    OK(tandem_tensor_create(context, TANDEM_F32, 0, NULL, &scalar));
    OK(tandem_run(context, &sum, &ty, 1, &scalar, 1, TANDEM_RUN_ON(device)));
    OK(tandem_matmul(context, &options, a, a, c));
    unary_on(context, device, TANDEM_OP_ABS, c, c);
    unary_on(context, device, TANDEM_OP_ABS, ty, ty);
    OK(tensor_wait(ty));
    tandem_tensor_destroy(own);
    tandem_tensor_destroy(scalar);
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(c);
}

#define ROUND_OPERATORS 8u

/* Checks that the second half of the rounds needs no more memory. */
static void no_growth(const char *name, uint64_t operators)
{
    struct tandem_context *context = context_new(NULL);
    const uint32_t device = device_named(context, name);
    const uint64_t rounds = operators / ROUND_OPERATORS;
    struct tandem_tensor *tx = vector_wrap(context, x, N);
    struct tandem_tensor *ty = vector_wrap(context, y, N);
    struct tandem_memory_stats early, late;
    uint64_t resident = 0, grown;

    count_up(x, N);
    memset(&early, 0, sizeof early);
    for (uint64_t i = 0; i < rounds; i++) {
        round_run(context, device, tx, ty);
        if (i == rounds / 4) {
            early = stats_of(context, device);
            resident = resident_bytes();
        }
    }
    late = stats_of(context, device);
    grown = resident_bytes();
    ck_assert_msg(grown <= resident + (1u << 20),
                  "%s: %llu resident bytes became %llu", name,
                  (unsigned long long)resident, (unsigned long long)grown);
    ck_assert_uint_eq(late.allocated_bytes, early.allocated_bytes);
    ck_assert_uint_eq(late.buffer_count, early.buffer_count);
    ck_assert_uint_le(late.cached_bytes, early.cached_bytes);
    ck_assert_uint_eq(late.peak_bytes, early.peak_bytes);
    ck_assert_uint_eq(late.cached_kernel_count, early.cached_kernel_count);
    tandem_context_destroy(context);
}

static uint64_t operators_of(uint64_t usually)
{
    const char *text = getenv("TANDEM_TEST_LONG");

    return text && strcmp(text, "1") == 0 ? 1000000 : usually;
}

TEST(test_cpu)
{
    no_growth("cpu", 1000000);
}

TEST(test_sim)
{
    const struct sim_counters start = counters_read(0);
    struct sim_counters end;

    no_growth("simulated", operators_of(100000));
    end = counters_since(0, &start);
    ck_assert_uint_eq(end.allocs, end.frees);
    ck_assert_uint_eq(end.streams, end.streams_destroyed);
    ck_assert_uint_eq(end.events, end.events_destroyed);
    ck_assert_uint_eq(end.opens, end.closes);
    ck_assert_uint_eq(end.launches + end.gemms, end.executed);
}

int main(void)
{
    TCase *tests = case_new("growth");

    tcase_set_timeout(tests, 1200);
    tests_add(tests);
    return runner_run_case("growth", tests);
}
