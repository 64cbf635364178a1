/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chooser with scripted costs: the cheaper device is selected on each side
 * of every crossover, and each component of a prediction is the scripted one.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "chooser_calls.h"

static struct script cpu, gpu; /* The costs of the devices. */
static struct tandem_context *context;
static uint32_t simulated;

static void costs_setup(void)
{
    cpu = script_free();
    gpu = script_free();
}

/* Creates a context with these costs. */
static void start(void)
{
    context = context_with_costs(&cpu, &gpu);
    simulated = device_named(context, "simulated");
}

/* Runs the call on a device. */
static void call_run_on(uint32_t device, const struct op_case *call)
{
    OK(tandem_run_on(context, device, &call->op, call->inputs,
                     call->input_count, call->outputs, call->output_count));
}

static void check_components(const struct tandem_explanation *e)
{
    double best = INFINITY;
    uint32_t device = TANDEM_ANY_DEVICE;

    for (uint32_t i = 0; i < e->candidate_count; i++) {
        const struct tandem_candidate *c = &e->candidates[i];

        near(c->predicted_ns, c->wait_ns + c->transfer_ns + c->launch_ns +
                                  c->execute_ns + c->download_ns);
        if (c->status == TANDEM_OK && c->predicted_ns < best) {
            best = c->predicted_ns;
            device = c->device;
        }
    }
    ck_assert_uint_eq(e->chosen, device);
}

/* ---- crossovers ---- */

#define GPU_FIXED 10000.0
#define GPU_SLOPE 0.1

/* One class has a crossover; all other costs would select the wrong device. */
static void start_with_crossover(uint32_t cost_class)
{
    if (cost_class % 2)
        script_all(&cpu, 1e9, 0);
    else
        script_all(&gpu, 1e9, 0);
    cpu.curves[cost_class] = (struct script_line){0, 1};
    gpu.curves[cost_class] = (struct script_line){GPU_FIXED, GPU_SLOPE};
    start();
}

LOOP_TEST(test_every_class_flips_at_its_crossover, CLASSES)
{
    const struct class_case *of = &classes[_i];
    const double crossover = GPU_FIXED / (1 - GPU_SLOPE);
    const int64_t middle =
        (int64_t)((crossover - of->bytes_more) / of->bytes_each);
    int flips = 0;
    uint32_t before = 0;

    start_with_crossover(of->cost_class);
    for (int i = -40; i <= 40; i++) {
        const int64_t n = llabs(i) <= 4
                              ? middle + i
                              : (int64_t)((double)middle * exp2(i / 20.0));
        struct op_case call = op_case(context, of, n);
        struct tandem_explanation e = explain(context, &call);

        near(e.bytes, call.bytes);
        ck_assert_uint_eq(e.cost_class, of->cost_class);
        ck_assert_uint_eq(e.op, of->op);
        ck_assert_msg(e.chosen == (call.bytes < crossover ? 0 : simulated),
                      "%s of %lld: device %u", tandem_op_by_id(of->op)->name,
                      (long long)n, e.chosen);
        near(candidate_of(&e, 0)->predicted_ns, call.bytes);
        near(candidate_of(&e, simulated)->predicted_ns,
             GPU_FIXED + GPU_SLOPE * call.bytes);
        flips += e.chosen != before;
        before = e.chosen;
        /* The operator runs on the device that the explanation predicts. */
        if (i % 8 == 0) {
            run(context, &call);
            ck_assert_uint_eq(last_device(context), e.chosen);
            OK(tandem_tensor_sync(call.outputs[0], TANDEM_TIMEOUT_INFINITE));
            for (uint32_t k = 0; k < call.input_count; k++)
                OK(tandem_tensor_host_written(call.inputs[k]));
        }
        for (uint32_t k = 0; k < 3; k++)
            tandem_tensor_destroy(call.inputs[k]);
    }
    ck_assert_int_eq(flips, 1);
}

static const int64_t products[][3] = {
    {16, 16, 16},    {16, 16, 256}, {256, 16, 16}, {256, 256, 16},
    {256, 256, 256}, {1, 256, 256}, {256, 1, 16}};

