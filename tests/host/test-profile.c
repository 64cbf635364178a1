/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: what is saved is what the next context predicts with, and a file
 * that is missing, cut, wrong or hostile gives a warning and the defaults.
 */
#include <config.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static double cost(struct tandem_context *context, uint32_t device,
                   const char *curve, double x)
{
    double ns = -1;

    OK(tandem_device_cost(context, device, curve, x, &ns));
    return ns;
}

static uint32_t calibrated(struct tandem_context *context, uint32_t device)
{
    uint32_t value = 9;

    OK(tandem_device_calibrated(context, device, &value));
    return value;
}

static struct tandem_profile *profile_new(struct tandem_context *context,
                                          const char *device)
{
    struct tandem_profile *profile = NULL;

    OK(tandem_profile_create(context, device_named(context, device), &profile));
    return profile;
}

/* ---- round trip ---- */

START_TEST(test_round_trip)
{
    static const char *const curves[] = {
        "upload",  "download", "upload_pinned", "download_pinned",
        "elementwise", "exp",  "heavy",         "reduce",
        "softmax", "strided",  "gather",        "optimizer"};
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, _i ? "sim" : "cpu");
    char path[4096] = "";
    uint32_t device;

    for (int i = 0; i < 12; i++) {
        OK(tandem_profile_point(profile, curves[i], 4000, 900 + i));
        OK(tandem_profile_point(profile, curves[i], 1000, 300 + i));
        OK(tandem_profile_point(profile, curves[i], 2000, 1));
        OK(tandem_profile_point(profile, curves[i], 2000, 500 + i));
    }
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    ck_assert_msg(strncmp(path, scratch_path("profiles"),
                          strlen(scratch_path("profiles"))) == 0,
                  "saved to %s", path);

    context = context_new(NULL);
    device = device_named(context, _i ? "sim" : "cpu");
    ck_assert_uint_eq(calibrated(context, device), 1);
    ck_assert_uint_eq(calibrated(context,
                                 device_named(context, _i ? "cpu" : "sim")),
                      0);
    for (int i = 0; i < 12; i++) {
        ck_assert_double_eq_tol(cost(context, device, curves[i], 1000),
                                300 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 1500),
                                400 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 2000),
                                500 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 3000),
                                700 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 4000),
                                900 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 6000),
                                1300 + i, 1e-9);
        ck_assert_double_eq_tol(cost(context, device, curves[i], 10), 300 + i,
                                1e-9);
    }
    ck_assert_uint_eq(log_count(TANDEM_LOG_WARNING, "rofile"), 0);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_scalars_and_products_round_trip)
{
    struct script script = script_free(), none = script_free();
    struct tandem_explanation explanation = {.struct_size =
                                                 sizeof explanation};
    struct tandem_context *context;
    struct tandem_tensor *a, *b, *c;
    static float data[16 * 16];

    script.launch = 700;
    script.gemm_base = 2;
    script_save("sim", &script);
    none.gemm_base = 100;
    script_save("cpu", &none);
    context = context_new(NULL);
    a = matrix_wrap(context, data, 16, 16);
    b = matrix_new(context, 16, 16);
    c = matrix_new(context, 16, 16);
    OK(tandem_tensor_write(b, data, sizeof data));
    OK(tandem_explain_matmul(context, NULL, a, b, c, &explanation));
    for (uint32_t i = 0; i < explanation.candidate_count; i++) {
        const struct tandem_candidate *candidate = &explanation.candidates[i];
        const double base = candidate->device == 0 ? 100 : 2;

        ck_assert_double_eq_tol(candidate->run_ns + candidate->launch_ns,
                                base * 4096, base);
    }
    ck_assert_uint_eq(explanation.chosen, device_named(context, "sim"));
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_tuning_is_kept)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "sim");
    char path[4096];
    char *text;

    OK(tandem_profile_tuning(profile, "alpha", "one \"quoted\" \\ value"));
    OK(tandem_profile_tuning(profile, "alpha", "second"));
    OK(tandem_profile_tuning(profile, "beta", ""));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    text = file_read(path);
    ck_assert_ptr_nonnull(strstr(text, "\"alpha\""));
    ck_assert_ptr_nonnull(strstr(text, "second"));
    ck_assert_ptr_nonnull(strstr(text, "\"format\""));
    ck_assert_ptr_null(strstr(text, "quoted"));
    free(text);
}
END_TEST

