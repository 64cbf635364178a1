/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: work that fails after its call returned TANDEM_OK, and waits
 * that never end, on devices that can inject errors (test.fault).
 */
#include "contract.h"

#include <stdio.h>
#include <string.h>

#define N 1000
#define BYTES (N * sizeof(float))

/*
 * A device whose second launch fails. The launch reads a (0, 1, 2, ...) and
 * writes b; c is another buffer with 0, 1, 2, ...
 */
struct failing_device {
    struct tandem_device *device;
    struct tandem_stream *stream;
    struct vector *a, *b, *c;
    enum tandem_status want;
};

static bool failing_open(struct suite *suite, struct failing_device *f,
                         const char *fault)
{
    memset(f, 0, sizeof(*f));
    if (!needs_test_key(suite, "test.fault"))
        return false;
    f->device = device_new(suite, "test.fault", fault);
    if (f->device == NULL || !require_add(suite, f->device))
        return false;
    f->stream = stream_new(suite, f->device, 0);
    if (f->stream == NULL)
        return false;
    f->a = vector_new(suite, f->device, f->stream, N, 0.0f, 1.0f);
    f->b = vector_new(suite, f->device, f->stream, N, 0.0f, 1.0f);
    f->c = vector_new(suite, f->device, f->stream, N, 0.0f, 1.0f);
    return f->a != NULL && f->b != NULL && f->c != NULL;
}

/* Opens a device whose first launch fails, and makes a launch that writes b. */
static bool fail_first(struct suite *suite, struct failing_device *f)
{
    return failing_open(suite, f, "launch:1:7") &&
           EXPECT_OK(suite, launch_add(suite, f->stream, f->b, f->a, 1.0));
}

static enum tandem_status synchronize(struct suite *suite,
                                      struct failing_device *f)
{
    return suite->api.stream_synchronize(f->stream, SUITE_TIMEOUT_NS);
}

/* Waits for the stream's work with an event, which clears no error. */
static bool expect_stream_error(struct suite *suite, struct failing_device *f)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_event *event = NULL;
    enum tandem_status status = api->event_record(f->stream, &event);

    if (status == TANDEM_OK)
        status = api->event_wait(event, SUITE_TIMEOUT_NS);
    api->event_destroy(event);
    return expect(suite, status, f->want, "an event of a stream with an error");
}

/*
 * Makes one launch that succeeds and one that fails later, and waits until the
 * stream has recorded the error, without clearing it.
 */
static bool fail_second(struct suite *suite, struct failing_device *f,
                        enum tandem_status want)
{
    char fault[40];

    snprintf(fault, sizeof(fault), "launch:2:%d", (int)want);
    if (!failing_open(suite, f, fault) ||
        !EXPECT_OK(suite, launch_add(suite, f->stream, f->a, f->a, 0.0)) ||
        !EXPECT_OK(suite, launch_add(suite, f->stream, f->b, f->a, 1.0)))
        return false;
    f->want = want;
    return expect_stream_error(suite, f);
}

static void message_check(struct suite *suite)
{
    EXPECT(suite, plugin_message(suite)[0] != '\0');
}

/* Checks that all enqueue functions return the error of the stream. */
static void expect_enqueue_errors(struct suite *suite, struct failing_device *f)
{
    const struct tandem_backend *api = &suite->api;
    float seven = 7.0f, values[4] = {0};

    expect_stream_error(suite, f);
    expect(suite, launch_add(suite, f->stream, f->c, f->a, 5.0), f->want,
           "launch on a stream with an error");
    message_check(suite);
    expect(suite, api->fill(f->stream, f->c->buffer, 0, BYTES, &seven, 4),
           f->want, "fill on a stream with an error");
    expect(suite, api->copy(f->stream, f->c->buffer, 0, f->a->buffer, 4, 400),
           f->want, "copy on a stream with an error");
    expect(suite,
           api->upload(f->stream, f->c->buffer, 0, values, sizeof(values), 0),
           f->want, "upload on a stream with an error");
    expect_stream_error(suite, f);
}