/* The script moves the crossover to either side of each GEMM. */
LOOP_TEST(test_gemm_crossovers, 2 * CASES_IN(products))
{
    const int64_t *s = products[_i / 2];
    const double work = (double)(s[0] * s[1] * s[2]);
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *a, *b, *c;

    cpu.gemm_base = 1;
    gpu.gemm_base = 0.1;
    gpu.gemm_fixed = work * (_i % 2 ? 0.88 : 0.92);
    start();
    a = matrix_wrap(context, pool[0], s[0], s[2]);
    b = matrix_wrap(context, pool[1], s[2], s[1]);
    c = matrix_wrap(context, pool[2], s[0], s[1]);
    OK(tandem_explain_matmul(context, NULL, a, b, c, &e));
    ck_assert_uint_eq(e.cost_class, TANDEM_COST_GEMM);
    ck_assert_uint_eq(e.op, TANDEM_OP_GEMM);
    ck_assert_double_eq_tol(candidate_of(&e, 0)->predicted_ns / work, 1, 1e-4);
    ck_assert_double_eq_tol(candidate_of(&e, simulated)->predicted_ns / work,
                            _i % 2 ? 0.98 : 1.02, 1e-4);
    ck_assert_uint_eq(e.chosen, _i % 2 ? simulated : 0);
    OK(tandem_matmul(context, NULL, a, b, c));
    ck_assert_uint_eq(last_device(context), e.chosen);
}

/* A batch of GEMMs needs one launch; the other costs occur for each GEMM. */
LOOP_TEST(test_batched_gemm, 4)
{
    static const int64_t batches[] = {1, 2, 7, 64};
    const int64_t batch = batches[_i], m = 16, n = 256, k = 16;
    const int64_t a_shape[] = {batch, m, k}, b_shape[] = {batch, k, n};
    const int64_t c_shape[] = {batch, m, n};
    const double work = (double)(m * n * k);
    float *zeros = calloc((size_t)(batch * k * n), sizeof(*zeros));
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *a, *b, *c;

    ck_assert_ptr_nonnull(zeros);
    cpu.gemm_base = 1;
    cpu.launch = 100;
    gpu.gemm_base = 0.25;
    gpu.gemm_fixed = 3 * work;
    gpu.launch = 2.5 * work;
    start();
    OK(tandem_tensor_create(context, TANDEM_F32, 3, a_shape, &a));
    OK(tandem_tensor_create(context, TANDEM_F32, 3, b_shape, &b));
    OK(tandem_tensor_create(context, TANDEM_F32, 3, c_shape, &c));
    OK(tandem_tensor_write(a, zeros, (uint64_t)(batch * m * k) * 4));
    OK(tandem_tensor_write(b, zeros, (uint64_t)(batch * k * n) * 4));
    OK(tandem_explain_matmul(context, NULL, a, b, c, &e));
    check_components(&e);
    near(candidate_of(&e, 0)->launch_ns, 100);
    ck_assert_double_eq_tol(candidate_of(&e, 0)->execute_ns,
                            (double)batch * (work - 100), 1e-4 * work);
    near(candidate_of(&e, simulated)->launch_ns, 2.5 * work);
    ck_assert_double_eq_tol(candidate_of(&e, simulated)->execute_ns / work,
                            0.75 * (double)batch, 1e-4 * (double)batch);
    /* Many GEMMs amortize the launch. */
    ck_assert_uint_eq(e.chosen, batch > 10 ? simulated : 0);
    tandem_context_destroy(context);
    free(zeros);
}

TEST(test_strided_operands_use_the_strided_curve)
{
    const int64_t shape[2] = {30, 20}, strides[2] = {1, 30};
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *x, *y;
    struct tandem_op op = {.struct_size = sizeof op, .id = TANDEM_OP_NEG};

    script_all(&gpu, 1e6, 0);
    cpu.curves[TANDEM_COST_STRIDED] = (struct script_line){2e6, 0};
    start();
    OK(tandem_tensor_wrap(context, pool[0], TANDEM_F32, 2, shape, strides, 0,
                          &x));
    y = matrix_wrap(context, pool[1], 30, 20);
    OK(tandem_explain_op(context, &op, &x, 1, &y, 1, &e));
    ck_assert_uint_eq(e.cost_class, TANDEM_COST_STRIDED);
    ck_assert_uint_eq(e.chosen, simulated);
}

