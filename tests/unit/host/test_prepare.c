/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem_prepare_on and tandem_prepare_matmul with a simulated device that is
 * ready never, at once, or after some questions.
 */
#include <config.h>

#include <stdlib.h>

#include "support.h"

static float pool[3][256];

struct fixture {
    struct tandem_context *context;
    uint32_t simulated;
    struct tandem_op op;
    struct tandem_tensor *x, *y, *a, *b, *c;
    struct tandem_matmul_options options;
};

static struct fixture fixture_make(const char *ready)
{
    struct fixture f = {
        .op = {.struct_size = sizeof f.op, .id = TANDEM_OP_TANH},
        .options = {.struct_size = sizeof f.options, .alpha = 1}};

    setenv("TANDEM_TEST_PLUGIN", ready, 1);
    f.context = context_new(NULL);
    f.simulated = device_named(f.context, "simulated");
    f.options.device = f.simulated;
    f.x = vector_wrap(f.context, pool[0], 100);
    f.y = vector_wrap(f.context, pool[1], 100);
    f.a = matrix_wrap(f.context, pool[0], 16, 16);
    f.b = matrix_wrap(f.context, pool[1], 16, 16);
    f.c = matrix_wrap(f.context, pool[2], 16, 16);
    return f;
}

static enum tandem_status prepare_op(struct fixture *f, uint32_t device,
                                     uint32_t input_count)
{
    return tandem_prepare_on(f->context, device, &f->op, &f->x, input_count,
                             &f->y, 1);
}

static enum tandem_status prepare_matmul(struct fixture *f, uint32_t device)
{
    f->options.device = device;
    return tandem_prepare_matmul(f->context, &f->options, f->a, f->b, f->c);
}

TEST(test_prepare_starts_to_compile)
{
    struct sim_counters before = counters_read(0), after;
    struct fixture f = fixture_make("ready=never");

    ck_assert_int_eq(prepare_op(&f, f.simulated, 1), TANDEM_NOT_READY);
    ck_assert_int_eq(prepare_matmul(&f, f.simulated), TANDEM_NOT_READY);
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.prepares, 2);
    ck_assert_uint_eq(after.blocking_compiles, 0);
    ck_assert_uint_eq(after.launches + after.gemms, 0);
}

TEST(test_prepare_succeeds_when_the_code_is_compiled)
{
    struct fixture f = fixture_make("ready=3");
    int questions = 0;

    while (prepare_op(&f, f.simulated, 1) == TANDEM_NOT_READY)
        ck_assert_int_lt(++questions, 20);
    ck_assert_int_ge(questions, 1);
    OK(prepare_op(&f, f.simulated, 1));
    /* The CPU plugin has nothing to compile. */
    OK(prepare_op(&f, device_named(f.context, "cpu"), 1));
    OK(prepare_matmul(&f, device_named(f.context, "cpu")));
}

TEST(test_prepare_checks_its_arguments)
{
    struct fixture f = fixture_make("ready=3");

    BAD(prepare_op(&f, TANDEM_ANY_DEVICE, 1));
    BAD(prepare_matmul(&f, TANDEM_ANY_DEVICE));
    BAD(prepare_op(&f, 99, 1));
    BAD(prepare_op(&f, f.simulated, 0));
    f.op.id = TANDEM_OP_CROSS_ENTROPY;
    BAD(prepare_op(&f, f.simulated, 1));
    BAD(tandem_prepare_on(NULL, 0, &f.op, &f.x, 1, &f.y, 1));
}

TEST_MAIN(host_tests_run("prepare", NULL, NULL))