static uint32_t files_in(const char *path)
{
    DIR *directory = opendir(path);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(directory);
    return count;
}

START_TEST(test_the_file_is_named)
{
    const char *saved = script_path("sim"), *path = "";
    struct tandem_context *context = context_new(NULL);

    OK(tandem_device_profile(context, device_named(context, "sim"), &path));
    ck_assert_ptr_nonnull(path);
    ck_assert_str_eq(path, saved);
    OK(tandem_device_profile(context, 0, &path));
    ck_assert_ptr_null(path);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_saving_leaves_one_file)
{
    for (int i = 0; i < 3; i++) {
        struct script script = script_free();

        script_all(&script, i, 0);
        script_save("sim", &script);
    }
    ck_assert_uint_eq(files_in(scratch_path("profiles")), 1);
}
END_TEST

START_TEST(test_a_directory_of_the_caller)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "sim");
    char path[4096], tiny[4];

    directory_make(scratch_path("elsewhere"));
    OK(tandem_profile_point(profile, "exp", 10, 77));
    OK(tandem_profile_save(profile, scratch_path("elsewhere"), path,
                           sizeof path));
    ck_assert_int_eq(access(path, R_OK), 0);
    OK(tandem_profile_save(profile, scratch_path("elsewhere"), NULL, 0));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_profile_save(profile, scratch_path("elsewhere"), tiny,
                              sizeof tiny));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    /* By the environment, too. */
    setenv("TANDEM_PROFILE", scratch_path("elsewhere"), 1);
    {
        struct tandem_context_options options = {
            .struct_size = sizeof options,
            .plugin_path = scratch_path("plugins")};

        OK(tandem_context_create(&options, &context));
    }
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "sim"), "exp", 10), 77, 1e-9);
    tandem_context_destroy(context);
    directory_remove(scratch_path("elsewhere"));
}
END_TEST

START_TEST(test_the_users_cache)
{
    struct tandem_context_options options = {
        .struct_size = sizeof options, .plugin_path = scratch_path("plugins")};
    struct tandem_context *context;
    struct tandem_profile *profile;
    char path[4096];
    struct stat status;

    OK(tandem_context_create(&options, &context));
    profile = profile_new(context, "sim");
    OK(tandem_profile_point(profile, "exp", 10, 88));
    OK(tandem_profile_save(profile, NULL, path, sizeof path));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
    ck_assert_ptr_nonnull(strstr(path, scratch_path("cache/tandem")));
    ck_assert_int_eq(stat(scratch_path("cache/tandem"), &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0700);
    OK(tandem_context_create(&options, &context));
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "sim"), "exp", 10), 88, 1e-9);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_saving_where_nothing_can_be_written)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "sim");
    char path[4096] = "x";

    OK(tandem_profile_point(profile, "exp", 10, 77));
    file_write(scratch_path("file"), "not a directory");
    ck_assert_int_ne(tandem_profile_save(profile, scratch_path("file/below"),
                                         path, sizeof path),
                     TANDEM_OK);
    ck_assert_str_ne(tandem_last_error(), "");
    ck_assert_int_ne(tandem_profile_save(profile, "/proc/nothing", path,
                                         sizeof path),
                     TANDEM_OK);
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
}
END_TEST

/* ---- bad values for the writer ---- */