/* ---- components of the prediction ---- */

/* Costs that make all components distinguishable. */
static void start_with_distinct_costs(void)
{
    script_all(&cpu, 50, 3);
    cpu.launch = 20;
    cpu.sync = 60;
    script_all(&gpu, 900, 0.25);
    gpu.launch = 700;
    gpu.sync = 5000;
    gpu.upload = (struct script_line){10000, 0.5};
    gpu.download = (struct script_line){20000, 0.75};
    start();
}

TEST(test_components_match_the_script)
{
    struct op_case call;
    struct tandem_explanation e;
    const struct tandem_candidate *c;

    start_with_distinct_costs();
    call = op_case(context, &classes[0], 1000);
    e = explain(context, &call);
    check_components(&e);
    near(e.elements, 1000);
    near(e.bytes, 12000);
    ck_assert_uint_eq(e.forced, 0);
    ck_assert_double_eq(e.measured_ns, 0);

    c = candidate_of(&e, 0);
    near(c->launch_ns, 20);
    near(c->execute_ns, 50 + 3 * 12000 - 20);
    near(c->transfer_ns, 0);
    near(c->wait_ns, 0);
    near(c->download_ns, 0);

    c = candidate_of(&e, simulated);
    near(c->launch_ns, 700);
    near(c->execute_ns, 900 + 0.25 * 12000 - 700);
    near(c->transfer_ns, 2 * line_at(gpu.upload, 4000));
    near(c->wait_ns, 0);
    /* Wrapped memory is expected to be read, unless earlier results were not.
     */
    near(c->download_ns, gpu.sync + line_at(gpu.download, 4000));

    /* One input is resident, then both. */
    OK(tandem_tensor_prefetch(call.inputs[0], simulated));
    e = explain(context, &call);
    check_components(&e);
    near(candidate_of(&e, simulated)->transfer_ns, line_at(gpu.upload, 4000));
    near(candidate_of(&e, 0)->transfer_ns, 0);
    OK(tandem_tensor_prefetch(call.inputs[1], simulated));
    e = explain(context, &call);
    near(candidate_of(&e, simulated)->transfer_ns, 0);
}

TEST(test_waiting_and_downloading_are_predicted)
{
    struct op_case call, next, longer;
    struct tandem_explanation e;
    const struct tandem_candidate *c;

    start_with_distinct_costs();
    call = op_case(context, &classes[1], 1000);
    call_run_on(simulated, &call);
    next = call;
    next.inputs[0] = call.outputs[0];
    next.outputs[0] = call.inputs[0];
    e = explain(context, &next);
    check_components(&e);
    c = candidate_of(&e, 0);
    near(c->transfer_ns, line_at(gpu.download, 4000));
    near(c->wait_ns, gpu.sync + 200 + 0.25 * 8000);
    /* A second launch of 700 ns overlaps with the first run. */
    call_run_on(simulated, &call);
    e = explain(context, &next);
    near(candidate_of(&e, 0)->wait_ns,
         gpu.sync + 2 * (200 + 0.25 * 8000) - 700);
    near(candidate_of(&e, simulated)->transfer_ns, 0);
    near(candidate_of(&e, simulated)->wait_ns, 0);
    /* The device's work ends during longer work on the CPU. */
    longer = call;
    longer.inputs[0] = vector_wrap(context, pool[2], 8000);
    longer.outputs[0] = vector_wrap(context, pool[3], 8000);
    call_run_on(0, &longer);
    e = explain(context, &next);
    near(candidate_of(&e, 0)->wait_ns, gpu.sync);
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    e = explain(context, &next);
    near(candidate_of(&e, 0)->wait_ns, 0);
}

