/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in files and messages while the locale of the process or of a thread
 * has a comma or a multi-byte decimal separator. The test compiles the
 * locales, so they need not be installed.
 */
#include <config.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/host/support.h"

/* A comma, and U+066B with two bytes. */
static const char *const names[] = {"de_DE", "ps_AF"};
static char locales[256];

/* ---- compiling locales ---- */

static bool localedef_run(const char *name)
{
    char path[512];
    int status = 0;
    pid_t child = fork();

    snprintf(path, sizeof path, "%s/%s.UTF-8", locales, name);
    if (child == 0) {
        execlp("localedef", "localedef", "-i", name, "-f", "UTF-8", path,
               (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool locales_make(void)
{
    const char *root = getenv("TMPDIR");

    snprintf(locales, sizeof locales, "%s/tandem-locales-XXXXXX",
             root ? root : "/tmp");
    if (!mkdtemp(locales))
        return false;
    setenv("LOCPATH", locales, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!localedef_run(names[i]))
            return false;
    }
    return true;
}

static locale_t locale_of(int index)
{
    char name[64];
    locale_t locale;

    snprintf(name, sizeof name, "%s.UTF-8", names[index]);
    locale = newlocale(LC_ALL_MASK, name, (locale_t)0);
    ck_assert_msg(locale != (locale_t)0, "no locale %s", name);
    return locale;
}

static void process_set(int index)
{
    char name[64];

    snprintf(name, sizeof name, "%s.UTF-8", names[index]);
    ck_assert_ptr_nonnull(setlocale(LC_ALL, name));
}

/* Ensures that the locale does not use a decimal point. */
static void no_point(void)
{
    char text[16];

    snprintf(text, sizeof text, "%.1f", 0.5);
    ck_assert_str_ne(text, "0.5");
}

/* ---- a profile, written and read ---- */

static void profile_save(char *out_path, size_t bytes)
{
    struct tandem_context *context = context_new(NULL);
    struct tandem_profile *profile;

    profile = profile_new(context, "cpu");
    OK(tandem_profile_set_scalar(profile, "launch", 12345.625));
    OK(tandem_profile_add_curve_point(profile, "transcendental", 4096,
                                      777.125));
    OK(tandem_profile_add_curve_point(profile, "transcendental", 8192.5, 1e-3));
    OK(tandem_profile_add_gemm_point(profile, 64, 64, 64, 0.1));
    OK(tandem_profile_save(profile, NULL, out_path, bytes));
    tandem_profile_destroy(profile);
    tandem_context_destroy(context);
}

static void profile_check(void)
{
    struct tandem_context *context = context_new(NULL);
    uint32_t calibrated = 0;
    double ns = 0;

    OK(tandem_device_is_calibrated(context, 0, &calibrated));
    ck_assert_uint_eq(calibrated, 1);
    OK(tandem_device_predict_cost(context, 0, "transcendental", 4096, &ns));
    ck_assert_msg(ns >= 777.125, "%g ns", ns);
    /* The log has no warning about the profile, but may have others. */
    expect_warnings(log_count(TANDEM_LOG_WARNING, "not calibrated: "), NULL);
    tandem_context_destroy(context);
}

/* The profile file must be the same under the locale as without it. */
static void profile_round(const char *plain)
{
    char path[4096], *text;

    no_point();
    profile_save(path, sizeof path);
    profile_check();
    no_point();
    text = file_read(path);
    ck_assert_ptr_nonnull(strstr(text, "12345.625"));
    ck_assert_ptr_nonnull(strstr(text, "777.125"));
    /* The part after the time of writing. */
    ck_assert_str_eq(strstr(text, "\"scalars\""), strstr(plain, "\"scalars\""));
    free(text);
}

LOOP_TEST(profile_of_the_process, CASES_IN(names))
{
    char path[4096], *plain;

    profile_save(path, sizeof path);
    plain = file_read(path);
    process_set(_i);
    profile_round(plain);
    ck_assert_ptr_nonnull(strstr(setlocale(LC_ALL, NULL), names[_i]));
    free(plain);
}

LOOP_TEST(profile_of_the_thread, CASES_IN(names))
{
    char path[4096], *plain;
    locale_t own = locale_of(_i);

    profile_save(path, sizeof path);
    plain = file_read(path);
    uselocale(own);
    profile_round(plain);
    ck_assert(uselocale((locale_t)0) == own);
    uselocale(LC_GLOBAL_LOCALE);
    freelocale(own);
    free(plain);
}

/* ---- messages ---- */

LOOP_TEST(messages_have_points, CASES_IN(names))
{
    const struct tandem_context_options options = {
        .log_level = TANDEM_LOG_DEBUG};
    struct tandem_context *context;
    struct tandem_profile *profile;
    double ns = 0;

    process_set(_i);
    no_point();
    context = context_new(&options);
    profile = profile_new(context, "cpu");
    BAD(tandem_profile_set_scalar(profile, "launch", -0.5));
    expect_last_error("-0.5");
    BAD(tandem_device_predict_cost(context, 0, "transcendental", -1.25, &ns));
    expect_last_error("-1.25");
    tandem_profile_destroy(profile);
}

/* ---- an OpenCL GEMM, whose sources contain numbers ---- */

TEST(opencl_compiles)
{
    static float a[64 * 64], c[64 * 64];
    struct tandem_matmul_options how = {.struct_size = sizeof how,
                                        .alpha = 0.5};
    struct tandem_context_options options = {.struct_size = sizeof options};
    struct tandem_context *context = NULL;
    struct tandem_tensor *x, *y;
    const int64_t shape[2] = {64, 64};

    if (access(build_path("tandem-opencl.so"), R_OK) != 0)
        return;
    process_set(0);
    no_point();
    for (int i = 0; i < 64 * 64; i++)
        a[i] = i % 65 == 0 ? 3.0f : 0.0f;
    options.plugin_path = scratch_path("opencl");
    directory_make(options.plugin_path);
    file_copy(scratch_path("opencl/tandem-opencl.so"),
              build_path("tandem-opencl.so"));
    OK(tandem_context_create(&options, &context));
    if (tandem_device_find(context, "opencl", &how.device) == TANDEM_OK) {
        OK(tandem_tensor_wrap(context, a, TANDEM_F32, 2, shape, NULL, 0, &x));
        OK(tandem_tensor_wrap(context, c, TANDEM_F32, 2, shape, NULL, 0, &y));
        OK(tandem_matmul(context, &how, x, x, y));
        OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
        for (int i = 0; i < 64 * 64; i++)
            ck_assert(c[i] == (i % 65 == 0 ? 4.5f : 0.0f));
        OK(tandem_unary(context, TANDEM_OP_TANH, x, y));
        OK(tandem_tensor_sync(y, TANDEM_TIMEOUT_INFINITE));
    }
    no_point();
    tandem_context_destroy(context);
}

int main(void)
{
    int result = 77;

    if (locales_make())
        result = host_tests_run("locale", NULL, NULL);
    else
        fprintf(stderr, "skipped: localedef cannot make %s\n", names[0]);
    directory_remove(locales);
    return result;
}