START_TEST(test_bad_values_are_refused)
{
    static const double bad[] = {-1, NAN, INFINITY, -INFINITY, 1e300};
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile = profile_new(context, "sim"), *none;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_profile_scalar(profile, "launch", bad[i]));
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_profile_point(profile, "exp", bad[i], 1));
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_profile_point(profile, "exp", 1, bad[i]));
        FAILS(TANDEM_INVALID_ARGUMENT,
              tandem_profile_gemm(profile, 1, 1, 1, bad[i]));
    }
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_scalar(profile, "exp", 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_scalar(profile, NULL, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_scalar(NULL, "launch", 1));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_profile_point(profile, "launch", 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_point(profile, NULL, 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_point(NULL, "exp", 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_gemm(profile, 0, 1, 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_gemm(profile, 1, -1, 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_profile_gemm(profile, 1, 1, INT64_MAX, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_gemm(NULL, 1, 1, 1, 1));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_tuning(profile, NULL, "x"));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_tuning(profile, "x", NULL));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_tuning(NULL, "x", "x"));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_save(NULL, NULL, NULL, 0));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_create(NULL, 0, &none));
    FAILS(TANDEM_INVALID_ARGUMENT, tandem_profile_create(context, 0, NULL));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_profile_create(context, 15, &none));
    ck_assert_ptr_null(none);
    tandem_profile_destroy(profile);
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_profile_scalar(profile, "launch", 1));
    tandem_profile_destroy(NULL);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_bad_questions_for_costs)
{
    struct tandem_context *context = context_new(NULL);
    double ns;

    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 0, "no such curve", 1, &ns));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 0, NULL, 1, &ns));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 0, "exp", 1, NULL));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 0, "exp", -1, &ns));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 0, "exp", NAN, &ns));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(context, 15, "exp", 1, &ns));
    FAILS(TANDEM_INVALID_ARGUMENT,
          tandem_device_cost(NULL, 0, "exp", 1, &ns));
    tandem_context_destroy(context);
}
END_TEST

/* ---- bad files ---- */

static const char *const wrong_files[] = {
    "",
    "{",
    "not JSON at all",
    "[]",
    "null",
    "3",
    "{}",
    "\xff\xfe{\"format\": 1}",
    "{\"format\": 2}",
    "{\"format\": \"1\"}",
    "{\"format\": 1, \"curves\": 5}",
    "{\"format\": 1} trailing",
    "{\"format\": 1, \"device\": []}",
};

/* Parts that are wrong inside a file that is right. */
static const char *const wrong_parts[] = {
    "\"curves\": {\"exp\": [[1, -5], [2, -6]]}",
    "\"curves\": {\"exp\": [[-1, 5], [2, 6]]}",
    "\"curves\": {\"exp\": [[1e999, 5]]}",
    "\"curves\": {\"exp\": [[1, 1e200], [2, 1e201]]}",
    "\"curves\": {\"exp\": [[1]]}",
    "\"curves\": {\"exp\": [[1, 2, 3]]}",
    "\"curves\": {\"exp\": [1, 2]}",
    "\"curves\": {\"exp\": {\"1\": 2}}",
    "\"curves\": {\"exp\": [[\"1\", \"2\"]]}",
    "\"curves\": {\"exp\": \"fast\"}",
    "\"curves\": []",
    "\"scalars\": {\"launch\": -1}",
    "\"scalars\": {\"launch\": \"soon\"}",
    "\"scalars\": {\"launch\": 1e300}",
    "\"scalars\": [1]",
    "\"gemm\": [[1, 1, 1, -1]]",
    "\"gemm\": [[0, 1, 1, 1]]",
    "\"gemm\": [[1, 1, 1]]",
    "\"gemm\": {\"m\": 1}",
    "\"gemm\": [[9e18, 9e18, 9e18, 1]]",
};