/* A caller who reads each result is expected to read the next one. */
TEST(test_expected_reads_are_predicted)
{
    struct op_case call, other;
    struct tandem_explanation e;

    start_with_distinct_costs();
    call = op_case(context, &classes[1], 1000);
    for (int i = 0; i < 10; i++) {
        call_run_on(simulated, &call);
        OK(tandem_tensor_sync(call.outputs[0], TANDEM_TIMEOUT_INFINITE));
    }
    e = explain(context, &call);
    check_components(&e);
    near(candidate_of(&e, simulated)->download_ns,
         gpu.sync + line_at(gpu.download, 4000));
    near(candidate_of(&e, 0)->download_ns, 0);
    /* Readers of the result and other outputs have no download time. */
    other = call;
    other.inputs[0] = call.outputs[0];
    other.outputs[0] = vector_new(context, 1000);
    e = explain(context, &other);
    check_components(&e);
    near(candidate_of(&e, simulated)->download_ns, 0);
    /* Enough results that are overwritten unread reset the download time. */
    for (int i = 0; i < 10; i++)
        call_run_on(simulated, &call);
    e = explain(context, &call);
    check_components(&e);
    near(candidate_of(&e, simulated)->download_ns, 0);
}

/* An output is expected to move to the device that read it last time, unless
 * the same operator reads it, as in an accumulation. */
TEST(test_moves_to_the_next_reader_are_predicted)
{
    struct op_case writer, reader;
    struct tandem_explanation e;

    start_with_distinct_costs();
    writer = op_case(context, &classes[2], 1000);
    reader = op_case(context, &classes[1], 1000);
    reader.inputs[0] = writer.outputs[0];
    reader.outputs[0] = vector_new(context, 1000);
    call_run_on(0, &writer);
    call_run_on(simulated, &reader);
    e = explain(context, &writer);
    near(candidate_of(&e, 0)->transfer_ns, line_at(gpu.upload, 4000));
    reader.outputs[0] = reader.inputs[0];
    e = explain(context, &reader);
    near(candidate_of(&e, 0)->transfer_ns, 0);
}

/* ---- readiness, support ---- */

/* The GPU costs nothing. */
static void start_with_free_gpu(void)
{
    script_all(&cpu, 1e6, 0);
    cpu.gemm_base = 10;
    gpu.gemm_base = 1e-3;
    start();
}

TEST(test_the_cpu_works_while_a_kernel_compiles)
{
    struct sim_counters before, after;
    struct op_case call;
    int on_cpu = 0;

    setenv("TANDEM_TEST_PLUGIN", "ready=3", 1);
    start_with_free_gpu();
    call = op_case(context, &classes[1], 100);
    before = counters_read(0);
    while (run(context, &call), last_device(context) == 0)
        ck_assert_int_lt(++on_cpu, 20);
    ck_assert_uint_eq(last_device(context), simulated);
    ck_assert_int_ge(on_cpu, 1);
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.blocking_compiles, 0);
    ck_assert_uint_ge(after.prepares, 1);
    ck_assert_uint_eq(after.launches, 1);
    for (int i = 0; i < 5; i++) {
        run(context, &call);
        ck_assert_uint_eq(last_device(context), simulated);
    }
}

TEST(test_a_kernel_that_is_never_ready)
{
    struct tandem_explanation e;
    struct sim_counters before = counters_read(0), after;
    struct op_case call;
    struct tandem_tensor *a, *b, *c;

    setenv("TANDEM_TEST_PLUGIN", "ready=never", 1);
    start_with_free_gpu();
    call = op_case(context, &classes[1], 100);
    a = matrix_wrap(context, pool[0], 16, 16);
    b = matrix_wrap(context, pool[1], 16, 16);
    c = matrix_wrap(context, pool[2], 16, 16);
    for (int i = 0; i < 20; i++) {
        run(context, &call);
        ck_assert_uint_eq(last_device(context), 0);
        OK(tandem_matmul(context, NULL, a, b, c));
        ck_assert_uint_eq(last_device(context), 0);
    }
    e = last_explanation(context);
    ck_assert_uint_eq(candidate_of(&e, simulated)->ready, 0);
    ck_assert_uint_eq(candidate_of(&e, 0)->ready, 1);
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.blocking_compiles, 0);
    ck_assert_uint_eq(after.launches + after.gemms, 0);
    ck_assert_uint_ge(after.prepares, 2);
}

