/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator blocklist: an operator that a device's profile blocks never
 * runs on that device, neither selected nor requested, and explanations say
 * so.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define ELEMENTS 100000

static float data[ELEMENTS];

/* Saves profiles with a free GPU and an expensive CPU. */
static void profiles_prefer_gpu(void)
{
    struct script slow = script_free(), free_of_charge = script_free();

    script_all(&slow, 1000, 1);
    slow.gemm_base = 100;
    free_of_charge.gemm_base = 1;
    script_save("cpu", &slow);
    script_save("simulated", &free_of_charge);
}

static void op_blocked_save(const char *device, uint32_t op, uint32_t blocked)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_edit(context, device);

    OK(tandem_profile_set_op_blocked(profile, op, blocked));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    tandem_context_destroy(context);
}

/*
 * Runs a unary operator often enough that the context caches the call. Returns
 * the device of the last run.
 */
static uint32_t selected_device(struct tandem_context *context, uint32_t op)
{
    struct tandem_tensor *x = vector_wrap(context, data, ELEMENTS);
    struct tandem_tensor *y = vector_new(context, ELEMENTS);

    for (int i = 0; i < 5; i++)
        OK(tandem_unary(context, op, x, y));
    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return last_device(context);
}

static enum tandem_status run_on(struct tandem_context *context,
                                 uint32_t device, uint32_t op)
{
    const struct tandem_op call = {.struct_size = sizeof call, .id = op};
    struct tandem_tensor *x = vector_wrap(context, data, ELEMENTS);
    struct tandem_tensor *y = vector_new(context, ELEMENTS);
    const enum tandem_status status =
        tandem_run_on(context, device, &call, &x, 1, &y, 1);

    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return status;
}

TEST(test_blocked_operator_runs_elsewhere)
{
    struct tandem_context *context;
    uint32_t cpu, simulated;

    profiles_prefer_gpu();
    context = context_new(NULL);
    cpu = device_named(context, "cpu");
    simulated = device_named(context, "simulated");
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_EXP), simulated);
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_RELU), simulated);
    tandem_context_destroy(context);

    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_EXP), cpu);
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_RELU), simulated);
    tandem_context_destroy(context);

    op_blocked_save("simulated", TANDEM_OP_EXP, 0);
    context = context_new(NULL);
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_EXP), simulated);
}

TEST(test_requested_device_is_an_error)
{
    struct tandem_context_options options = {.struct_size = sizeof options,
                                             .device = "simulated"};
    struct tandem_context *context;
    uint32_t simulated;

    profiles_prefer_gpu();
    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    FAILS(TANDEM_UNSUPPORTED, run_on(context, simulated, TANDEM_OP_EXP));
    expect_last_error("exp: simulated:0 failed verification");
    expect_last_error("cl-probe --verify");
    OK(run_on(context, simulated, TANDEM_OP_LOG));
    OK(run_on(context, device_named(context, "cpu"), TANDEM_OP_EXP));
    tandem_context_destroy(context);

    context = context_new(&options);
    FAILS(TANDEM_UNSUPPORTED,
          run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
    OK(run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_LOG));
}

TEST(test_blocked_everywhere_is_an_error)
{
    struct tandem_context *context;

    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    op_blocked_save("cpu", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    FAILS(TANDEM_UNSUPPORTED,
          run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
    expect_last_error("failed verification");
    OK(run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_LOG));
}

/* The host fast path of small operators also uses the blocklist. */
TEST(test_cpu_can_be_blocked)
{
    struct script slow = script_free(), quick = script_free();
    struct tandem_context *context;
    struct tandem_tensor *x, *y;

    script_all(&slow, 1000, 1);
    script_save("cpu", &quick);
    script_save("simulated", &slow);
    op_blocked_save("cpu", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_LOG),
                      device_named(context, "cpu"));
    ck_assert_uint_eq(selected_device(context, TANDEM_OP_EXP),
                      device_named(context, "simulated"));
    x = vector_wrap(context, data, ELEMENTS);
    y = vector_new(context, ELEMENTS);
    for (int i = 0; i < 5; i++)
        OK(tandem_unary(context, TANDEM_OP_LOG, x, y));
    OK(tandem_unary(context, TANDEM_OP_EXP, x, y));
    ck_assert_uint_eq(last_device(context), device_named(context, "simulated"));
}

TEST(test_blocked_gemm)
{
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1};
    struct tandem_context *context;
    struct tandem_tensor *a, *b, *c;

    profiles_prefer_gpu();
    op_blocked_save("simulated", TANDEM_OP_GEMM, 1);
    context = context_new(NULL);
    a = matrix_wrap(context, data, 256, 256);
    b = matrix_wrap(context, data, 256, 256);
    c = matrix_new(context, 256, 256);
    OK(tandem_matmul(context, NULL, a, b, c));
    ck_assert_uint_eq(last_device(context), device_named(context, "cpu"));
    options.device = device_named(context, "simulated");
    FAILS(TANDEM_UNSUPPORTED, tandem_matmul(context, &options, a, b, c));
}

