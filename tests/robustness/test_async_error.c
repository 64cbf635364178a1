/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of the OpenCL plugin that fails after its launch returned. Checks the
 * rules of backend.h (Errors, Sticky), like the conformance suite does for
 * devices that can inject errors.
 */
#include <stdatomic.h>
#include <time.h>

#include "single_fault.h"

#include "../../tools/common/tensor_call.h"

#define OUT_OF_MEMORY (-4) /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
/* An error of one call; the device keeps working. */
#define INVALID_EVENT (-58)
/* NVIDIA's code for an illegal access; the device is lost. */
#define ILLEGAL_ACCESS (-9999)

/* Enough elements for several work-groups. */
#define LONG 120000

static struct tandem_buffer *a, *b, *c;
static float ramp_values[N];

static enum tandem_status add(struct tandem_stream *stream,
                              struct tandem_buffer *out,
                              struct tandem_buffer *in)
{
    const struct tandem_tensor_desc from = vector(in, N), to = vector(out, N);
    const struct tandem_tensor_desc *inputs[2] = {&from, NULL}, *output = &to;
    const double one = 1.0;
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = TANDEM_OP_ADD,
                                 .float_count = 1,
                                 .floats = &one};

    return tensors_launch(plug.api, work.device, stream, &op, inputs, 2,
                          &output, 1, 64);
}

static enum tandem_status read_back(struct tandem_buffer *buffer)
{
    static float values[N];

    return plug.api->download(work.stream, buffer, 0, values, sizeof values, 0,
                              TANDEM_TIMEOUT_INFINITE);
}

/* Checks that the buffer contains first, first + 1, ... */
static void expect_ramp(struct tandem_buffer *buffer, float first,
                        const char *what)
{
    float values[N];

    fill_ramp(values, N, first, 1.0f);
    ck_assert_msg(content_matches(&work, buffer, values, N, what), "%s %s",
                  work.failed, work.wrong);
}

