/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chooser with scripted costs: data moves to another device when the time
 * that it has cost to stay exceeds the time of the move.
 */
#include <config.h>

#include <stdlib.h>

#include "chooser_calls.h"

static struct script cpu, gpu; /* The costs of the devices. */
static struct tandem_context *context;
static uint32_t simulated;

/* Creates a context in which a move takes some time. */
static void context_setup(void)
{
    cpu = script_free();
    gpu = script_free();
    script_all(&cpu, 0, 1);
    script_all(&gpu, 100, 0.01);
    gpu.upload = (struct script_line){10000, 2};
    context = context_with_costs(&cpu, &gpu);
    simulated = device_named(context, "simulated");
}

TEST(test_residency_flips_the_choice)
{
    struct op_case call = op_case(context, &classes[1], 1000);
    struct tandem_explanation e = explain(context, &call);

    ck_assert_uint_eq(e.chosen, 0);
    OK(tandem_tensor_prefetch(call.inputs[0], simulated));
    e = explain(context, &call);
    ck_assert_uint_eq(e.chosen, simulated);
    OK(tandem_tensor_host_written(call.inputs[0]));
    e = explain(context, &call);
    ck_assert_uint_eq(e.chosen, 0);
}

/* Returns the number of uses before the tensor moves by the ski-rental rule:
 * each use on the CPU adds the part `credit` of the time that the other device
 * would have saved without the transfer. */
static int uses_before_move(double other, double here, double transfer,
                            double credit)
{
    double saved_ns = 0;
    int uses = 0;

    while (here + transfer - saved_ns >= other) {
        saved_ns += credit * (other - here);
        uses++;
    }
    return uses;
}

LOOP_TEST(test_weights_move_after_the_predicted_uses, 4)
{
    static const int64_t sizes[] = {1000, 2000, 4000, 16000};
    const int64_t n = sizes[_i];
    struct op_case call = op_case(context, &classes[1], n);
    const double x = 8.0 * (double)n;
    const int expected =
        uses_before_move(x, 100 + 0.01 * x, line_at(gpu.upload, x / 2), 1);
    const struct sim_counters before = counters_read(0);

    for (int i = 0; i < expected + 5; i++) {
        run(context, &call);
        ck_assert_msg(last_device(context) == (i < expected ? 0 : simulated),
                      "use %d of %lld elements on device %u, expected %d on "
                      "the CPU",
                      i, (long long)n, last_device(context), expected);
    }
    ck_assert_uint_eq(counters_since(0, &before).uploads, 1);
}

/* Returns the number of uses on the CPU before a call runs on the GPU. */
static int uses_on_cpu(const struct op_case *call)
{
    int uses = 0;

    while (run(context, call), last_device(context) == 0)
        ck_assert_int_lt(++uses, 100);
    return uses;
}

/* Uses that the other device would slow down, because the result is read on the
 * host, do not postpone the move. */
TEST(test_slower_uses_take_no_credit)
{
    struct op_case call, slower;

    gpu.download = (struct script_line){1e6, 0};
    context = context_with_costs(&cpu, &gpu);
    call = op_case(context, &classes[1], 1000);
    call.outputs[0] = vector_new(context, 1000);
    slower = call;
    slower.outputs[0] = vector_wrap(context, pool[2], 1000);
    for (int i = 0; i < 10; i++) {
        run(context, &slower);
        ck_assert_uint_eq(last_device(context), 0);
        OK(tandem_tensor_sync(slower.outputs[0], TANDEM_TIMEOUT_INFINITE));
    }
    ck_assert_int_eq(uses_on_cpu(&call),
                     uses_before_move(8000, 180, line_at(gpu.upload, 4000), 1));
}

/* Only a move for which the chooser used credit can fail to pay off. */
TEST(test_forced_moves_do_not_change_the_credit)
{
    struct op_case call = op_case(context, &classes[1], 1000);

    for (int i = 0; i < 3; i++) {
        OK(tandem_run_on(context, simulated, &call.op, call.inputs, 1,
                         call.outputs, 1));
        OK(tandem_tensor_host_written(call.inputs[0]));
    }
    ck_assert_int_eq(uses_on_cpu(&call),
                     uses_before_move(8000, 180, line_at(gpu.upload, 4000), 1));
}

/* If the host writes the inputs before their move has paid off, later credits
 * are halved, until a move pays off. */
TEST(test_moves_that_do_not_pay_off_halve_the_credit)
{
    static const double credits[] = {1, 0.5, 1};
    static const int uses_after_move[] = {1, 5, 1};
    struct op_case call = op_case(context, &classes[0], 1000);

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(uses_on_cpu(&call),
                         uses_before_move(12000, 220,
                                          2 * line_at(gpu.upload, 4000),
                                          credits[i]));
        for (int j = 1; j < uses_after_move[i]; j++) {
            run(context, &call);
            ck_assert_uint_eq(last_device(context), simulated);
        }
        OK(tandem_tensor_host_written(call.inputs[0]));
        OK(tandem_tensor_host_written(call.inputs[1]));
    }
}

/* Data that the host writes before each use must never be moved. */
TEST(test_fresh_data_is_not_moved)
{
    struct op_case call = op_case(context, &classes[1], 1000);

    for (int i = 0; i < 50; i++) {
        OK(tandem_tensor_host_written(call.inputs[0]));
        run(context, &call);
        ck_assert_uint_eq(last_device(context), 0);
    }
}

LOOP_TEST(test_deterministic_contexts_do_not_move_data, 2)
{
    const struct tandem_context_options options = {.deterministic = 1};
    struct op_case call;

    tandem_context_destroy(context);
    if (_i == 0) {
        context = context_new(&options);
    } else {
        setenv("TANDEM_DETERMINISTIC", "1", 1);
        context = context_new(NULL);
    }
    call = op_case(context, &classes[1], 1000);
    for (int i = 0; i < 50; i++) {
        run(context, &call);
        ck_assert_uint_eq(last_device(context), 0);
    }
}

TEST_MAIN(host_tests_run("migration", context_setup, NULL))
