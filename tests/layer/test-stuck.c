/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin while a build, or work, does not end: nobody waits for it
 * for ever, and what does not need it goes on; and what the plugin says of
 * work that fails after its launch returned.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plug.h"
#include "workload.h"

#define N 256
#define SHORT_MS "2000"
#define NO_CACHE "cache_dir", ""

static struct plug plug;
static struct workload work;
static struct layer_counts before;

static const char *const pairs[] = {NO_CACHE, "stuck_after_ms", SHORT_MS,
                                    NULL};

static void device_new(void)
{
    memset(&work, 0, sizeof work);
    work.api = plug.api;
    before = plug_counts(&plug);
    ck_assert_msg(workload_open(&work, pairs), "%s", work.failed);
    ck_assert_int_eq(
        plug.api->stream_create(work.device, 0, &work.stream), TANDEM_OK);
}

static void none_left(void)
{
    const struct layer_counts after = plug_counts(&plug);

    for (int i = 0; i < LAYER_OBJECTS; i++)
        ck_assert_msg(plug_alive(&after, i) == plug_alive(&before, i),
                      "%" PRIu64 " %s left",
                      plug_alive(&after, i) - plug_alive(&before, i),
                      plug_objects[i]);
}

static void script(enum layer_fault fault, const char *function,
                   const char *text, int code)
{
    const struct layer_script wanted = {.fault = fault,
                                        .function = function,
                                        .text = text,
                                        .nth = 1,
                                        .times = UINT64_MAX,
                                        .code = code,
                                        .build_log = "line 1 is wrong\nmore"};

    plug.script_set(&wanted);
}

static struct tandem_buffer *ramp_new(void)
{
    float values[N];
    struct tandem_buffer *buffer;

    ramp(values, N, 1.0f, 1.0f);
    ck_assert(buffer_new(&work, sizeof values, &buffer));
    ck_assert(upload(&work, buffer, values, sizeof values));
    return buffer;
}

static enum tandem_status unary(uint32_t id, struct tandem_buffer *buffer)
{
    const struct tandem_tensor_desc tensor = vector(buffer, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return plug.api->launch(work.stream, &op, &operand, 1, &operand, 1);
}

static enum tandem_status ask(uint32_t id,
                              __typeof__(((struct tandem_backend *)0)->ready)
                                  entry)
{
    const struct tandem_tensor_desc tensor = vector(NULL, N);
    const struct tandem_tensor_desc *operand = &tensor;
    const struct tandem_op op = {.struct_size = sizeof op, .id = id};

    return entry(work.device, &op, &operand, 1, &operand, 1);
}

static enum tandem_status ready_until(uint32_t id)
{
    const struct timespec pause = {0, 5000000};
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < 12000 && status == TANDEM_NOT_READY; i++) {
        status = ask(id, plug.api->ready);
        nanosleep(&pause, NULL);
    }
    return status;
}

static void said(const char *text)
{
    ck_assert_msg(strstr(plug.api->last_error(), text) != NULL, "\"%s\"",
                  plug.api->last_error());
}

/* What never ends was released, so that the process can end. */
static void released_and_gone(void)
{
    const struct timespec pause = {0, 5000000};

    plug.release();
    for (int i = 0; i < 12000; i++) {
        const struct layer_counts now = plug_counts(&plug);

        if (plug_alive(&now, LAYER_CONTEXT) ==
            plug_alive(&before, LAYER_CONTEXT))
            break;
        nanosleep(&pause, NULL);
    }
    none_left();
}

/* In the background, in a launch, and behind it. */
START_TEST(a_build_that_never_ends)
{
    struct tandem_buffer *buffer;

    device_new();
    buffer = ramp_new();
    script(LAYER_FAULT_HANG, "clBuildProgram", "-DOP=op_erf ", 0);
    ck_assert_int_eq(ask(TANDEM_OP_ERF, plug.api->prepare), TANDEM_OK);
    ck_assert_int_eq(ask(TANDEM_OP_ABS, plug.api->prepare), TANDEM_OK);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    ck_assert_int_eq(ready_until(TANDEM_OP_ABS), TANDEM_OK);
    ck_assert_int_eq(ready_until(TANDEM_OP_ERF), TANDEM_FAILED);
    said("may never end");
    ck_assert_int_eq(unary(TANDEM_OP_ERF, buffer), TANDEM_FAILED);
    said("stuck_after_ms");
    ck_assert_int_eq(unary(TANDEM_OP_ABS, buffer), TANDEM_OK);
    plug.release();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    for (int i = 0; i < 12000 && ask(TANDEM_OP_ERF, plug.api->ready); i++)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    ck_assert_int_eq(unary(TANDEM_OP_ERF, buffer), TANDEM_OK);
    workload_close(&work);
    none_left();
}
END_TEST