/* Creates three buffers. The command of b = a + 1 fails with this code. */
static void async_error_inject(int code)
{
    fill_ramp(ramp_values, N, 1.0f, 1.0f);
    device_new(NULL, NULL);
    a = ramp_new();
    b = ramp_new();
    c = ramp_new();
    OK(add(work.stream, b, a));
    OK(synchronize());
    script_nth(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueNDRangeKernel", 1, 1, code);
    OK(add(work.stream, b, a));
}

/* Waits until the stream has recorded the error, without clearing it. */
static void stream_error_wait(enum tandem_status want)
{
    struct tandem_event *event = NULL;
    enum tandem_status status = plug.api->event_record(work.stream, &event);

    if (status == TANDEM_OK)
        status = plug.api->event_wait(event, TANDEM_TIMEOUT_INFINITE);
    plug.api->event_destroy(event);
    ck_assert_int_eq(status, want);
}

static const struct {
    int code;
    enum tandem_status status;
} sticky_errors[] = {{INVALID_EVENT, TANDEM_FAILED},
                     {OUT_OF_MEMORY, TANDEM_OUT_OF_MEMORY}};

/* Every command on a stream with an error returns that error. */
LOOP_TEST(an_error_is_sticky_until_reported, CASES_IN(sticky_errors))
{
    const enum tandem_status want = sticky_errors[_i].status;
    const float seven = 7.0f;
    enum tandem_status status = TANDEM_NOT_READY;

    async_error_inject(sticky_errors[_i].code);
    stream_error_wait(want);
    stream_error_wait(want);
    RETURNS(want, add(work.stream, c, a));
    ck_assert_str_ne(plug.api->last_error(), "");
    RETURNS(want,
            plug.api->fill(work.stream, c, 0, N * sizeof(float), &seven, 4));
    RETURNS(want, plug.api->copy(work.stream, c, 0, a, 4, 400));
    RETURNS(want, plug.api->upload(work.stream, c, 0, ramp_values + 1, 16, 0));
    while (status == TANDEM_NOT_READY)
        status = plug.api->stream_synchronize(work.stream, 0);
    ck_assert_int_eq(status, want);
    ck_assert_str_ne(plug.api->last_error(), "");
    OK(synchronize());
    expect_ramp(c, 1.0f, "what was enqueued on the error");
    expect_ramp(a, 1.0f, "the input of what failed");
    OK(add(work.stream, c, a));
    expect_ramp(c, 2.0f, "later work");
}

TEST(a_download_does_not_clear_the_error)
{
    async_error_inject(INVALID_EVENT);
    RETURNS(TANDEM_FAILED, read_back(b));
    ck_assert_str_ne(plug.api->last_error(), "");
    RETURNS(TANDEM_FAILED, synchronize());
    OK(synchronize());
}

TEST(event_wait_does_not_clear_the_error)
{
    struct tandem_event *event = NULL;

    async_error_inject(INVALID_EVENT);
    OK(plug.api->event_record(work.stream, &event));
    RETURNS(TANDEM_FAILED,
            plug.api->event_wait(event, TANDEM_TIMEOUT_INFINITE));
    RETURNS(TANDEM_FAILED, synchronize());
    OK(synchronize());
    plug.api->event_destroy(event);
}

/* Checks that a poisoned buffer cannot be read after the error is cleared. */
static void expect_poisoned(void)
{
    enum tandem_status status;

    RETURNS(TANDEM_FAILED, read_back(b));
    status = add(work.stream, c, b);
    RETURNS(TANDEM_FAILED, status == TANDEM_OK ? synchronize() : status);
    status = plug.api->copy(work.stream, c, 0, b, 0, 16);
    RETURNS(TANDEM_FAILED, status == TANDEM_OK ? synchronize() : status);
    synchronize();
}

/*
 * Writing all of the buffer clears the poison, by an upload (0) or by a fill
 * (1). Writing half of it does not.
 */
LOOP_TEST(poison_is_cleared_by_writing_all, 2)
{
    const float one = 1.0f;
    float values[N];

    async_error_inject(INVALID_EVENT);
    RETURNS(TANDEM_FAILED, synchronize());
    expect_poisoned();
    fill_ramp(values, N, 1.0f, 0.0f);
    OK(plug.api->upload(work.stream, b, 0, values, sizeof values / 2, 0));
    RETURNS(TANDEM_FAILED, read_back(b));
    synchronize();
    OK(_i == 1
           ? plug.api->fill(work.stream, b, 0, sizeof values, &one, sizeof one)
           : plug.api->upload(work.stream, b, 0, values, sizeof values, 0));
    ck_assert(content_matches(&work, b, values, N, "a buffer that was cured"));
    OK(add(work.stream, c, b));
    fill_ramp(values, N, 2.0f, 0.0f);
    ck_assert(content_matches(&work, c, values, N, "work on it"));
}

/*
 * The second command was enqueued before the failure was known. Its output
 * must count as invalid too.
 */
TEST(work_after_a_failure_is_poisoned)
{
    enum tandem_status status;

    async_error_inject(INVALID_EVENT);
    status = add(work.stream, c, b);
    ck_assert(status == TANDEM_OK || status == TANDEM_FAILED);
    RETURNS(TANDEM_FAILED, synchronize());
    if (status == TANDEM_OK)
        RETURNS(TANDEM_FAILED, read_back(c));
    else
        expect_ramp(c, 1.0f, "the output of a rejected launch");
}

static void status_store(void *user, enum tandem_status status)
{
    atomic_store((atomic_int *)user, (int)status);
}

/* The callback gets the error of the work before the event, and of a stream
 * that has an error. */
TEST(a_callback_gets_the_error)
{
    static atomic_int status = -1;
    struct tandem_event *event = NULL;

    async_error_inject(INVALID_EVENT);
    OK(plug.api->event_record(work.stream, &event));
    OK(plug.api->event_callback(event, status_store, &status));
    for (int i = 0; i < 60000 && atomic_load(&status) == -1; i++)
        nanosleep(&(const struct timespec){0, 1000000}, NULL);
    ck_assert_int_eq(atomic_load(&status), TANDEM_FAILED);
    atomic_store(&status, -1);
    OK(plug.api->event_callback(event, status_store, &status));
    ck_assert_int_eq(atomic_load(&status), TANDEM_FAILED);
    plug.api->event_destroy(event);
    RETURNS(TANDEM_FAILED, synchronize());
}

TEST(another_stream_still_works)
{
    struct tandem_stream *first, *other = NULL;

    async_error_inject(INVALID_EVENT);
    stream_error_wait(TANDEM_FAILED);
    OK(plug.api->stream_create(work.device, 0, &other));
    OK(add(other, c, c));
    first = work.stream;
    work.stream = other;
    expect_ramp(c, 2.0f, "the other's work");
    work.stream = first;
    RETURNS(TANDEM_FAILED,
            plug.api->stream_synchronize(first, TANDEM_TIMEOUT_INFINITE));
    plug.api->stream_destroy(other);
}

/* Returns how often the counters of a split reduction were cleared. */
static uint64_t sum_counter_clears(void)
{
    const struct tandem_tensor_desc ones = vector(c, LONG),
                                    total = {a, 0, TANDEM_F32, 0, {0}, {0}};
    const struct tandem_tensor_desc *operand = &ones;
    const int64_t all[2] = {1, 0};
    const float want = LONG;
    const uint64_t before = plug_counts(&plug).fills;

    ck_assert_msg(
        launch(&work, TANDEM_OP_SUM, NULL, 0, all, 2, &operand, 1, &total) &&
            content_matches(&work, a, &want, 1, "a sum of ones"),
        "%s %s", work.failed, work.wrong);
    return plug_counts(&plug).fills - before;
}

/* A failed reduction may leave the counters with any value. */
TEST(counters_are_cleared_after_a_failure)
{
    const float one = 1.0f;

    device_new("test.device_scope_visibility", "1");
    b = ramp_new();
    OK(unary(TANDEM_OP_NEG, b));
    ck_assert(buffer_new(&work, sizeof one, &a));
    ck_assert(buffer_new(&work, LONG * sizeof one, &c));
    OK(plug.api->fill(work.stream, c, 0, LONG * sizeof one, &one, 4));
    ck_assert_uint_eq(sum_counter_clears(), 1);
    ck_assert_uint_eq(sum_counter_clears(), 0);
    script(LAYER_FAULT_AFTER_ENQUEUE, "clEnqueueNDRangeKernel", NULL,
           INVALID_EVENT);
    OK(unary(TANDEM_OP_NEG, b));
    RETURNS(TANDEM_FAILED, synchronize());
    plug.script_set(NULL);
    ck_assert_uint_eq(sum_counter_clears(), 1);
    ck_assert_uint_eq(sum_counter_clears(), 0);
}

TEST(a_lost_device_remains_lost)
{
    async_error_inject(ILLEGAL_ACCESS);
    stream_error_wait(TANDEM_DEVICE_LOST);
    plug.script_set(NULL);
    for (int i = 0; i < 2; i++) {
        RETURNS(TANDEM_DEVICE_LOST, synchronize());
        RETURNS(TANDEM_DEVICE_LOST, add(work.stream, c, a));
        ck_assert_str_ne(plug.api->last_error(), "");
    }
    device_end();
    device_new(NULL, NULL);
    a = ramp_new();
    OK(add(work.stream, a, a));
    expect_ramp(a, 2.0f, "work on the device opened anew");
}

TEST_MAIN(single_run("late", device_end))
