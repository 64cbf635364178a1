/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: the next context predicts with the saved values, and invalid
 * values are not saved.
 */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* ---- round trip ---- */

LOOP_TEST(test_round_trip, 2)
{
    /* Sizes, and the costs of the first curve. */
    static const double expected[][2] = {{1000, 300}, {1500, 400}, {2000, 500},
                                         {3000, 700}, {4000, 900}, {6000, 1300},
                                         {10, 300}};
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile =
        profile_new(context, _i ? "simulated" : "cpu");
    char path[4096] = "";
    uint32_t device;

    for (int i = 0; i < CURVES; i++) {
        OK(tandem_profile_add_curve_point(profile, curve_names[i], 4000,
                                          900 + i));
        OK(tandem_profile_add_curve_point(profile, curve_names[i], 1000,
                                          300 + i));
        OK(tandem_profile_add_curve_point(profile, curve_names[i], 2000, 1));
        OK(tandem_profile_add_curve_point(profile, curve_names[i], 2000,
                                          500 + i));
    }
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_context_destroy(context);
    ck_assert_msg(strncmp(path, scratch_path("profiles"),
                          strlen(scratch_path("profiles"))) == 0,
                  "saved to %s", path);

    context = context_new(NULL);
    device = device_named(context, _i ? "simulated" : "cpu");
    ck_assert_uint_eq(calibrated(context, device), 1);
    ck_assert_uint_eq(
        calibrated(context, device_named(context, _i ? "cpu" : "simulated")),
        0);
    for (int i = 0; i < CURVES; i++) {
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
            ck_assert_double_eq_tol(
                cost(context, device, curve_names[i], expected[k][0]),
                expected[k][1] + i, 1e-9);
    }
    expect_warnings(0, "rofile");
}

/* Another driver version has its own costs. One warning names the old file. */
TEST(test_another_driver)
{
    const struct script script = script_free();
    char path[4096];

    script_save("simulated", &script);
    snprintf(path, sizeof path, "%s", script_path("simulated"));
    setenv("TANDEM_TEST_PLUGIN", "driver=2", 1);
    log_forget();
    context_works(context_new(NULL));
    expect_warnings(1, path);
    expect_warnings(1, ": it was measured with driver \"1\", not \"2\": "
                       "conservative default costs are used");
    expect_warnings(1, NULL);
    script_save("simulated", &script);
    log_forget();
    context_works(context_new(NULL));
    expect_warnings(0, NULL);
}

/* An edited profile keeps the tuning and the notes, unless it removes them. A
 * new profile has none. */
TEST(test_tuning_and_notes_are_kept)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "simulated");
    char path[4096], *text;

    OK(tandem_profile_set_tuning(profile, "alpha", "one \"quoted\" \\ value"));
    OK(tandem_profile_set_tuning(profile, "alpha", "second"));
    OK(tandem_profile_set_tuning(profile, "beta", ""));
    OK(tandem_profile_set_note(profile, "missing", "gemm"));
    OK(tandem_profile_set_note(profile, "busy", "yes"));
    OK(tandem_profile_save(profile, NULL, NULL, 0));
    profile = profile_edit(context_new(NULL), "simulated");
    OK(tandem_profile_set_note(profile, "busy", NULL));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    text = file_read(path);
    ck_assert_ptr_nonnull(strstr(text, "\"alpha\": \"second\""));
    ck_assert_ptr_nonnull(strstr(text, "\"beta\": \"\""));
    ck_assert_ptr_nonnull(strstr(text, "\"format\""));
    ck_assert_ptr_nonnull(strstr(text, "\"missing\": \"gemm\""));
    ck_assert_ptr_null(strstr(text, "\"busy\""));
    free(text);
    OK(tandem_profile_save(profile_new(context, "simulated"), NULL, NULL, 0));
    text = file_read(path);
    ck_assert_ptr_null(strstr(text, "\"missing\""));
    free(text);
}

TEST(test_the_file_is_named)
{
    const struct script script = script_free();
    const char *path = "";

    for (int i = 0; i < 3; i++)
        script_save("simulated", &script);
    ck_assert_uint_eq(directory_count(scratch_path("profiles")), 1);
    ck_assert_ptr_nonnull(
        strstr(script_path("simulated"), scratch_path("profiles/simulated-")));
    OK(tandem_device_profile_path(context_new(NULL), 0, &path));
    ck_assert_ptr_null(path);
}

