/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLBlast parameters from a profile are used; invalid ones are ignored; and
 * those with which CLBlast fails or computes wrong results are dropped with a
 * warning. The results are correct in each case.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "single_fault.h"

#define SIDE 40
#define ELEMENTS (SIDE * SIDE)
#define BYTES (ELEMENTS * sizeof(float))

#define GOOD "\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=100\""

static struct tandem_device *device;
static struct tandem_stream *stream;
static char warning[1024];
static unsigned warnings;

static void note(void *user, enum tandem_log_level level, const char *message)
{
    (void)user;
    if (level > TANDEM_LOG_WARNING)
        return;
    snprintf(warning, sizeof warning, "%s", message);
    warnings++;
}

static void open_with(const char *profile, const char *deterministic)
{
    const char *const keys[] = {"tuning", "deterministic", "test.gemm_kernel"};
    const char *const values[] = {profile, deterministic, "clblast"};
    const struct tandem_open_options options = {.struct_size = sizeof options,
                                                .count = 3,
                                                .keys = keys,
                                                .values = values,
                                                .log = note};
    warning[0] = '\0';
    warnings = 0;
    OK(plug.api->open(0, &options, &device));
    OK(plug.api->stream_create(device, 0, &stream));
}

static void close_device(void)
{
    plug.api->stream_destroy(stream);
    plug.api->close(device);
}

static struct tandem_buffer *buffer_of(const float *values)
{
    struct tandem_buffer *buffer;

    OK(plug.api->alloc(device, TANDEM_BYTES(BYTES), &buffer));
    OK(plug.api->upload(stream, buffer, 0, values, BYTES, 0));
    return buffer;
}

/* Checks the result of a GEMM by CLBlast. */
static void gemm_check(void)
{
    static float a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++) {
        a[i] = (float)(i % 7) - 3;
        b[i] = (float)(i % 5) - 2;
    }
    struct tandem_buffer *x = buffer_of(a), *y = buffer_of(b),
                         *z = buffer_of(c);
    const struct tandem_gemm gemm = {.struct_size = sizeof gemm,
                                     .dtype = TANDEM_F32,
                                     .m = SIDE,
                                     .n = SIDE,
                                     .k = SIDE,
                                     .batch = 1,
                                     .alpha = 1,
                                     .a = {x, 0, SIDE, 0},
                                     .b = {y, 0, SIDE, 0},
                                     .c = {z, 0, SIDE, 0}};
    ck_assert_msg(plug.api->gemm(stream, &gemm) == TANDEM_OK, "%s",
                  plug.api->last_error());
    OK(plug.api->download(stream, z, 0, c, BYTES, 0, TANDEM_TIMEOUT_INFINITE));
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            float want = 0;

            for (int k = 0; k < SIDE; k++)
                want += a[i * SIDE + k] * b[k * SIDE + j];
            ck_assert_float_eq(c[i * SIDE + j], want);
        }
    plug.api->free(x);
    plug.api->free(y);
    plug.api->free(z);
}

START_TEST(invalid_overrides_are_ignored)
{
    static const char *const wrong[] = {
        "{\"clblast.GemmRoutine\": \"\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=-1\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=4097\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=1e2\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=99999999999\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=64 X=1\"}",
        "{\"clblast.GemmRoutine\": \"XGEMM_MIN_INDIRECT_SIZE=64 "
        "XGEMM_MIN_INDIRECT_SIZE=64\"}",
        "{\"clblast.Copy\": \"COPY_DIMX=8 COPY_DIMY=8 COPY_VW=3 "
        "COPY_WPT=1\"}",
        "{\"clblast.Copy\": \"COPY_DIMX=8 COPY_DIMY=8 COPY_VW=4\"}",
        "{\"clblast.Transpose\": \"TRA_DIM=64 TRA_PAD=1 TRA_SHUFFLE=0 "
        "TRA_WPT=16\"}",
        "{\"clblast.Copy\": \"-cl-fast-relaxed-math\"}",
        "[]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        open_with(wrong[i], "0");
        ck_assert_msg(warnings == 1 && strstr(warning, "ignored") != NULL,
                      "%s: %u, %s", wrong[i], warnings, warning);
        close_device();
    }
    open_with(wrong[0], "0");
    gemm_check();
    close_device();
}
END_TEST

