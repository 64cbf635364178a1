/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party plugin (tests/simulated-device) that supports four operators.
 * With default costs it is not selected over a calibrated device. It runs if it
 * is forced, or if only it supports an operator. The default costs of a GPU
 * compete with those of calibrated devices that are no GPUs.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define N 512
#define SIDE 256
#define LARGE_SIDE 2048
#define ROUNDS                                                                 \
    300 /* Enough rounds to use the call cache and to accumulate savings for a \
           move. */
/* Costs of a calibrated device, below and above all default costs. */
#define LOW_COST 1.0
#define AGES 1e9

static float data[SIDE * SIDE], more[N];

static void plugin_copy(void)
{
    file_copy(scratch_path("plugins/tandem-example.so"),
              build_path("tandem-scripted.so"));
}

static void variables_setup(void)
{
    setenv("TANDEM_BACKENDS", "cpu,example", 1);
    count_up(data, SIDE * SIDE);
    count_up(more, N);
}

/* Saves a profile in which everything costs ns. */
static void calibrated_save(const char *device, double ns)
{
    struct script script = script_free();

    script_all(&script, ns, 0);
    script.gemm_base = 1e-9;
    script.gemm_fixed = ns;
    script_save(device, &script);
}

/* Saves a profile that contains only one curve, or only GEMM costs ("gemm"). */
static void calibrated_curve_save(const char *device, const char *curve,
                                  double ns)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, device);

    if (strcmp(curve, "gemm") == 0)
        OK(tandem_profile_add_gemm_point(profile, SIDE, SIDE, SIDE, ns));
    else
        OK(tandem_profile_add_curve_point(profile, curve, 1000, ns));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_context_destroy(context);
}

/* The calls share their operands, so savings could cause a move. */
static enum tandem_status run(struct tandem_context *context, uint32_t device,
                              uint32_t id)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};
    const struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = device};
    static struct tandem_context *owner;
    static struct tandem_tensor *in[2], *out, *a, *c;

    if (owner != context) {
        in[0] = vector_wrap(context, data, N);
        in[1] = vector_wrap(context, more, N);
        out = vector_new(context, N);
        a = matrix_wrap(context, data, SIDE, SIDE);
        c = matrix_new(context, SIDE, SIDE);
        owner = context;
    }
    return id == TANDEM_OP_GEMM
               ? tandem_matmul(context, &options, a, a, c)
               : tandem_run_on(context, device, &op, in,
                               tandem_op_by_id(id)->input_count, &out, 1);
}

/* Returns the backend of the device that the context selected. */
static const char *selected_backend(struct tandem_context *context, uint32_t id)
{
    const char *backend;
    uint32_t index;

    OK(run(context, TANDEM_ANY_DEVICE, id));
    OK(tandem_device_name(context, last_device(context), &backend, &index));
    return backend;
}

static const uint32_t supported_ops[] = {TANDEM_OP_ADD, TANDEM_OP_GEMM};

/* Calibrated costs win, however high and after any number of runs. */
LOOP_TEST(test_default_costs_do_not_beat_calibration, CASES_IN(supported_ops))
{
    struct tandem_context *context;

    calibrated_save("cpu", AGES);
    context = context_new(NULL);
    for (int i = 0; i < ROUNDS / (supported_ops[_i] == TANDEM_OP_GEMM ? 10 : 1);
         i++)
        ck_assert_str_eq(selected_backend(context, supported_ops[_i]), "cpu");
}

TEST(test_explanation_marks_default_costs)
{
    struct tandem_explanation why;
    struct tandem_context *context;
    uint32_t seen = 0;

    calibrated_save("cpu", AGES);
    context = context_new(NULL);
    OK(run(context, TANDEM_ANY_DEVICE, TANDEM_OP_ADD));
    why = last_explanation(context);
    for (uint32_t i = 0; i < why.candidate_count; i++) {
        const bool cpu =
            why.candidates[i].device == device_named(context, "cpu");

        ck_assert_uint_eq(why.candidates[i].status, TANDEM_OK);
        ck_assert_uint_eq(why.candidates[i].calibrated, cpu);
        seen++;
    }
    ck_assert_uint_eq(seen, 2);
    expect_warnings(1, "example:0: not calibrated: not chosen if");
}

TEST(test_it_runs_if_forced)
{
    struct tandem_context *context;

    calibrated_save("cpu", LOW_COST);
    context = context_new(NULL);
    OK(run(context, device_named(context, "example"), TANDEM_OP_ADD));
    OK(tandem_context_force_device(context, device_named(context, "example")));
    ck_assert_str_eq(selected_backend(context, TANDEM_OP_GEMM), "example");
}