TEST(test_a_directory_of_the_caller)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "simulated");
    const char *directory = scratch_path("elsewhere");
    char path[4096], tiny[4];

    directory_make(directory);
    OK(tandem_profile_add_curve_point(profile, "transcendental", 10, 77));
    OK(tandem_profile_save(profile, directory, path, sizeof path));
    ck_assert_int_eq(access(path, R_OK), 0);
    OK(tandem_profile_save(profile, directory, NULL, 0));
    BAD(tandem_profile_save(profile, directory, tiny, sizeof tiny));
    /* The environment can also set it. */
    setenv("TANDEM_PROFILE_DIR", directory, 1);
    setenv("TANDEM_PLUGIN_PATH", scratch_path("plugins"), 1);
    OK(tandem_context_create(NULL, &context));
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "simulated"), "transcendental", 10),
        77, 1e-9);
    tandem_context_destroy(context);
    directory_remove(scratch_path("elsewhere"));
}

TEST(test_user_cache_directory)
{
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *context;
    struct tandem_profile *profile;
    char path[4096];

    OK(tandem_context_create(&options, &context));
    profile = profile_new(context, "simulated");
    OK(tandem_profile_add_curve_point(profile, "transcendental", 10, 88));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_context_destroy(context);
    ck_assert_ptr_nonnull(strstr(path, scratch_path("cache/tandem")));
    expect_mode(scratch_path("cache/tandem"), 0700);
    expect_mode(path, 0600);
    OK(tandem_context_create(&options, &context));
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "simulated"), "transcendental", 10),
        88, 1e-9);
    tandem_context_destroy(context);
}

/* ---- invalid values for the writer ---- */

TEST(test_invalid_values_are_rejected)
{
    static const double bad[] = {-1, NAN, INFINITY, -INFINITY, 1e300};
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "simulated"), *none;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        BAD(tandem_profile_set_scalar(profile, "launch", bad[i]));
        BAD(tandem_profile_add_curve_point(profile, "transcendental", bad[i],
                                           1));
        BAD(tandem_profile_add_curve_point(profile, "transcendental", 1,
                                           bad[i]));
        BAD(tandem_profile_add_gemm_point(profile, 1, 1, 1, bad[i]));
    }
    BAD(tandem_profile_set_scalar(profile, "transcendental", 1));
    BAD(tandem_profile_set_scalar(profile, NULL, 1));
    BAD(tandem_profile_set_scalar(NULL, "launch", 1));
    BAD(tandem_profile_add_curve_point(profile, "launch", 1, 1));
    BAD(tandem_profile_add_curve_point(profile, NULL, 1, 1));
    BAD(tandem_profile_add_curve_point(NULL, "transcendental", 1, 1));
    BAD(tandem_profile_add_gemm_point(profile, 0, 1, 1, 1));
    BAD(tandem_profile_add_gemm_point(profile, 1, -1, 1, 1));
    BAD(tandem_profile_add_gemm_point(profile, 1, 1, INT64_MAX, 1));
    BAD(tandem_profile_add_gemm_point(NULL, 1, 1, 1, 1));
    BAD(tandem_profile_set_tuning(profile, NULL, "x"));
    BAD(tandem_profile_set_tuning(profile, "x", NULL));
    BAD(tandem_profile_set_tuning(NULL, "x", "x"));
    BAD(tandem_profile_set_note(profile, NULL, "x"));
    BAD(tandem_profile_set_note(profile, "x", "\xff"));
    BAD(tandem_profile_set_note(NULL, "x", "x"));
    BAD(tandem_profile_save(NULL, NULL, NULL, 0));
    BAD(tandem_profile_create(NULL, 0, &none));
    BAD(tandem_profile_create(context, 0, NULL));
    BAD(tandem_profile_create(context, 15, &none));
    ck_assert_ptr_null(none);
    tandem_profile_destroy(profile);
    BAD(tandem_profile_set_scalar(profile, "launch", 1));
    tandem_profile_destroy(NULL);
}

TEST(test_invalid_cost_queries)
{
    struct tandem_context *context = context_new(NULL);
    double ns;

    BAD(tandem_device_predict_cost(context, 0, "no such curve", 1, &ns));
    BAD(tandem_device_predict_cost(context, 0, NULL, 1, &ns));
    BAD(tandem_device_predict_cost(context, 0, "transcendental", 1, NULL));
    BAD(tandem_device_predict_cost(context, 0, "transcendental", -1, &ns));
    BAD(tandem_device_predict_cost(context, 0, "transcendental", NAN, &ns));
    BAD(tandem_device_predict_cost(context, 15, "transcendental", 1, &ns));
    BAD(tandem_device_predict_cost(NULL, 0, "transcendental", 1, &ns));
}

TEST_MAIN(host_tests_run("profile", NULL, NULL))