/* The predictions of both devices are the defaults, and all works. */
static void defaults_hold(double sim_exp, double sim_launch_curve)
{
    struct tandem_context *context = context_new(NULL);
    const uint32_t sim = device_named(context, "sim");
    float x = -2, y = 0;
    struct tandem_tensor *tx = vector_wrap(context, &x, 1);
    struct tandem_tensor *ty = vector_wrap(context, &y, 1);

    ck_assert_double_eq_tol(cost(context, sim, "exp", 1e6), sim_exp, 1e-9);
    ck_assert_double_eq_tol(cost(context, sim, "upload", 1e6),
                            sim_launch_curve, 1e-9);
    OK(tandem_unary(context, TANDEM_OP_ABS, tx, ty));
    OK(tandem_tensor_sync(ty, TANDEM_FOREVER));
    ck_assert_float_eq(y, 2);
    ck_assert_uint_ge(log_count(TANDEM_LOG_WARNING, NULL), 1);
    tandem_context_destroy(context);
}

static void defaults_read(double *out_exp, double *out_upload)
{
    struct tandem_context *context = context_new(NULL);
    const uint32_t sim = device_named(context, "sim");

    *out_exp = cost(context, sim, "exp", 1e6);
    *out_upload = cost(context, sim, "upload", 1e6);
    tandem_context_destroy(context);
}

START_TEST(test_wrong_files)
{
    double exp_ns, upload_ns;

    defaults_read(&exp_ns, &upload_ns);
    file_write(script_path("sim"), wrong_files[_i]);
    defaults_hold(exp_ns, upload_ns);
}
END_TEST

START_TEST(test_cut_files)
{
    double exp_ns, upload_ns;
    const char *path;
    char *text;
    size_t bytes;

    defaults_read(&exp_ns, &upload_ns);
    path = script_path("sim");
    text = file_read(path);
    bytes = strlen(text);
    for (size_t i = 1; i < 8; i++) {
        char *part = strndup(text, bytes * i / 8);

        file_write(path, part);
        defaults_hold(exp_ns, upload_ns);
        free(part);
    }
    free(text);
}
END_TEST

/* A file with this device's identity and one section replaced. */
static void part_write(const char *path, const char *replacement)
{
    char *text = file_read(path), *device, *end, *out;
    const size_t room = strlen(text) + strlen(replacement) + 256;

    device = strstr(text, "\"device\"");
    ck_assert_ptr_nonnull(device);
    end = strchr(device, '}');
    ck_assert_ptr_nonnull(end);
    out = malloc(room);
    ck_assert_ptr_nonnull(out);
    snprintf(out, room, "{\"format\": 1, %.*s, %s}", (int)(end + 1 - device),
             device, replacement);
    file_write(path, out);
    free(out);
    free(text);
}

START_TEST(test_wrong_parts)
{
    double exp_ns, upload_ns;

    defaults_read(&exp_ns, &upload_ns);
    part_write(script_path("sim"), wrong_parts[_i]);
    defaults_hold(exp_ns, upload_ns);
}
END_TEST

/* The method of the tests above: a right part is taken. */
START_TEST(test_a_right_part_is_taken)
{
    struct tandem_context *context;

    part_write(script_path("sim"), "\"curves\": {\"exp\": [[1, 4], [3, 8]]}");
    context = context_new(NULL);
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "sim"), "exp", 2), 6, 1e-9);
    ck_assert_uint_eq(calibrated(context, device_named(context, "sim")), 1);
    tandem_context_destroy(context);
}
END_TEST

START_TEST(test_hostile_files)
{
    const size_t bytes = 2000000;
    char *text = malloc(bytes + 1);
    double exp_ns, upload_ns;
    const char *path;

    ck_assert_ptr_nonnull(text);
    defaults_read(&exp_ns, &upload_ns);
    path = script_path("sim");
    memset(text, '[', bytes);
    text[bytes] = '\0';
    file_write(path, text);
    defaults_hold(exp_ns, upload_ns);
    memset(text, ' ', bytes);
    file_write(path, text);
    ck_assert_int_eq(truncate(path, 1 << 30), 0); /* sparse */
    defaults_hold(exp_ns, upload_ns);
    free(text);
}
END_TEST

