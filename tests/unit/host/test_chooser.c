/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chooser with scripted costs: the cheaper device is selected on each side
 * of every crossover, each component of a prediction is the scripted one, and
 * data moves to another device when the time that it has cost to stay exceeds
 * the time of the move.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "support.h"

static struct script cpu, gpu; /* The costs of the devices. */
static struct tandem_context *context;
static uint32_t simulated;

/* ---- calls ---- */

#define ROOM 65536
static float pool[5][ROOM];
static int64_t indices[ROOM];

/*
 * An operator of a cost class, which accesses bytes_each n + bytes_more bytes.
 * Its operands are vectors of n elements (v) or of n indices (i), a scalar (s),
 * a row (r), matrices of 2 columns (c) or rows (t), or inputs (0, 2).
 */
static const struct class_case {
    uint32_t cost_class, op;
    int bytes_each, bytes_more;
    const char *operands;
    int64_t ints[2];
} classes[] = {
    {TANDEM_COST_ELEMENTWISE, TANDEM_OP_ADD, 12, 0, "vvv", {0}},
    {TANDEM_COST_TRANSCENDENTAL, TANDEM_OP_TANH, 8, 0, "vv", {0}},
    {TANDEM_COST_MULTI_TRANSCENDENTAL, TANDEM_OP_ERF, 8, 0, "vv", {0}},
    {TANDEM_COST_REDUCE, TANDEM_OP_SUM, 4, 4, "vs", {1, 0}},
    {TANDEM_COST_SOFTMAX, TANDEM_OP_SOFTMAX, 8, 0, "rr", {1}},
    {TANDEM_COST_STRIDED, TANDEM_OP_TRANSPOSE, 16, 0, "ct", {1, 0}},
    {TANDEM_COST_GATHER, TANDEM_OP_GATHER, 16, 0, "viv", {0}},
    {TANDEM_COST_OPTIMIZER, TANDEM_OP_SGD, 20, 0, "vvv02", {0}},
};
#define ADD (&classes[0])
#define TANH (&classes[1])
#define ERF (&classes[2])

struct op_case {
    struct tandem_op op;
    struct tandem_tensor *inputs[3], *outputs[2];
    uint32_t input_count, output_count;
    double bytes;
};

static struct tandem_tensor *operand_make(char kind, float *data, int64_t n)
{
    struct tandem_tensor *tensor;

    switch (kind) {
    case 'i':
        OK(tandem_tensor_wrap(context, indices, TANDEM_I64, 1, &n, NULL, 0,
                              &tensor));
        return tensor;
    case 's':
        OK(tandem_tensor_wrap(context, data, TANDEM_F32, 0, NULL, NULL, 0,
                              &tensor));
        return tensor;
    case 'r':
        return matrix_wrap(context, data, 1, n);
    case 'c':
        return matrix_wrap(context, data, n, 2);
    case 't':
        return matrix_wrap(context, data, 2, n);
    default:
        return vector_wrap(context, data, n);
    }
}

static struct op_case op_case(const struct class_case *of, int64_t n)
{
    static const double rates[] = {0.1, 0.9, 0, 0};
    const struct tandem_op_info *info = tandem_op_by_id(of->op);
    struct op_case out = {.op = {.struct_size = sizeof out.op,
                                 .id = of->op,
                                 .ints = of->ints,
                                 .floats = rates}};

    out.input_count = info->input_count;
    out.output_count = info->output_count;
    out.op.int_count = of->op == TANDEM_OP_TRANSPOSE ? 2 : info->int_count;
    out.op.float_count = info->float_count;
    out.bytes = (double)(of->bytes_each * n + of->bytes_more);
    for (uint32_t i = 0; of->operands[i] != '\0'; i++) {
        const char kind = of->operands[i];
        struct tandem_tensor *tensor = kind == '0' || kind == '2'
                                           ? out.inputs[kind - '0']
                                           : operand_make(kind, pool[i], n);

        if (i < out.input_count)
            out.inputs[i] = tensor;
        else
            out.outputs[i - out.input_count] = tensor;
    }
    return out;
}

static struct tandem_explanation explain(const struct op_case *call)
{
    struct tandem_explanation out = {.struct_size = sizeof out};

    OK(tandem_explain_op(context, &call->op, call->inputs, call->input_count,
                         call->outputs, call->output_count, &out));
    return out;
}

