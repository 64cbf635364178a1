/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of the OpenCL plugin that fails after its launch returned: the rules
 * of backend.h (Errors, Sticky), as the conformance suite has them for devices
 * that can be told to fail.
 */
#include <stdlib.h>
#include <time.h>

#include "single_fault.h"

#define OUT_OF_MEMORY (-4)   /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
#define INVALID_EVENT (-58)  /* the one call's */
#define ILLEGAL_ACCESS (-9999) /* NVIDIA's: the device is lost */

/* Elements enough for several groups. */
#define LONG 120000

static struct tandem_buffer *a, *b, *c;
static float ramp_values[N];

static enum tandem_status add(struct tandem_stream *stream,
                              struct tandem_buffer *out,
                              struct tandem_buffer *in)
{
    const struct tandem_tensor_desc from = vector(in, N), to = vector(out, N);
    const struct tandem_tensor_desc *inputs[2] = {&from, NULL},
                                    *output = &to;
    const double one = 1.0;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADD,
                                 .float_count = 1,
                                 .floats = &one};

    return plug.api->launch(stream, &op, inputs, 2, &output, 1);
}

static enum tandem_status read_back(struct tandem_buffer *buffer)
{
    static float values[N];

    return plug.api->download(work.stream, buffer, 0, values, sizeof values, 0,
                              TANDEM_TIMEOUT_INFINITE);
}

/* first, first + 1, ... */
static void holds_ramp(struct tandem_buffer *buffer, float first,
                       const char *what)
{
    float values[N];

    ramp(values, N, first, 1.0f);
    ck_assert_msg(holds(&work, buffer, values, N, what), "%s %s", work.failed,
                  work.wrong);
}

/* Three buffers; b = a + 1 is accepted, and fails by this code. */
static void fail_late(int code)
{
    const struct layer_script late = {.fault = LAYER_FAULT_AFTER_ENQUEUE,
                                      .function = "clEnqueueNDRangeKernel",
                                      .nth = 1,
                                      .times = 1,
                                      .code = code};

    ramp(ramp_values, N, 1.0f, 1.0f);
    device_new(NULL, NULL);
    a = ramp_new();
    b = ramp_new();
    c = ramp_new();
    ck_assert_int_eq(add(work.stream, b, a), TANDEM_OK);
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    plug.script_set(&late);
    ck_assert_int_eq(add(work.stream, b, a), TANDEM_OK);
}

/* Until the stream has noticed, without clearing. */
static void noticed(enum tandem_status want)
{
    const struct timespec pause = {0, 1000000};
    enum tandem_status status = TANDEM_NOT_READY;

    for (int i = 0; i < 60000 && status == TANDEM_NOT_READY; i++) {
        status = plug.api->stream_query(work.stream);
        nanosleep(&pause, NULL);
    }
    ck_assert_int_eq(status, want);
}

static void end(void)
{
    plug.script_set(NULL);
    workload_close(&work);
    none_left();
}

/* Everything that is enqueued on a stream with an error returns it. */
static void stays_until_told(int code, enum tandem_status want)
{
    struct tandem_event *event = NULL;
    const float seven = 7.0f;

    fail_late(code);
    noticed(want);
    ck_assert_int_eq(plug.api->stream_query(work.stream), want);
    ck_assert_int_eq(add(work.stream, c, a), want);
    ck_assert_str_ne(plug.api->last_error(), "");
    ck_assert_int_eq(
        plug.api->fill(work.stream, c, 0, N * sizeof(float), &seven, 4), want);
    ck_assert_int_eq(plug.api->copy(work.stream, c, 0, a, 4, 400), want);
    ck_assert_int_eq(
        plug.api->upload(work.stream, c, 0, ramp_values + 1, 16, 0), want);
    if (plug.api->event_record(work.stream, &event) == TANDEM_OK)
        ck_assert_int_eq(plug.api->event_wait(event, TANDEM_TIMEOUT_INFINITE),
                         want);
    plug.api->event_destroy(event);
    ck_assert_int_eq(synchronize(), want);
    ck_assert_str_ne(plug.api->last_error(), "");
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    ck_assert_int_eq(plug.api->stream_query(work.stream), TANDEM_OK);
    holds_ramp(c, 1.0f, "what was enqueued on the error");
    holds_ramp(a, 1.0f, "the input of what failed");
    ck_assert_int_eq(add(work.stream, c, a), TANDEM_OK);
    holds_ramp(c, 2.0f, "later work");
    end();
}