LOOP_TEST(test_it_runs_without_calibrated_devices, CASES_IN(supported_ops))
{
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "example", 1);
    context = context_new(NULL);
    ck_assert_str_eq(selected_backend(context, supported_ops[_i]), "example");
    expect_warnings(0, NULL);
    FAILS(TANDEM_UNSUPPORTED, run(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
}

/* The blocklist contains the operator for the calibrated device. */
TEST(test_it_runs_if_no_other_device_supports_the_operator)
{
    struct tandem_context *context;
    struct tandem_profile *profile;

    calibrated_save("cpu", LOW_COST);
    profile = profile_edit(context_new(NULL), "cpu");
    OK(tandem_profile_set_op_blocked(profile, TANDEM_OP_ADD, 1));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    context = context_new(NULL);
    ck_assert_str_eq(selected_backend(context, TANDEM_OP_ADD), "example");
    ck_assert_str_eq(selected_backend(context, TANDEM_OP_MUL), "cpu");
}

/* Returns true if a large GEMM would run on the simulated GPU. */
static bool large_gemm_is_for_gpu(struct tandem_context *context)
{
    static float large[LARGE_SIDE * LARGE_SIDE];
    struct tandem_explanation why = {.struct_size = sizeof why};
    struct tandem_tensor *a =
        matrix_wrap(context, large, LARGE_SIDE, LARGE_SIDE);
    struct tandem_tensor *c = matrix_new(context, LARGE_SIDE, LARGE_SIDE);

    OK(tandem_explain_matmul(context, NULL, a, a, c, &why));
    tandem_tensor_destroy(a);
    tandem_tensor_destroy(c);
    return why.chosen == device_named(context, "simulated");
}

/* Default costs of a GPU are conservative, so only large operators run there.
 * The CPU has no profile, or a profile of a desktop. An accelerator that is no
 * GPU has no profile, or a profile with high costs. */
LOOP_TEST(test_default_costs_of_a_gpu_compete, 4)
{
    struct script cpu = script_free();
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "cpu,example,simulated", 1);
    script_all(&cpu, 100, 0.1);
    cpu.gemm_base = 0.02;
    if (_i & 1)
        script_save("cpu", &cpu);
    if (_i & 2)
        calibrated_save("example", AGES);
    log_forget();
    context = context_new(NULL);
    ck_assert(large_gemm_is_for_gpu(context));
    ck_assert_str_eq(selected_backend(context, TANDEM_OP_ADD), "cpu");
    expect_warnings(1, "simulated:0: not calibrated: conservative default "
                       "costs are used, so only large operators run on it; "
                       "run cl-probe --calibrate");
    expect_warnings(_i & 2 ? 0 : 1, "example:0: not calibrated: ");
    expect_warnings(_i & 2 ? 1 : 2, NULL);
}

/* docs/choosing-a-device.md lists the default costs of each kind of device. */
TEST(test_default_costs_depend_on_the_kind_of_device)
{
    static const struct {
        const char *plugin;
        double launch_ns, bytes_per_ns;
    } kinds[] = {
        {"", 30e3, 5}, /* an accelerator */
        {"self-test", 10e3, 60},
        {"self-test,unified", 10e3, 20},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct tandem_context *context;
        uint32_t device;

        setenv("TANDEM_TEST_PLUGIN", kinds[i].plugin, 1);
        context = context_new(NULL);
        device = device_named(context, "example");
        ck_assert_double_eq_tol(
            cost(context, device, "elementwise", 1e9),
            kinds[i].launch_ns + 1e9 / kinds[i].bytes_per_ns, 1);
        ck_assert_double_eq_tol(cost(context, device, "upload", 1e9),
                                20e3 + 1e9 / 5, 1);
        ck_assert_double_lt(
            cost(context, device_named(context, "cpu"), "elementwise", 4096),
            cost(context, device, "elementwise", 4096));
        tandem_context_destroy(context);
    }
}

/* Each device has one line. No line appears if costs choose no device. */
TEST(test_devices_without_a_profile_are_named_once)
{
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "cpu,simulated", 1);
    setenv("TANDEM_TEST_PLUGIN", "devices=3", 1);
    context_works(context_new(NULL));
    for (char name[] = "simulated:0"; name[10] < '3'; name[10]++)
        expect_warnings(1, name);
    expect_warnings(3, "run cl-probe --calibrate");
    expect_warnings(3, NULL);
    log_forget();
    setenv("TANDEM_DEVICE", "simulated:1", 1);
    context_works(context_new(NULL));
    unsetenv("TANDEM_DEVICE");
    context = context_new(NULL);
    OK(tandem_context_force_device(context, device_named(context, "cpu")));
    context_works(context);
    expect_warnings(0, "not calibrated");
}

/* Tests each cost class alone: GEMM was not calibrated, or only GEMM was. */
LOOP_TEST(test_partly_calibrated_devices, 2)
{
    const bool gemm = _i != 0;
    struct tandem_context *context;

    calibrated_save("cpu", AGES);
    calibrated_curve_save("example", gemm ? "gemm" : "elementwise", LOW_COST);
    context = context_new(NULL);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(selected_backend(context, TANDEM_OP_GEMM),
                         gemm ? "example" : "cpu");
        ck_assert_str_eq(selected_backend(context, TANDEM_OP_ADD),
                         gemm ? "cpu" : "example");
    }
}

/*
 * The default costs of the CPU are not too low, so they compete with
 * calibrated costs of a GPU. Default costs of another GPU do not.
 */
LOOP_TEST(test_default_costs_of_the_cpu_compete, CASES_IN(supported_ops))
{
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "cpu,example,simulated", 1);
    setenv("TANDEM_TEST_PLUGIN", "self-test", 1); /* is a GPU */
    calibrated_save("example", AGES);
    log_forget();
    for (int round = 0; round < 2; round++) {
        context = context_new(NULL);
        for (int i = 0; i < 5; i++) {
            ck_assert_str_eq(selected_backend(context, supported_ops[_i]),
                             round == 0 ? "cpu" : "example");
            ck_assert_str_eq(selected_backend(context, TANDEM_OP_EXP), "cpu");
        }
        expect_warnings(0, "cpu:0");
        expect_warnings(1, "simulated:0: not calibrated: not chosen if");
        tandem_context_destroy(context);
        calibrated_save("example", LOW_COST);
        log_forget();
    }
}

int main(void)
{
    TCase *tests = case_new("example");

    tcase_add_unchecked_fixture(tests, plugin_copy, NULL);
    tcase_add_checked_fixture(tests, variables_setup, NULL);
    tests_add(tests);
    return runner_run_case("example", tests);
}