START_TEST(others_are_let_be)
{
    /* Xgemv is a CLBlast kernel that no operator uses. */
    open_with("{\"clblast.Later\": \"X=1\", \"else\": \"y\", "
              "\"clblast.Xgemv\": \"WGS1=64 WPT1=1\"}",
              "0");
    gemm_check();
    ck_assert_uint_eq(warnings, 0);
    close_device();
    open_with("[]", "1");
    ck_assert_uint_eq(warnings, 0);
    close_device();
}
END_TEST

/*
 * The build for this check succeeds, so CLBlast was built with the parameters.
 */
START_TEST(valid_overrides_are_used)
{
    uint64_t before = plug_counts(&plug).builds;

    open_with("{" GOOD "}", "1");
    gemm_check();
    uint64_t own = plug_counts(&plug).builds;
    close_device();
    open_with("{" GOOD "}", "0");
    gemm_check();
    gemm_check();
    ck_assert_msg(warnings == 0, "%s", warning);
    ck_assert_uint_gt(plug_counts(&plug).builds, own);
    close_device();
    ck_assert_uint_ge(own, before);
}
END_TEST

/*
 * Checks that the parameters are dropped with a warning that contains text.
 * The script injects its fault once.
 */
static void expect_dropped(const struct layer_script *once, const char *text)
{
    open_with("{" GOOD "}", "0");
    plug.script_set(once);
    gemm_check();
    plug.script_set(NULL);
    ck_assert_msg(warnings == 1 &&
                      strstr(warning, "self-test failed") != NULL &&
                      strstr(warning, text) != NULL,
                  "%u: %s", warnings, warning);
    gemm_check();
    ck_assert_uint_eq(warnings, 1);
    close_device();
    /* The parameters are not used again. */
    open_with("{" GOOD "}", "0");
    gemm_check();
    ck_assert_uint_eq(warnings, 0);
    close_device();
}

START_TEST(failing_overrides_are_dropped)
{
    const struct layer_script once = {.fault = LAYER_FAULT_CALL,
                                      .function = "clEnqueueNDRangeKernel",
                                      .text = "Xgemm",
                                      .nth = 1,
                                      .times = 1,
                                      .code = -54};

    expect_dropped(&once, "CL_INVALID_WORK_GROUP_SIZE");
}
END_TEST

START_TEST(wrong_overrides_are_dropped)
{
    const struct layer_script once = {.fault = LAYER_FAULT_WRONG,
                                      .function = "clEnqueueNDRangeKernel",
                                      .text = "Xgemm",
                                      .nth = 1,
                                      .times = 1};

    expect_dropped(&once, "is wrong at element");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("parameters");
    int status = 0;

    /*
     * The process does not use dropped parameters again, so a child process
     * tests parameters that compute wrong results. OpenCL was not used yet.
     */
    const pid_t other = fork();
    if (other < 0)
        return 99;
    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    if (!plug_start(&plug))
        return 77;
    tcase_set_timeout(tests, 120);
    if (other == 0) {
        tcase_add_test(tests, wrong_overrides_are_dropped);
    } else {
        tcase_add_test(tests, invalid_overrides_are_ignored);
        tcase_add_test(tests, others_are_let_be);
        tcase_add_test(tests, valid_overrides_are_used);
        tcase_add_test(tests, failing_overrides_are_dropped);
    }
    Suite *suite = suite_create("parameters");
    suite_add_tcase(suite, tests);
    const int own = runner_run(suite, CK_NOFORK);
    if (other != 0 && (waitpid(other, &status, 0) != other || status != 0))
        return EXIT_FAILURE;
    return own;
}