static void run_on(uint32_t device, const struct op_case *call)
{
    OK(tandem_run(context, &call->op, call->inputs, call->input_count,
                  call->outputs, call->output_count, TANDEM_RUN_ON(device)));
}

static void run(const struct op_case *call)
{
    run_on(TANDEM_ANY_DEVICE, call);
}

/* Creates a context with these costs. */
static void start(void)
{
    script_save("cpu", &cpu);
    script_save("simulated", &gpu);
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
}

static void costs_setup(void)
{
    cpu = script_free();
    gpu = script_free();
}

/* Fails the test if the values differ by more than rounding. */
static void near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) <= 1e-6 * (1 + fabs(expected)),
                  "%.9g is not %.9g", value, expected);
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

LOOP_TEST(test_every_class_flips_at_its_crossover, CASES_IN(classes))
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
        struct op_case call = op_case(of, n);
        struct tandem_explanation e = explain(&call);

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
    call = op_case(ADD, 1000);
    e = explain(&call);
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
    e = explain(&call);
    check_components(&e);
    near(candidate_of(&e, simulated)->transfer_ns, line_at(gpu.upload, 4000));
    near(candidate_of(&e, 0)->transfer_ns, 0);
    OK(tandem_tensor_prefetch(call.inputs[1], simulated));
    e = explain(&call);
    near(candidate_of(&e, simulated)->transfer_ns, 0);
}

TEST(test_waiting_and_downloading_are_predicted)
{
    struct op_case call, next, longer;
    struct tandem_explanation e;
    const struct tandem_candidate *c;

    start_with_distinct_costs();
    call = op_case(TANH, 1000);
    run_on(simulated, &call);
    next = call;
    next.inputs[0] = call.outputs[0];
    next.outputs[0] = call.inputs[0];
    e = explain(&next);
    check_components(&e);
    c = candidate_of(&e, 0);
    near(c->transfer_ns, line_at(gpu.download, 4000));
    near(c->wait_ns, gpu.sync + 200 + 0.25 * 8000);
    /* A second launch of 700 ns overlaps with the first run. */
    run_on(simulated, &call);
    e = explain(&next);
    near(candidate_of(&e, 0)->wait_ns,
         gpu.sync + 2 * (200 + 0.25 * 8000) - 700);
    near(candidate_of(&e, simulated)->transfer_ns, 0);
    near(candidate_of(&e, simulated)->wait_ns, 0);
    /* The device's work ends during longer work on the CPU. */
    longer = call;
    longer.inputs[0] = vector_wrap(context, pool[2], 8000);
    longer.outputs[0] = vector_wrap(context, pool[3], 8000);
    run_on(0, &longer);
    e = explain(&next);
    near(candidate_of(&e, 0)->wait_ns, gpu.sync);
    OK(tandem_context_synchronize(context, TANDEM_TIMEOUT_INFINITE));
    e = explain(&next);
    near(candidate_of(&e, 0)->wait_ns, 0);
}

/* A caller who reads each result is expected to read the next one. */
TEST(test_expected_reads_are_predicted)
{
    struct op_case call, other;
    struct tandem_explanation e;

    start_with_distinct_costs();
    call = op_case(TANH, 1000);
    for (int i = 0; i < 10; i++) {
        run_on(simulated, &call);
        OK(tensor_wait(call.outputs[0]));
    }
    e = explain(&call);
    check_components(&e);
    near(candidate_of(&e, simulated)->download_ns,
         gpu.sync + line_at(gpu.download, 4000));
    near(candidate_of(&e, 0)->download_ns, 0);
    /* Readers of the result and other outputs have no download time. */
    other = call;
    other.inputs[0] = call.outputs[0];
    other.outputs[0] = vector_new(context, 1000);
    e = explain(&other);
    check_components(&e);
    near(candidate_of(&e, simulated)->download_ns, 0);
    /* Enough results that are overwritten unread reset the download time. */
    for (int i = 0; i < 10; i++)
        run_on(simulated, &call);
    e = explain(&call);
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
    writer = op_case(ERF, 1000);
    reader = op_case(TANH, 1000);
    reader.inputs[0] = writer.outputs[0];
    reader.outputs[0] = vector_new(context, 1000);
    run_on(0, &writer);
    run_on(simulated, &reader);
    e = explain(&writer);
    near(candidate_of(&e, 0)->transfer_ns, line_at(gpu.upload, 4000));
    reader.outputs[0] = reader.inputs[0];
    e = explain(&reader);
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
    call = op_case(TANH, 100);
    before = counters_read(0);
    while (run(&call), last_device(context) == 0)
        ck_assert_int_lt(++on_cpu, 20);
    ck_assert_uint_eq(last_device(context), simulated);
    ck_assert_int_ge(on_cpu, 1);
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.blocking_compiles, 0);
    ck_assert_uint_ge(after.prepares, 1);
    ck_assert_uint_eq(after.launches, 1);
}

