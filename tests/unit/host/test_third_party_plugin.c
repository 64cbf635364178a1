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

/*
 * Saves a profile in which everything costs ns, or only operators of the class
 * of one curve, or only GEMMs ("gemm").
 */
static void calibrated_save(const char *device, const char *only, double ns)
{
    struct script script = script_free();
    struct tandem_profile *profile;

    script_all(&script, ns, 0);
    script.gemm_base = 1e-9;
    script.gemm_fixed = ns;
    if (!only) {
        script_save(device, &script);
        return;
    }
    profile = profile_new(context_new(NULL), device);
    if (strcmp(only, "gemm") == 0)
        OK(tandem_profile_add_gemm_point(profile, SIDE, SIDE, SIDE, ns));
    else
        OK(tandem_profile_add_curve_point(profile, only, 1000, ns));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
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
               : tandem_run(context, &op, in, tandem_op_by_id(id)->input_count,
                            &out, 1, TANDEM_RUN_ON(device));
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

/* The devices, their costs, 0 for no profile, and where operators run. */
static const struct placement {
    const char *backends, *script;
    double cpu_ns, example_ns;
    const char *only; /* What the profile of the example plugin contains. */
    uint32_t blocked; /* An operator that the CPU must not run. */
    const char *add, *gemm, *mul;
} placements[] = {
    /* Calibrated costs win, however high and after any number of runs. */
    {"cpu,example", "", AGES, 0, NULL, 0, "cpu", "cpu", "cpu"},
    {"example", "", 0, 0, NULL, 0, "example", "example", "example"},
    /* No other device supports the operator. */
    {"cpu,example", "", LOW_COST, 0, NULL, TANDEM_OP_ADD, "example", "cpu",
     "cpu"},
    /* Each cost class alone: GEMM was not calibrated, or only GEMM was. */
    {"cpu,example", "", AGES, LOW_COST, "gemm", 0, "cpu", "example", "cpu"},
    {"cpu,example", "", AGES, LOW_COST, "elementwise", 0, "example", "cpu",
     "example"},
    /* The default costs of the CPU are not too low, so they compete with
     * calibrated costs of a GPU. Default costs of another GPU do not. */
    {"cpu,example,simulated", "self-test", 0, AGES, NULL, 0, "cpu", "cpu",
     "cpu"},
    {"cpu,example,simulated", "self-test", 0, LOW_COST, NULL, 0, "example",
     "example", "example"},
};

LOOP_TEST(test_placements, CASES_IN(placements))
{
    const struct placement *of = &placements[_i];
    struct tandem_context *context;
    struct tandem_profile *profile;

    setenv("TANDEM_BACKENDS", of->backends, 1);
    setenv("TANDEM_TEST_PLUGIN", of->script, 1);
    if (of->cpu_ns > 0)
        calibrated_save("cpu", NULL, of->cpu_ns);
    if (of->example_ns > 0)
        calibrated_save("example", of->only, of->example_ns);
    if (of->blocked != 0) {
        profile = profile_edit(context_new(NULL), "cpu");
        OK(tandem_profile_set_op_blocked(profile, of->blocked, 1));
        OK(tandem_profile_save(profile, NULL, NULL, 0));
    }
    log_forget();
    context = context_new(NULL);
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_str_eq(selected_backend(context, TANDEM_OP_ADD), of->add);
        ck_assert_str_eq(selected_backend(context, TANDEM_OP_MUL), of->mul);
        if (i % 10 == 0)
            ck_assert_str_eq(selected_backend(context, TANDEM_OP_GEMM),
                             of->gemm);
    }
    expect_warnings(0, "cpu:0");
    expect_warnings(strstr(of->backends, "simulated") != NULL,
                    "simulated:0: not calibrated: not chosen if");
    if (strcmp(of->backends, "example") != 0)
        return;
    expect_warnings(0, NULL);
    FAILS(TANDEM_UNSUPPORTED, run(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
}

TEST(test_explanation_marks_default_costs)
{
    struct tandem_explanation why;
    struct tandem_context *context;

    calibrated_save("cpu", NULL, AGES);
    context = context_new(NULL);
    OK(run(context, TANDEM_ANY_DEVICE, TANDEM_OP_ADD));
    why = last_explanation(context);
    ck_assert_uint_eq(candidate_of(&why, 0)->calibrated, 1);
    ck_assert_uint_eq(
        candidate_of(&why, device_named(context, "example"))->calibrated, 0);
    expect_warnings(1, "example:0: not calibrated: not chosen if");
}

TEST(test_it_runs_if_forced)
{
    struct tandem_context *context;

    calibrated_save("cpu", NULL, LOW_COST);
    context = context_new(NULL);
    OK(run(context, device_named(context, "example"), TANDEM_OP_ADD));
    OK(tandem_context_force_device(context, device_named(context, "example")));
    ck_assert_str_eq(selected_backend(context, TANDEM_OP_GEMM), "example");
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
        calibrated_save("example", NULL, AGES);
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

int main(void)
{
    TCase *tests = case_new("example");

    tcase_add_unchecked_fixture(tests, plugin_copy, NULL);
    tcase_add_checked_fixture(tests, variables_setup, NULL);
    tests_add(tests);
    return runner_run_case("example", tests);
}