START_TEST(a_failure_stays_until_it_is_told)
{
    stays_until_told(INVALID_EVENT, TANDEM_FAILED);
}
END_TEST

START_TEST(out_of_memory_stays_until_it_is_told)
{
    stays_until_told(OUT_OF_MEMORY, TANDEM_OUT_OF_MEMORY);
}
END_TEST

START_TEST(a_download_tells_and_clears_nothing)
{
    fail_late(INVALID_EVENT);
    ck_assert_int_eq(read_back(b), TANDEM_FAILED);
    ck_assert_str_ne(plug.api->last_error(), "");
    ck_assert_int_eq(synchronize(), TANDEM_FAILED);
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    end();
}
END_TEST

START_TEST(event_wait_tells_and_clears_nothing)
{
    struct tandem_event *event = NULL;

    fail_late(INVALID_EVENT);
    ck_assert_int_eq(plug.api->event_record(work.stream, &event), TANDEM_OK);
    ck_assert_int_eq(plug.api->event_wait(event, TANDEM_TIMEOUT_INFINITE),
                     TANDEM_FAILED);
    ck_assert_int_eq(synchronize(), TANDEM_FAILED);
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    plug.api->event_destroy(event);
    end();
}
END_TEST

START_TEST(synchronize_of_the_device_tells_and_clears)
{
    fail_late(INVALID_EVENT);
    ck_assert_int_eq(
        plug.api->synchronize(work.device, TANDEM_TIMEOUT_INFINITE),
        TANDEM_FAILED);
    ck_assert_int_eq(
        plug.api->synchronize(work.device, TANDEM_TIMEOUT_INFINITE), TANDEM_OK);
    ck_assert_int_eq(synchronize(), TANDEM_OK);
    end();
}
END_TEST

/* Reads of what was not written, in every way, once the stream is clear. */
static void poisoned(void)
{
    enum tandem_status status;

    ck_assert_int_eq(read_back(b), TANDEM_FAILED);
    status = add(work.stream, c, b);
    ck_assert_int_eq(status == TANDEM_OK ? synchronize() : status,
                     TANDEM_FAILED);
    status = plug.api->copy(work.stream, c, 0, b, 0, 16);
    ck_assert_int_eq(status == TANDEM_OK ? synchronize() : status,
                     TANDEM_FAILED);
    synchronize();
}

/* Cured by overwriting all of it, not half. */
static void poisoned_and_cured(bool by_fill)
{
    const float one = 1.0f;
    float values[N];

    fail_late(INVALID_EVENT);
    ck_assert_int_eq(synchronize(), TANDEM_FAILED);
    poisoned();
    ramp(values, N, 1.0f, 0.0f);
    ck_assert_int_eq(plug.api->upload(work.stream, b, 0, values,
                                      sizeof values / 2, 0),
                     TANDEM_OK);
    ck_assert_int_eq(read_back(b), TANDEM_FAILED);
    synchronize();
    ck_assert_int_eq(by_fill ? plug.api->fill(work.stream, b, 0, sizeof values,
                                              &one, sizeof one)
                             : plug.api->upload(work.stream, b, 0, values,
                                                sizeof values, 0),
                     TANDEM_OK);
    ck_assert(holds(&work, b, values, N, "a buffer that was cured"));
    ck_assert_int_eq(add(work.stream, c, b), TANDEM_OK);
    ramp(values, N, 2.0f, 0.0f);
    ck_assert(holds(&work, c, values, N, "work on it"));
    end();
}

START_TEST(poison_is_cured_by_a_fill)
{
    poisoned_and_cured(true);
}
END_TEST

START_TEST(poison_is_cured_by_an_upload)
{
    poisoned_and_cured(false);
}
END_TEST

/* Enqueued before anyone knew: its outputs must not pass for good. */
START_TEST(work_behind_a_failure_is_not_done)
{
    enum tandem_status status;

    fail_late(INVALID_EVENT);
    status = add(work.stream, c, b);
    ck_assert(status == TANDEM_OK || status == TANDEM_FAILED);
    ck_assert_int_eq(synchronize(), TANDEM_FAILED);
    if (status == TANDEM_OK)
        ck_assert_int_eq(read_back(c), TANDEM_FAILED);
    else
        holds_ramp(c, 1.0f, "the output of a launch that was refused");
    end();
}
END_TEST