TEST(test_a_kernel_that_is_never_ready)
{
    struct tandem_explanation e;
    struct sim_counters before = counters_read(0), after;
    struct op_case call;
    struct tandem_tensor *a, *b, *c;

    setenv("TANDEM_TEST_PLUGIN", "ready=never", 1);
    start_with_free_gpu();
    call = op_case(TANH, 100);
    a = matrix_wrap(context, pool[0], 16, 16);
    b = matrix_wrap(context, pool[1], 16, 16);
    c = matrix_wrap(context, pool[2], 16, 16);
    for (int i = 0; i < 20; i++) {
        run(&call);
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
    /* A device that the caller names compiles it. */
    run_on(simulated, &call);
    ck_assert_uint_eq(last_device(context), simulated);
    ck_assert_uint_eq(counters_since(0, &before).blocking_compiles, 1);
}

TEST(test_prepare)
{
    struct sim_counters before = counters_read(0), after;
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1};
    struct tandem_tensor *a;
    struct op_case call;
    int questions = 0;

    setenv("TANDEM_TEST_PLUGIN", "ready=3", 1);
    start_with_free_gpu();
    call = op_case(TANH, 100);
    a = matrix_wrap(context, pool[0], 16, 16);
    options.device = simulated;
    ck_assert_int_eq(tandem_prepare_matmul(context, &options, a, a,
                                           matrix_new(context, 16, 16)),
                     TANDEM_NOT_READY);
    while (tandem_prepare_on(context, simulated, &call.op, call.inputs, 1,
                             call.outputs, 1) == TANDEM_NOT_READY)
        ck_assert_int_lt(++questions, 20);
    ck_assert_int_ge(questions, 1);
    OK(tandem_prepare_on(context, simulated, &call.op, call.inputs, 1,
                         call.outputs, 1));
    after = counters_since(0, &before);
    ck_assert_uint_eq(after.prepares, 2);
    ck_assert_uint_eq(after.blocking_compiles, 0);
    ck_assert_uint_eq(after.launches + after.gemms, 0);
    /* The CPU plugin has nothing to compile. */
    OK(tandem_prepare_on(context, 0, &call.op, call.inputs, 1, call.outputs,
                         1));
    options.device = 0;
    OK(tandem_prepare_matmul(context, &options, a, a,
                             matrix_new(context, 16, 16)));
    BAD(tandem_prepare_on(context, TANDEM_ANY_DEVICE, &call.op, call.inputs, 1,
                          call.outputs, 1));
    BAD(tandem_prepare_on(context, 99, &call.op, call.inputs, 1, call.outputs,
                          1));
    BAD(tandem_prepare_on(context, simulated, &call.op, call.inputs, 0,
                          call.outputs, 1));
    BAD(tandem_prepare_on(NULL, 0, &call.op, call.inputs, 1, call.outputs, 1));
    options.device = TANDEM_ANY_DEVICE;
    BAD(tandem_prepare_matmul(context, &options, a, a,
                              matrix_new(context, 16, 16)));
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
    call = op_case(TANH, 100);
    run(&call);
    first = last_device(context);
    for (int i = 0; i < 10; i++) {
        run(&call);
        ck_assert_uint_eq(last_device(context), first);
    }
}

TEST(test_unsupported_operators_run_elsewhere)
{
    struct tandem_explanation e = {.struct_size = sizeof e};
    struct op_case unsupported, supported;

    setenv("TANDEM_TEST_PLUGIN", "decline=tanh+gemm", 1);
    start_with_free_gpu();
    unsupported = op_case(TANH, 100);
    supported = op_case(ERF, 100);
    run(&unsupported);
    ck_assert_uint_eq(last_device(context), 0);
    run(&supported);
    ck_assert_uint_eq(last_device(context), simulated);
    e = explain(&unsupported);
    ck_assert_uint_eq(candidate_of(&e, simulated)->status, TANDEM_UNSUPPORTED);
    ck_assert_uint_eq(e.chosen, 0);
    FAILS(TANDEM_UNSUPPORTED,
          tandem_run(context, &unsupported.op, unsupported.inputs, 1,
                     unsupported.outputs, 1, TANDEM_RUN_ON(simulated)));
}

