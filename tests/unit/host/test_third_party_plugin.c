/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of somebody else's (tests/third-party-plugin), which serves four
 * operators: it is not chosen on guesses beside a device that was measured, and
 * runs where it is forced, where it alone serves an operator, and where nothing
 * was measured.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "support.h"

#define N 512
#define SIDE 256
#define ROUNDS 300 /* enough for the way of repeated calls, and for debts */
/* What a device takes for anything; guesses are between. */
#define NOTHING 1.0
#define AGES 1e9

static float data[SIDE * SIDE], more[SIDE * SIDE];

static void plugins_setup(void)
{
    scratch_setup();
    file_copy(scratch_path("plugins/tandem-third-party.so"),
              build_path("tandem-third-party.so"));
}

static void variables_setup(void)
{
    environment_setup();
    unsetenv("THIRD_PARTY_PLUGIN");
    setenv("TANDEM_BACKENDS", "cpu,third-party", 1);
    count_up(data, SIDE * SIDE);
    count_up(more, SIDE * SIDE);
}

/* A profile in which everything takes ns. */
static void measured(const char *device, double ns)
{
    struct script script = script_free();

    script_all(&script, ns, 0);
    script.gemm_base = 1e-9;
    script.gemm_fixed = ns;
    script_save(device, &script);
}

/* A profile of one curve, or of products ("gemm"), and of nothing else. */
static void measured_part(const char *device, const char *curve, double ns)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, device);
    char path[4096];

    if (strcmp(curve, "gemm") == 0)
        OK(tandem_profile_add_gemm_point(profile, SIDE, SIDE, SIDE, ns));
    else
        OK(tandem_profile_add_curve_point(profile, curve, 1000, ns));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
}

static enum tandem_status run(struct tandem_context *context, uint32_t device,
                              uint32_t id)
{
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};
    const struct tandem_op_info *info = tandem_op_by_id(id);
    struct tandem_matmul_options options = {
        .struct_size = sizeof options, .alpha = 1, .device = device};
    struct tandem_tensor *in[2], *out;
    enum tandem_status status;

    if (id == TANDEM_OP_GEMM) {
        in[0] = matrix_wrap(context, data, SIDE, SIDE);
        in[1] = matrix_wrap(context, more, SIDE, SIDE);
        out = matrix_new(context, SIDE, SIDE);
        status = tandem_matmul(context, &options, in[0], in[1], out);
    } else {
        in[0] = vector_wrap(context, data, N);
        in[1] = vector_wrap(context, more, N);
        out = vector_new(context, N);
        status =
            tandem_run_on(context, device, &op, in, info->input_count, &out, 1);
    }
    tandem_tensor_destroy(in[0]);
    tandem_tensor_destroy(in[1]);
    tandem_tensor_destroy(out);
    return status;
}

/* The backend of the device that the context chose. */
static const char *runs_on(struct tandem_context *context, uint32_t id)
{
    struct tandem_explanation why = {.struct_size = sizeof why};
    const char *backend;
    uint32_t index;

    OK(run(context, TANDEM_ANY_DEVICE, id));
    OK(tandem_explain_last(context, &why));
    OK(tandem_device_name(context, why.chosen, &backend, &index));
    return backend;
}

static const uint32_t served[] = {TANDEM_OP_ADD, TANDEM_OP_MUL, TANDEM_OP_RELU,
                                  TANDEM_OP_GEMM};

/* However bad what was measured is, and however often it is. */
START_TEST(test_guesses_do_not_beat_measurements)
{
    struct tandem_context *context;

    measured("cpu", AGES);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, served[_i]), "cpu");
    for (int i = 0; i < ROUNDS / (served[_i] == TANDEM_OP_GEMM ? 10 : 1); i++)
        ck_assert_str_eq(runs_on(context, served[_i]), "cpu");
    tandem_context_destroy(context);
}
END_TEST