START_TEST(close_leaves_a_build_that_never_ends)
{
    struct tandem_buffer *buffer;

    device_new();
    buffer = ramp_new();
    script(LAYER_FAULT_HANG, "clBuildProgram", "-DOP=op_erf ", 0);
    ck_assert_int_eq(unary(TANDEM_OP_ERF, buffer), TANDEM_FAILED);
    ck_assert_uint_eq(plug.hanging(), 1);
    workload_close(&work);
    released_and_gone();
}
END_TEST

START_TEST(a_build_that_fails_says_why)
{
    struct tandem_buffer *buffer;

    device_new();
    buffer = ramp_new();
    script(LAYER_FAULT_CALL, "clBuildProgram", "-DOP=op_erf ",
           -11 /* CL_BUILD_PROGRAM_FAILURE */);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(unary(TANDEM_OP_ERF, buffer), TANDEM_FAILED);
        said("line 1 is wrong");
    }
    ck_assert_uint_eq(plug_counts(&plug).faults, 9);
    ck_assert_int_eq(ask(TANDEM_OP_ERF, plug.api->ready), TANDEM_FAILED);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    plug.script_set(NULL);
    workload_close(&work);
    none_left();
}
END_TEST

START_TEST(work_that_does_not_end)
{
    struct tandem_buffer *buffer;

    device_new();
    buffer = ramp_new();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    script(LAYER_FAULT_ENDLESS, "clEnqueueNDRangeKernel", NULL, 0);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, 20000000u),
                     TANDEM_NOT_READY);
    ck_assert_int_eq(plug.api->stream_query(work.stream), TANDEM_NOT_READY);
    plug.release();
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, TANDEM_FOREVER),
                     TANDEM_OK);
    workload_close(&work);
    none_left();
}
END_TEST

/* The last: what is left alone stays so. */
START_TEST(close_leaves_work_that_does_not_end)
{
    struct tandem_buffer *buffer;

    device_new();
    buffer = ramp_new();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    script(LAYER_FAULT_ENDLESS, "clEnqueueNDRangeKernel", NULL, 0);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    workload_close(&work);
    plug.release();
    ck_assert_int_eq(plug.api->alloc(work.device, 64, &buffer),
                     TANDEM_INVALID_ARGUMENT);
    device_new();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, ramp_new()), TANDEM_OK);
    workload_close(&work);
}
END_TEST

/* ---- work that fails after its launch returned ---- */

static void fail_late(struct tandem_buffer *buffer)
{
    struct layer_script late = {.fault = LAYER_FAULT_LATER,
                                .function = "clEnqueueNDRangeKernel",
                                .nth = 1,
                                .times = 1,
                                .code = -36 /* CL_INVALID_COMMAND_QUEUE */};

    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, TANDEM_FOREVER),
                     TANDEM_OK);
    plug.script_set(&late);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, buffer), TANDEM_OK);
}

START_TEST(late_failures_stay_until_they_are_told)
{
    struct tandem_buffer *a, *b, *c;
    float values[N];

    device_new();
    a = ramp_new();
    b = ramp_new();
    c = ramp_new();
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, TANDEM_FOREVER),
                     TANDEM_OK);
    fail_late(b);
    ck_assert_int_eq(ready_until(TANDEM_OP_NEG), TANDEM_OK);
    ck_assert_int_eq(plug.api->download(work.stream, b, 0, values,
                                        sizeof values, 0, TANDEM_FOREVER),
                     TANDEM_FAILED);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, a), TANDEM_FAILED);
    ck_assert_int_eq(plug.api->stream_query(work.stream), TANDEM_FAILED);
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, TANDEM_FOREVER),
                     TANDEM_FAILED);
    ck_assert_int_eq(plug.api->stream_synchronize(work.stream, TANDEM_FOREVER),
                     TANDEM_OK);
    /* What was to be written is poisoned, until all of it is overwritten. */
    ck_assert_int_eq(unary(TANDEM_OP_NEG, b), TANDEM_FAILED);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, c), TANDEM_OK);
    ramp(values, N, 1.0f, 1.0f);
    ck_assert(holds(&work, a, values, N, "a buffer that was not written"));
    ck_assert(upload(&work, b, values, sizeof values));
    ck_assert(holds(&work, b, values, N, "a buffer that was cured"));
    plug.script_set(NULL);
    workload_close(&work);
    none_left();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stuck");
    TCase *tests = tcase_create("stuck");
    SRunner *runner;
    int failed;

    if (!plug_start(&plug))
        return 77;
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_build_that_never_ends);
    tcase_add_test(tests, close_leaves_a_build_that_never_ends);
    tcase_add_test(tests, a_build_that_fails_says_why);
    tcase_add_test(tests, work_that_does_not_end);
    tcase_add_test(tests, late_failures_stay_until_they_are_told);
    tcase_add_test(tests, close_leaves_work_that_does_not_end);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