static void sticky_check(struct suite *suite, enum tandem_status want)
{
    struct failing_device f;
    enum tandem_status status = TANDEM_NOT_READY;

    if (!fail_second(suite, &f, want))
        return;
    expect_enqueue_errors(suite, &f);
    for (int i = 0; i < 60000 && status == TANDEM_NOT_READY; i++) {
        status = suite->api.stream_synchronize(f.stream, 0);
        if (i > 100)
            sleep_ms(2);
    }
    expect(suite, status, want, "stream_synchronize with timeout 0");
    message_check(suite);
    expect(suite, synchronize(suite, &f), TANDEM_OK,
           "stream_synchronize, the second time");
    expect_vector(suite, f.stream, f.c, 0.0f, 1.0f,
                  "what was enqueued on the error");
    expect_vector(suite, f.stream, f.a, 0.0f, 1.0f, "the input of what failed");
    EXPECT_OK(suite, launch_add(suite, f.stream, f.c, f.a, 1.0));
    expect_vector(suite, f.stream, f.c, 1.0f, 1.0f, "later work");
}

static void case_download_reports(struct suite *suite)
{
    struct failing_device f;

    if (!fail_first(suite, &f))
        return;
    expect(suite, vector_download(suite, f.stream, f.b), TANDEM_FAILED,
           "download of what was to be written");
    message_check(suite);
    expect(suite, synchronize(suite, &f), TANDEM_FAILED,
           "stream_synchronize after the download");
    EXPECT_OK(suite, synchronize(suite, &f));
}

static void case_event_reports(struct suite *suite)
{
    struct failing_device f;
    struct tandem_event *event = NULL;

    if (!fail_first(suite, &f))
        return;
    if (suite->api.event_record(f.stream, &event) == TANDEM_OK)
        expect(suite, suite->api.event_wait(event, SUITE_TIMEOUT_NS),
               TANDEM_FAILED, "event_wait");
    expect(suite, synchronize(suite, &f), TANDEM_FAILED,
           "stream_synchronize after event_wait");
    suite->api.event_destroy(event);
}

/* Checks that a poisoned buffer cannot be read after the error is cleared. */
static void expect_poison(struct suite *suite, struct failing_device *f)
{
    const struct tandem_backend *api = &suite->api;
    enum tandem_status status;

    expect(suite, vector_download(suite, f->stream, f->b), f->want,
           "download of a poisoned buffer");
    status = launch_add(suite, f->stream, f->c, f->b, 1.0);
    if (status == TANDEM_OK)
        status = synchronize(suite, f);
    expect(suite, status, f->want, "launch that reads a poisoned buffer");
    status = api->copy(f->stream, f->c->buffer, 0, f->b->buffer, 0, 16);
    if (status == TANDEM_OK)
        status = synchronize(suite, f);
    expect(suite, status, f->want, "copy from a poisoned buffer");
    (void)synchronize(suite, f);
}

static void poison_check(struct suite *suite, bool by_fill)
{
    struct failing_device f;
    float values[N], seven = 7.0f;

    for (int i = 0; i < N; i++)
        values[i] = 7.0f;
    if (!fail_second(suite, &f, TANDEM_FAILED))
        return;
    expect(suite, synchronize(suite, &f), TANDEM_FAILED, "synchronize");
    expect_poison(suite, &f);
    CALL_OK(upload, f.stream, f.b->buffer, 0, values, BYTES / 2, 0);
    expect(suite, vector_download(suite, f.stream, f.b), TANDEM_FAILED,
           "download of a buffer of which half was overwritten");
    (void)synchronize(suite, &f);
    if (by_fill)
        CALL_OK(fill, f.stream, f.b->buffer, 0, BYTES, &seven, 4);
    else
        CALL_OK(upload, f.stream, f.b->buffer, 0, values, BYTES, 0);
    expect_vector(suite, f.stream, f.b, 7.0f, 0.0f, "the cured buffer");
    EXPECT_OK(suite, launch_add(suite, f.stream, f.c, f.b, 1.0));
    expect_vector(suite, f.stream, f.c, 8.0f, 0.0f, "work on it");
}