/* On the same tensors, whose moving a debt might pay one day. */
START_TEST(test_no_debt_pays_for_guesses)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_RELU};
    struct tandem_explanation why = {.struct_size = sizeof why};
    struct tandem_context *context;
    struct tandem_tensor *x, *y;

    measured("cpu", AGES);
    context = context_new(NULL);
    x = vector_wrap(context, data, N);
    y = vector_new(context, N);
    for (int i = 0; i < ROUNDS; i++) {
        OK(tandem_run(context, &op, &x, 1, &y, 1));
        OK(tandem_explain_last(context, &why));
        ck_assert_uint_eq(why.chosen, device_named(context, "cpu"));
    }
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_explanation_tells_guesses)
{
    struct tandem_explanation why = {.struct_size = sizeof why};
    struct tandem_context *context;
    uint32_t seen = 0;

    measured("cpu", AGES);
    context = context_new(NULL);
    OK(run(context, TANDEM_ANY_DEVICE, TANDEM_OP_ADD));
    OK(tandem_explain_last(context, &why));
    for (uint32_t i = 0; i < why.candidate_count; i++) {
        const bool cpu =
            why.candidates[i].device == device_named(context, "cpu");

        ck_assert_uint_eq(why.candidates[i].status, TANDEM_OK);
        ck_assert_uint_eq(why.candidates[i].calibrated, cpu);
        seen++;
    }
    ck_assert_uint_eq(seen, 2);
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING,
                                "third-party:0: not calibrated: not chosen if"),
                      1);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_forced_it_runs)
{
    struct tandem_context *context;

    measured("cpu", NOTHING);
    context = context_new(NULL);
    OK(run(context, device_named(context, "third-party"), served[_i]));
    OK(tandem_context_force_device(context,
                                   device_named(context, "third-party")));
    ck_assert_str_eq(runs_on(context, served[_i]), "third-party");
    tandem_context_destroy(context);
    setenv("TANDEM_DEVICE", "third-party", 1);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, served[_i]), "third-party");
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_alone_it_runs)
{
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "third-party", 1);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, served[_i]), "third-party");
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, NULL), 0);
    FAILS(TANDEM_UNSUPPORTED, run(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
    tandem_context_destroy(context);
}
END_TEST

/* The measured device is known to compute the operator wrong. */
START_TEST(test_alone_in_serving_it_runs)
{
    struct tandem_context *context;
    struct tandem_profile *profile = NULL;
    char path[4096];

    measured("cpu", NOTHING);
    context = context_new(NULL);
    OK(tandem_profile_edit(context, device_named(context, "cpu"), &profile));
    OK(tandem_profile_set_op_blocked(profile, TANDEM_OP_ADD, 1));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, TANDEM_OP_ADD), "third-party");
    ck_assert_str_eq(runs_on(context, TANDEM_OP_MUL), "cpu");
    tandem_context_destroy(context);
}
END_TEST

/* A large product is a GPU's, as far as anybody can guess. */
START_TEST(test_guesses_compete_with_guesses)
{
    struct tandem_context *context = context_new(NULL);

    ck_assert_str_eq(runs_on(context, TANDEM_OP_GEMM), "third-party");
    ck_assert_str_eq(runs_on(context, TANDEM_OP_ADD), "cpu");
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, NULL), 0);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_measured_it_wins_what_it_is_best_at)
{
    struct tandem_context *context;

    measured("cpu", AGES);
    measured("third-party", NOTHING);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, served[_i]), "third-party");
    ck_assert_str_eq(runs_on(context, TANDEM_OP_EXP), "cpu");
    tandem_context_destroy(context);
    measured("third-party", 2 * AGES);
    context = context_new(NULL);
    ck_assert_str_eq(runs_on(context, served[_i]), "cpu");
    tandem_context_destroy(context);
}
END_TEST

/* Each class by itself: products were not measured, or nothing else was. */
START_TEST(test_measured_in_part)
{
    const bool gemm = _i != 0;
    struct tandem_context *context;

    measured("cpu", AGES);
    measured_part("third-party", gemm ? "gemm" : "elementwise", NOTHING);
    context = context_new(NULL);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(runs_on(context, TANDEM_OP_GEMM),
                         gemm ? "third-party" : "cpu");
        ck_assert_str_eq(runs_on(context, TANDEM_OP_ADD),
                         gemm ? "cpu" : "third-party");
    }
    tandem_context_destroy(context);
}
END_TEST

/* What is guessed of the CPU is no less than the truth, so it does compete with
 * what was measured of another; a third, which was not measured, does not. */
START_TEST(test_the_cpu_is_guessed_well_enough)
{
    struct tandem_context *context;

    setenv("TANDEM_BACKENDS", "cpu,third-party,simulated", 1);
    measured("third-party", AGES);
    for (int round = 0; round < 2; round++) {
        context = context_new(NULL);
        for (int i = 0; i < 5; i++) {
            ck_assert_str_eq(runs_on(context, served[_i]),
                             round == 0 ? "cpu" : "third-party");
            ck_assert_str_eq(runs_on(context, TANDEM_OP_EXP), "cpu");
        }
        ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, "cpu:0"), 0);
        tandem_context_destroy(context);
        measured("third-party", NOTHING);
        log_forget();
    }
}
END_TEST

int main(void)
{
    const int count = sizeof served / sizeof served[0];
    Suite *suite = suite_create("third-party");
    TCase *tests = tcase_create("a plugin of somebody else's");

    tcase_add_unchecked_fixture(tests, plugins_setup, scratch_teardown);
    tcase_add_checked_fixture(tests, variables_setup, NULL);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, test_guesses_do_not_beat_measurements, 0, count);
    tcase_add_test(tests, test_no_debt_pays_for_guesses);
    tcase_add_test(tests, test_explanation_tells_guesses);
    tcase_add_loop_test(tests, test_forced_it_runs, 0, count);
    tcase_add_loop_test(tests, test_alone_it_runs, 0, count);
    tcase_add_test(tests, test_alone_in_serving_it_runs);
    tcase_add_test(tests, test_guesses_compete_with_guesses);
    tcase_add_loop_test(tests, test_measured_it_wins_what_it_is_best_at, 0,
                        count);
    tcase_add_loop_test(tests, test_measured_in_part, 0, 2);
    tcase_add_loop_test(tests, test_the_cpu_is_guessed_well_enough, 0, count);
    return suite_run(suite);
}