START_TEST(test_more_points_than_there_is_room)
{
    const size_t room = 1 << 20;
    char *text = malloc(room);
    double exp_ns, upload_ns;
    size_t used;

    ck_assert_ptr_nonnull(text);
    defaults_read(&exp_ns, &upload_ns);
    used = (size_t)snprintf(text, room, "\"curves\": {\"exp\": [");
    for (int i = 0; i < 20000; i++)
        used += (size_t)snprintf(text + used, room - used, "%s[%d, 5]",
                                 i ? "," : "", i + 1);
    snprintf(text + used, room - used, "]}");
    part_write(script_path("sim"), text);
    defaults_hold(exp_ns, upload_ns);
    free(text);
}
END_TEST

START_TEST(test_files_that_are_not_ours)
{
    double exp_ns, upload_ns;
    struct script script = script_free();
    const char *path;

    defaults_read(&exp_ns, &upload_ns);
    script_all(&script, 5, 0);
    path = script_path("sim");
    script_save("sim", &script);
    ck_assert_int_eq(chmod(path, 0666), 0);
    defaults_hold(exp_ns, upload_ns);
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(rename(path, scratch_path("moved")), 0);
    ck_assert_int_eq(symlink(scratch_path("moved"), path), 0);
    defaults_hold(exp_ns, upload_ns);
    ck_assert_int_eq(unlink(path), 0);
    directory_make(path);
    defaults_hold(exp_ns, upload_ns);
}
END_TEST

/* Measured with another driver: stale. */
START_TEST(test_a_stale_file)
{
    double exp_ns, upload_ns;
    struct script script = script_free();
    struct tandem_context *context;
    const char *path;
    char *text, *driver;

    defaults_read(&exp_ns, &upload_ns);
    script_all(&script, 5, 0);
    path = script_path("sim");
    script_save("sim", &script);
    text = file_read(path);
    driver = strstr(text, "\"driver\"");
    ck_assert_ptr_nonnull(driver);
    driver = strchr(strchr(driver, ':'), '"');
    driver[1] = '9';
    file_write(path, text);
    free(text);
    context = context_new(NULL);
    ck_assert_double_eq_tol(
        cost(context, device_named(context, "sim"), "exp", 1e6), exp_ns, 1e-9);
    ck_assert_uint_eq(calibrated(context, device_named(context, "sim")), 0);
    tandem_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tests = case_new(suite, "profile");

    tcase_add_loop_test(tests, test_round_trip, 0, 2);
    tcase_add_test(tests, test_scalars_and_products_round_trip);
    tcase_add_test(tests, test_tuning_is_kept);
    tcase_add_test(tests, test_the_file_is_named);
    tcase_add_test(tests, test_saving_leaves_one_file);
    tcase_add_test(tests, test_a_directory_of_the_caller);
    tcase_add_test(tests, test_the_users_cache);
    tcase_add_test(tests, test_saving_where_nothing_can_be_written);
    tcase_add_test(tests, test_bad_values_are_refused);
    tcase_add_test(tests, test_bad_questions_for_costs);
    tcase_add_loop_test(tests, test_wrong_files, 0,
                        (int)(sizeof wrong_files / sizeof *wrong_files));
    tcase_add_test(tests, test_cut_files);
    tcase_add_loop_test(tests, test_wrong_parts, 0,
                        (int)(sizeof wrong_parts / sizeof *wrong_parts));
    tcase_add_test(tests, test_a_right_part_is_taken);
    tcase_add_test(tests, test_hostile_files);
    tcase_add_test(tests, test_more_points_than_there_is_room);
    tcase_add_test(tests, test_files_that_are_not_ours);
    tcase_add_test(tests, test_a_stale_file);
    return suite_run(suite);
}
