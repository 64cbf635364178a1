/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of the CPU plugin that are longer than its chunks of 8192
 * elements times its 256 partial results: at that limit, one element more, and
 * four times as long.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "unit/host/support.h"

#define ROOM ((int64_t)8192 * 256)
#define MOST (4 * ROOM + 77)

static const int64_t lengths[] = {ROOM - 1, ROOM, ROOM + 1, MOST};
static struct tandem_context *context;
static uint32_t cpu;
static float *numbers;

static void numbers_setup(void)
{
    context = context_new(NULL);
    cpu = device_named(context, "cpu");
    numbers = malloc((size_t)MOST * sizeof(float));
    ck_assert_ptr_nonnull(numbers);
    for (int64_t i = 0; i < MOST; i++)
        numbers[i] = (float)(i % 5 - 2);
}

static void numbers_teardown(void)
{
    tandem_context_destroy(context);
    free(numbers);
}

/* Returns the sum of -2, -1, 0, 1, 2, -2, ... raised to power 1 or 2. */
static double sum_of(int64_t length, int power)
{
    double sum = power == 2 ? (double)(length / 5 * 10) : 0;

    for (int64_t i = length / 5 * 5; i < length; i++)
        sum += pow((double)(i % 5 - 2), power);
    return sum;
}

static double wanted(uint32_t id, int64_t length)
{
    switch (id) {
    case TANDEM_OP_SUM:
        return sum_of(length, 1);
    case TANDEM_OP_MEAN:
        return sum_of(length, 1) / (double)length;
    case TANDEM_OP_PROD:
        return 0;
    case TANDEM_OP_REDUCE_MAX:
        return 2;
    case TANDEM_OP_REDUCE_MIN:
        return -2;
    case TANDEM_OP_L2:
        return sqrt(sum_of(length, 2));
    default:
        return sum_of(length, 2);
    }
}

static const uint32_t ids[] = {TANDEM_OP_SUM,        TANDEM_OP_MEAN,
                               TANDEM_OP_PROD,       TANDEM_OP_REDUCE_MAX,
                               TANDEM_OP_REDUCE_MIN, TANDEM_OP_SUM_SQUARE,
                               TANDEM_OP_L2};

static void near(double got, double want, const char *what, uint32_t id)
{
    ck_assert_msg(fabs(got - want) <= 1e-5 * fabs(want),
                  "%s %u is %.9g, not "
                  "%.9g",
                  what, id, got, want);
}

LOOP_TEST(test_long_reductions, CASES_IN(lengths))
{
    const int64_t length = lengths[_i];
    const int64_t all[] = {1, 0};
    float result = -7;
    struct tandem_tensor *x = vector_wrap(context, numbers, length), *y;

    OK(tandem_tensor_wrap(context, &result, TANDEM_F32, 0, NULL, NULL, 0, &y));
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct tandem_op op = {.struct_size = sizeof op,
                                     .id = ids[i],
                                     .int_count = 2,
                                     .ints = all};

        OK(tandem_run(context, &op, &x, 1, &y, 1, TANDEM_RUN_ON(cpu)));
        OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
        near((double)result, wanted(ids[i], length), "reduction", ids[i]);
    }
}

LOOP_TEST(test_long_dot, CASES_IN(lengths))
{
    const int64_t length = lengths[_i];
    const struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_DOT};
    float result = -7;
    struct tandem_tensor *x[2], *y;

    x[0] = x[1] = vector_wrap(context, numbers, length);
    OK(tandem_tensor_wrap(context, &result, TANDEM_F32, 0, NULL, NULL, 0, &y));
    OK(tandem_run(context, &op, x, 2, &y, 1, TANDEM_RUN_ON(cpu)));
    OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
    near((double)result, sum_of(length, 2), "dot", TANDEM_OP_DOT);
}

/* The last element is the only largest one. */
LOOP_TEST(test_long_search, CASES_IN(lengths))
{
    const int64_t length = lengths[_i];
    const int64_t axis[] = {1, 0};
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ARGMAX,
                                 .int_count = 2,
                                 .ints = axis};
    int64_t result = -7;
    struct tandem_tensor *x = vector_wrap(context, numbers, length), *y;

    numbers[length - 1] = 3;
    OK(tandem_tensor_wrap(context, &result, TANDEM_I64, 0, NULL, NULL, 0, &y));
    OK(tandem_run(context, &op, &x, 1, &y, 1, TANDEM_RUN_ON(cpu)));
    OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
    ck_assert_int_eq(result, length - 1);
}

TEST_MAIN(host_tests_run("reduce", numbers_setup, numbers_teardown))