START_TEST(another_stream_goes_on)
{
    struct tandem_stream *first, *other = NULL;

    fail_late(INVALID_EVENT);
    noticed(TANDEM_FAILED);
    ck_assert_int_eq(plug.api->stream_create(work.device, 0, &other),
                     TANDEM_OK);
    ck_assert_int_eq(add(other, c, c), TANDEM_OK);
    first = work.stream;
    work.stream = other;
    holds_ramp(c, 2.0f, "the other's work");
    work.stream = first;
    ck_assert_int_eq(plug.api->stream_query(first), TANDEM_FAILED);
    plug.api->stream_destroy(other);
    end();
}
END_TEST

/* How often a sum whose splits meet has had its counters cleared. */
static uint64_t clears_of_a_sum(void)
{
    const struct tandem_tensor_desc ones = vector(c, LONG),
                                    total = {a, 0, TANDEM_F32, 0, {0}, {0}};
    const struct tandem_tensor_desc *operand = &ones;
    const int64_t all[2] = {1, 0};
    const float want = LONG;
    const uint64_t before = plug_counts(&plug).fills;

    ck_assert_msg(launch(&work, TANDEM_OP_SUM, NULL, 0, all, 2, &operand, 1,
                         &total) &&
                      holds(&work, a, &want, 1, "a sum of ones"),
                  "%s %s", work.failed, work.wrong);
    return plug_counts(&plug).fills - before;
}

/* What failed may have left them anywhere. */
START_TEST(counters_are_cleared_after_a_failure)
{
    const float one = 1.0f;

    device_new("test.device_scope_visibility", "1");
    b = ramp_new();
    ck_assert_int_eq(unary(TANDEM_OP_NEG, b), TANDEM_OK);
    ck_assert(buffer_new(&work, sizeof one, &a));
    ck_assert(buffer_new(&work, LONG * sizeof one, &c));
    ck_assert_int_eq(
        plug.api->fill(work.stream, c, 0, LONG * sizeof one, &one, 4),
        TANDEM_OK);
    ck_assert_uint_eq(clears_of_a_sum(), 1);
    ck_assert_uint_eq(clears_of_a_sum(), 0);
    script(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueNDRangeKernel", NULL,
           INVALID_EVENT);
    ck_assert_int_eq(unary(TANDEM_OP_NEG, b), TANDEM_OK);
    ck_assert_int_eq(synchronize(), TANDEM_FAILED);
    plug.script_set(NULL);
    ck_assert_uint_eq(clears_of_a_sum(), 1);
    ck_assert_uint_eq(clears_of_a_sum(), 0);
    end();
}
END_TEST

START_TEST(a_lost_device_stays_lost)
{
    fail_late(ILLEGAL_ACCESS);
    noticed(TANDEM_DEVICE_LOST);
    plug.script_set(NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(synchronize(), TANDEM_DEVICE_LOST);
        ck_assert_int_eq(add(work.stream, c, a), TANDEM_DEVICE_LOST);
        ck_assert_str_ne(plug.api->last_error(), "");
    }
    ck_assert_int_eq(
        plug.api->synchronize(work.device, TANDEM_TIMEOUT_INFINITE),
        TANDEM_DEVICE_LOST);
    end();
    device_new(NULL, NULL);
    a = ramp_new();
    ck_assert_int_eq(add(work.stream, a, a), TANDEM_OK);
    holds_ramp(a, 2.0f, "work on the device opened anew");
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("late");
    TCase *tests = tcase_create("late");

    setenv("TANDEM_LAYER_OBJECT_CACHE", "1", 0);
    if (!plug_start(&plug))
        return 77;
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_failure_stays_until_it_is_told);
    tcase_add_test(tests, out_of_memory_stays_until_it_is_told);
    tcase_add_test(tests, a_download_tells_and_clears_nothing);
    tcase_add_test(tests, event_wait_tells_and_clears_nothing);
    tcase_add_test(tests, synchronize_of_the_device_tells_and_clears);
    tcase_add_test(tests, poison_is_cured_by_a_fill);
    tcase_add_test(tests, poison_is_cured_by_an_upload);
    tcase_add_test(tests, work_behind_a_failure_is_not_done);
    tcase_add_test(tests, another_stream_goes_on);
    tcase_add_test(tests, counters_are_cleared_after_a_failure);
    tcase_add_test(tests, a_lost_device_stays_lost);
    return single_main(suite);
}