TEST(test_a_forced_device_compiles)
{
    struct sim_counters before = counters_read(0);
    struct op_case call;

    setenv("TANDEM_TEST_PLUGIN", "ready=never", 1);
    start_with_free_gpu();
    call = op_case(context, &classes[1], 100);
    call_run_on(simulated, &call);
    ck_assert_uint_eq(last_device(context), simulated);
    ck_assert_uint_eq(counters_since(0, &before).blocking_compiles, 1);
}

/* In deterministic mode the placement must not depend on compile times. */
TEST(test_deterministic_placement_ignores_readiness)
{
    const struct tandem_context_options options = {.deterministic = 1};
    struct op_case call;
    uint32_t first;

    setenv("TANDEM_TEST_PLUGIN", "ready=3", 1);
    start_with_free_gpu();
    tandem_context_destroy(context);
    context = context_new(&options);
    call = op_case(context, &classes[1], 100);
    run(context, &call);
    first = last_device(context);
    for (int i = 0; i < 10; i++) {
        run(context, &call);
        ck_assert_uint_eq(last_device(context), first);
    }
}

TEST(test_unsupported_operators_run_elsewhere)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct op_case unsupported, supported;

    setenv("TANDEM_TEST_PLUGIN", "decline=tanh+gemm", 1);
    start_with_free_gpu();
    unsupported = op_case(context, &classes[1], 100);
    supported = op_case(context, &classes[2], 100);
    run(context, &unsupported);
    ck_assert_uint_eq(last_device(context), 0);
    run(context, &supported);
    ck_assert_uint_eq(last_device(context), simulated);
    e = explain(context, &unsupported);
    ck_assert_uint_eq(candidate_of(&e, simulated)->status, TANDEM_UNSUPPORTED);
    ck_assert_uint_eq(e.chosen, 0);
    FAILS(TANDEM_UNSUPPORTED,
          tandem_run_on(context, simulated, &unsupported.op, unsupported.inputs,
                        1, unsupported.outputs, 1));
}

LOOP_TEST(test_the_cheapest_of_several_gpus, 3)
{
    struct op_case call;
    struct tandem_explanation e;

    setenv("TANDEM_TEST_PLUGIN", "devices=3", 1);
    script_all(&cpu, 1e6, 0);
    script_save("cpu", &cpu);
    for (int i = 0; i < 3; i++) {
        char name[] = "simulated:0";

        name[sizeof(name) - 2] = (char)('0' + i);
        script_all(&gpu, i == _i ? 100 : 200, 0);
        script_save(name, &gpu);
    }
    context = context_new(NULL);
    call = op_case(context, &classes[1], 100);
    e = explain(context, &call);
    ck_assert_uint_eq(e.candidate_count, 4);
    ck_assert_uint_eq(e.chosen,
                      device_named(context, "simulated") + (uint32_t)_i);
    run(context, &call);
    ck_assert_uint_eq(last_device(context), e.chosen);
}

/* Without profiles, small operators run on the CPU and large GEMMs do not. */
TEST(test_defaults_are_conservative)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct tandem_tensor *a, *b, *c;

    context = context_new(NULL);
    for (int i = 0; i < CLASSES; i++) {
        struct op_case call = op_case(context, &classes[i], 100);

        ck_assert_uint_eq(explain(context, &call).chosen, 0);
    }
    a = matrix_new(context, 8192, 8192);
    b = matrix_new(context, 8192, 8192);
    c = matrix_new(context, 8192, 8192);
    /* Reading unwritten inputs is an error; nothing is allocated for the
     * outputs. */
    BAD(tandem_explain_matmul(context, NULL, a, b, c, &e));
}

TEST_MAIN(host_tests_run("chooser", costs_setup, NULL))
