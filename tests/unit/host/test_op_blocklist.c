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

static enum tandem_status run_on(struct tandem_context *context,
                                 uint32_t device, uint32_t op)
{
    struct tandem_tensor *x = vector_wrap(context, data, ELEMENTS);
    struct tandem_tensor *y = vector_new(context, ELEMENTS);
    const enum tandem_status status = unary_status(context, device, op, x, y);

    tandem_tensor_destroy(x);
    tandem_tensor_destroy(y);
    return status;
}

/*
 * Runs a unary operator often enough that the context caches the call. Checks
 * the device of the last run.
 */
static void expect_selected(struct tandem_context *context, uint32_t op,
                            const char *device)
{
    for (int i = 0; i < 5; i++)
        OK(run_on(context, TANDEM_ANY_DEVICE, op));
    ck_assert_uint_eq(last_device(context), device_named(context, device));
}

TEST(test_blocked_operator_runs_elsewhere)
{
    profiles_prefer_gpu();
    expect_selected(context_new(NULL), TANDEM_OP_EXP, "simulated");
    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    expect_selected(context_new(NULL), TANDEM_OP_EXP, "cpu");
    expect_selected(context_new(NULL), TANDEM_OP_RELU, "simulated");
    op_blocked_save("simulated", TANDEM_OP_EXP, 0);
    expect_selected(context_new(NULL), TANDEM_OP_EXP, "simulated");
}

TEST(test_requested_device_is_an_error)
{
    const struct tandem_context_options options = {.device = "simulated"};
    struct tandem_context *context;
    uint32_t simulated;

    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    simulated = device_named(context, "simulated");
    FAILS(TANDEM_UNSUPPORTED, run_on(context, simulated, TANDEM_OP_EXP));
    expect_last_error("exp: simulated:0 failed verification");
    expect_last_error("cl-probe --verify");
    OK(run_on(context, simulated, TANDEM_OP_LOG));
    OK(run_on(context, device_named(context, "cpu"), TANDEM_OP_EXP));
    context = context_new(&options);
    FAILS(TANDEM_UNSUPPORTED,
          run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
    OK(run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_LOG));
}

/* The host fast path of small operators also uses the blocklist. */
TEST(test_cpu_can_be_blocked)
{
    struct tandem_context *context;

    op_blocked_save("cpu", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    expect_selected(context, TANDEM_OP_LOG, "cpu");
    expect_selected(context, TANDEM_OP_EXP, "simulated");
    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    FAILS(TANDEM_UNSUPPORTED,
          run_on(context, TANDEM_ANY_DEVICE, TANDEM_OP_EXP));
    expect_last_error("failed verification");
    expect_selected(context, TANDEM_OP_LOG, "cpu");
}

TEST(test_blocked_gemm)
{
    struct tandem_matmul_options options = {.struct_size = sizeof options,
                                            .alpha = 1};
    struct tandem_context *context;
    struct tandem_tensor *a, *c;

    profiles_prefer_gpu();
    op_blocked_save("simulated", TANDEM_OP_GEMM, 1);
    context = context_new(NULL);
    a = matrix_wrap(context, data, 256, 256);
    c = matrix_new(context, 256, 256);
    OK(tandem_matmul(context, NULL, a, a, c));
    ck_assert_uint_eq(last_device(context), device_named(context, "cpu"));
    options.device = device_named(context, "simulated");
    FAILS(TANDEM_UNSUPPORTED, tandem_matmul(context, &options, a, a, c));
}

TEST(test_explanation_reports_the_blocklist)
{
    const struct tandem_op exp = {.struct_size = sizeof exp,
                                  .id = TANDEM_OP_EXP};
    struct tandem_explanation why[2] = {{.struct_size = sizeof *why}};
    struct tandem_context *context;
    struct tandem_tensor *x;

    profiles_prefer_gpu();
    op_blocked_save("simulated", TANDEM_OP_EXP, 1);
    context = context_new(NULL);
    x = vector_wrap(context, data, ELEMENTS);
    OK(tandem_explain_op(context, &exp, &x, 1, &x, 1, &why[0]));
    OK(tandem_run(context, &exp, &x, 1, &x, 1, NULL));
    why[1] = last_explanation(context);
    for (int i = 0; i < 2; i++) {
        const uint32_t simulated = device_named(context, "simulated");

        ck_assert_uint_eq(why[i].chosen, 0);
        ck_assert_uint_eq(candidate_of(&why[i], 0)->status, TANDEM_OK);
        ck_assert_uint_eq(candidate_of(&why[i], simulated)->status,
                          TANDEM_UNSUPPORTED);
    }
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