/* Work enqueued before the failure is known must poison its outputs, too. */
static void case_dependents(struct suite *suite)
{
    struct failing_device f;
    enum tandem_status status;

    if (!fail_first(suite, &f))
        return;
    status = launch_add(suite, f.stream, f.c, f.b, 1.0);
    if (status != TANDEM_OK)
        expect(suite, status, TANDEM_FAILED, "the launch behind");
    expect(suite, synchronize(suite, &f), TANDEM_FAILED, "synchronize");
    if (status == TANDEM_OK)
        expect(suite, vector_download(suite, f.stream, f.c), TANDEM_FAILED,
               "download of what the launch behind wrote");
    else
        expect_vector(suite, f.stream, f.c, 0.0f, 1.0f,
                      "the output of a rejected launch");
}

/* The error belongs to one stream; another stream keeps working. */
static void case_other_stream(struct suite *suite)
{
    struct failing_device f;
    struct tandem_stream *other;

    if (!fail_second(suite, &f, TANDEM_FAILED))
        return;
    other = stream_new(suite, f.device, 0);
    if (other == NULL)
        return;
    EXPECT_OK(suite, launch_add(suite, other, f.c, f.c, 3.0));
    expect_vector(suite, other, f.c, 3.0f, 1.0f, "the other's work");
    expect(suite, synchronize(suite, &f), TANDEM_FAILED,
           "the first stream still");
    suite->api.stream_destroy(other);
}

static void case_lost(struct suite *suite)
{
    struct failing_device f;

    if (!fail_second(suite, &f, TANDEM_DEVICE_LOST))
        return;
    for (int i = 0; i < 2; i++) {
        expect(suite, synchronize(suite, &f), TANDEM_DEVICE_LOST,
               "stream_synchronize");
        expect(suite, launch_add(suite, f.stream, f.c, f.a, 1.0),
               TANDEM_DEVICE_LOST, "launch");
        message_check(suite);
    }
    device_close(suite, f.device);
    if (!failing_open(suite, &f, "launch:1000000:7"))
        return;
    EXPECT_OK(suite, launch_add(suite, f.stream, f.b, f.a, 1.0));
    expect_vector(suite, f.stream, f.b, 1.0f, 1.0f,
                  "work on the device opened anew");
}

static void case_endless(struct suite *suite)
{
    uint64_t timeout_ns = 50ull * 1000000u;
    struct failing_device f;

    if (!failing_open(suite, &f, "wait:1"))
        return;
    EXPECT_OK(suite, launch_add(suite, f.stream, f.b, f.a, 1.0));
    expect(suite, suite->api.stream_synchronize(f.stream, timeout_ns),
           TANDEM_NOT_READY, "the endless stream_synchronize");
    message_check(suite);
    expect(suite, synchronize(suite, &f), TANDEM_OK, "the next one");
    expect_vector(suite, f.stream, f.b, 1.0f, 1.0f, "the work");
}

void contract_fault(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"a blocking download reports the error", case_download_reports, false},
        {"event_wait reports the error, and it stays", case_event_reports,
         false},
        {"work behind the failure is not done", case_dependents, false},
        {"another stream goes on", case_other_stream, false},
        {"a lost device stays lost", case_lost, false},
        {"a wait that never ends times out", case_endless, false},
    };

    static const enum tandem_status errors[] = {TANDEM_FAILED,
                                                TANDEM_OUT_OF_MEMORY};

    for (uint32_t i = 0; i < COUNT_OF(errors); i++)
        if (case_begin(suite, "fault", "sticky until synchronize: %s",
                       status_text(errors[i]))) {
            sticky_check(suite, errors[i]);
            contract_case_end(suite);
        }
    for (uint32_t i = 0; i < 2; i++)
        if (case_begin(suite, "fault", "a poisoned buffer, cured by %s",
                       i == 1 ? "a fill" : "an upload")) {
            poison_check(suite, i == 1);
            contract_case_end(suite);
        }
    contract_cases_run(suite, "fault", cases, COUNT_OF(cases));
}