/* Without profiles, small operators run on the CPU. */
TEST(test_defaults_are_conservative)
{
    context = context_new(NULL);
    for (int i = 0; i < CASES_IN(classes); i++) {
        struct op_case call = op_case(&classes[i], 100);

        ck_assert_uint_eq(explain(&call).chosen, 0);
    }
}

/* ---- moves ---- */

/* Starts with costs by which a move takes some time. */
static void start_with_slow_moves(void)
{
    script_all(&cpu, 0, 1);
    script_all(&gpu, 100, 0.01);
    gpu.upload = (struct script_line){10000, 2};
    start();
}

TEST(test_residency_flips_the_choice)
{
    struct op_case call;

    start_with_slow_moves();
    call = op_case(TANH, 1000);
    ck_assert_uint_eq(explain(&call).chosen, 0);
    OK(tandem_tensor_prefetch(call.inputs[0], simulated));
    ck_assert_uint_eq(explain(&call).chosen, simulated);
    OK(tandem_tensor_host_written(call.inputs[0]));
    ck_assert_uint_eq(explain(&call).chosen, 0);
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
    const double x = 8.0 * (double)n;
    const struct sim_counters before = counters_read(0);
    struct op_case call;
    int expected;

    start_with_slow_moves();
    call = op_case(TANH, n);
    expected =
        uses_before_move(x, 100 + 0.01 * x, line_at(gpu.upload, x / 2), 1);
    for (int i = 0; i < expected + 5; i++) {
        run(&call);
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

    while (run(call), last_device(context) == 0)
        ck_assert_int_lt(++uses, 100);
    return uses;
}

/* Uses that the other device would slow down, because the result is read on the
 * host, do not postpone the move. */
TEST(test_slower_uses_take_no_credit)
{
    struct op_case call, slower;

    gpu.download = (struct script_line){1e6, 0};
    start_with_slow_moves();
    call = op_case(TANH, 1000);
    call.outputs[0] = vector_new(context, 1000);
    slower = call;
    slower.outputs[0] = vector_wrap(context, pool[2], 1000);
    for (int i = 0; i < 10; i++) {
        run(&slower);
        ck_assert_uint_eq(last_device(context), 0);
        OK(tensor_wait(slower.outputs[0]));
    }
    ck_assert_int_eq(uses_on_cpu(&call),
                     uses_before_move(8000, 180, line_at(gpu.upload, 4000), 1));
}

/* Only a move for which the chooser used credit can fail to pay off. */
TEST(test_forced_moves_do_not_change_the_credit)
{
    struct op_case call;

    start_with_slow_moves();
    call = op_case(TANH, 1000);
    for (int i = 0; i < 3; i++) {
        run_on(simulated, &call);
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
    struct op_case call;

    start_with_slow_moves();
    call = op_case(ADD, 1000);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(uses_on_cpu(&call),
                         uses_before_move(12000, 220,
                                          2 * line_at(gpu.upload, 4000),
                                          credits[i]));
        for (int j = 1; j < uses_after_move[i]; j++) {
            run(&call);
            ck_assert_uint_eq(last_device(context), simulated);
        }
        OK(tandem_tensor_host_written(call.inputs[0]));
        OK(tandem_tensor_host_written(call.inputs[1]));
    }
}

/* Data that the host writes before each use must never be moved. */
TEST(test_fresh_data_is_not_moved)
{
    struct op_case call;

    start_with_slow_moves();
    call = op_case(TANH, 1000);
    for (int i = 0; i < 50; i++) {
        OK(tandem_tensor_host_written(call.inputs[0]));
        run(&call);
        ck_assert_uint_eq(last_device(context), 0);
    }
}

LOOP_TEST(test_deterministic_contexts_do_not_move_data, 2)
{
    const struct tandem_context_options options = {.deterministic = _i == 0};
    struct op_case call;

    start_with_slow_moves();
    if (_i == 1)
        setenv("TANDEM_DETERMINISTIC", "1", 1);
    context = context_new(&options);
    call = op_case(TANH, 1000);
    for (int i = 0; i < 50; i++) {
        run(&call);
        ck_assert_uint_eq(last_device(context), 0);
    }
}

TEST_MAIN(host_tests_run("chooser", costs_setup, NULL))