TEST(test_explanation_reports_the_blocklist)
{
    const struct tandem_op exp = {.struct_size = sizeof exp,
                                  .id = TANDEM_OP_EXP};
    struct tandem_explanation why = {.struct_size = sizeof why};
    struct tandem_context *context;
    struct tandem_tensor *x, *y;
    uint32_t seen = 0;

    profiles_prefer_gpu();
    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    x = vector_wrap(context, data, ELEMENTS);
    y = vector_new(context, ELEMENTS);
    for (int ran = 0; ran < 2; ran++) {
        if (ran) {
            OK(tandem_run(context, &exp, &x, 1, &y, 1));
            why = last_explanation(context);
        } else {
            OK(tandem_explain_op(context, &exp, &x, 1, &y, 1, &why));
        }
        ck_assert_uint_eq(why.chosen, device_named(context, "cpu"));
        for (uint32_t i = 0; i < why.candidate_count; i++) {
            const bool simulated =
                why.candidates[i].device == device_named(context, "simulated");

            ck_assert_uint_eq(why.candidates[i].status,
                              simulated ? TANDEM_UNSUPPORTED : TANDEM_OK);
            seen += simulated;
        }
    }
    ck_assert_uint_eq(seen, 2);
}

/* An edited profile keeps the costs, and a calibration keeps the blocklist. */
TEST(test_profile_keeps_both)
{
    struct tandem_context *context;
    uint32_t simulated;

    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    ck_assert_uint_eq(calibrated(context, device_named(context, "simulated")),
                      0);
    tandem_context_destroy(context);

    profiles_prefer_gpu(); /* Saves new profiles. */
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    FAILS(TANDEM_UNSUPPORTED, run_on(context, simulated, TANDEM_OP_EXP));
    ck_assert_uint_eq(calibrated(context, simulated), 1);
    tandem_context_destroy(context);

    op_blocked_save("simulated", TANDEM_OP_TANH, 1);
    op_blocked_save("simulated", TANDEM_OP_TANH, 1);
    op_blocked_save("simulated", TANDEM_OP_EXP, 0);
    context = context_new(NULL);
    FAILS(TANDEM_UNSUPPORTED, run_on(context, simulated, TANDEM_OP_TANH));
    OK(run_on(context, simulated, TANDEM_OP_EXP));
    ck_assert(op_is_blocked(context, simulated, TANDEM_OP_TANH));
    ck_assert(!op_is_blocked(context, simulated, TANDEM_OP_EXP));
    ck_assert_double_lt(cost(context, simulated, "transcendental", 1000), 1);
}

static const char *const hostile[] = {
    "3",      "\"exp\"",     "{\"exp\": 1}",   "[\"exp\", 3]",
    "[null]", "[[\"exp\"]]", "[\"relu\", {}]",
};

static void rejected_write(const char *value)
{
    static const char line[] = "\"blocked_operators\": [";
    const char *path = script_path("simulated");
    char *text = file_read(path), *at = strstr(text, line);
    char *end = at != NULL ? strchr(at, ']') : NULL;
    char *changed = NULL;

    ck_assert_msg(end != NULL, "%s has no blocked_operators", path);
    ck_assert_int_gt(asprintf(&changed, "%.*s\"blocked_operators\": %s%s",
                              (int)(at - text), text, value, end + 1),
                     0);
    file_write(path, changed);
    free(changed);
    free(text);
}

LOOP_TEST(test_malicious_lists_are_rejected, CASES_IN(hostile))
{
    struct tandem_context *context;

    profiles_prefer_gpu();
    rejected_write(hostile[_i]);
    context = context_new(NULL);
    OK(run_on(context, device_named(context, "simulated"), TANDEM_OP_EXP));
    expect_warnings(1, "blocked_operators");
}

TEST(test_unknown_names_are_another_version_s)
{
    struct tandem_context *context;

    profiles_prefer_gpu();
    rejected_write("[\"frobnicate\", \"\", \"exp\"]");
    log_forget();
    context = context_new(NULL);
    FAILS(TANDEM_UNSUPPORTED,
          run_on(context, device_named(context, "simulated"), TANDEM_OP_EXP));
    expect_warnings(0, NULL);
}

TEST(test_invalid_arguments)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = NULL;
    uint32_t rejects = 9;

    BAD(tandem_profile_edit(context, 0, NULL));
    BAD(tandem_profile_edit(NULL, 0, &profile));
    BAD(tandem_profile_edit(context, 15, &profile));
    ck_assert_ptr_null(profile);
    BAD(tandem_profile_set_op_blocked(NULL, TANDEM_OP_EXP, 1));
    OK(tandem_profile_edit(context, 0, &profile));
    BAD(tandem_profile_set_op_blocked(profile, 0, 1));
    BAD(tandem_profile_set_op_blocked(profile, 4000, 1));
    OK(tandem_profile_set_op_blocked(profile, TANDEM_OP_EXP, 0));
    BAD(tandem_device_is_op_blocked(context, 0, TANDEM_OP_EXP, NULL));
    BAD(tandem_device_is_op_blocked(context, 0, TANDEM_OP_ID_END, &rejects));
    ck_assert_uint_eq(rejects, 0);
    tandem_profile_destroy(profile);
}

/* The file may have changed since the device was found. */
TEST(test_editing_an_invalid_file)
{
    struct tandem_context *context;
    struct tandem_profile *profile = NULL;
    uint32_t simulated;

    profiles_prefer_gpu();
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    file_write(script_path("simulated"), "{}");
    FAILS(TANDEM_FAILED, tandem_profile_edit(context, simulated, &profile));
    ck_assert_ptr_null(profile);
}

TEST_MAIN(host_tests_run("gate", NULL, NULL))
