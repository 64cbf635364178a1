/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: order within and across streams, events, waits, threads. */
#include "contract.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define N 20011
#define THREADS 4
#define LAUNCHES 100

static void case_order(struct suite *suite)
{
    struct vector *a = vector_new(suite, NULL, NULL, N, 0.0f, 1.0f);

    if (a == NULL)
        return;
    for (int i = 0; i < LAUNCHES; i++)
        EXPECT_OK(suite, launch_add(suite, NULL, a, a, 1.0));
    expect_vector(suite, NULL, a, (float)LAUNCHES, 1.0f, "a chain");
}

#define PASSES 20

/* Increments the vector on two streams in turn; each waits for an event of the
 * other, which is destroyed before it has passed. */
static void ping_pong(struct suite *suite, struct vector *a,
                      struct tandem_stream *one, struct tandem_stream *two)
{
    for (int i = 0; i < PASSES; i++) {
        struct tandem_stream *from = i % 2 ? two : one;
        struct tandem_stream *to = i % 2 ? one : two;
        struct tandem_event *event = NULL;

        for (int k = 0; k < 5; k++)
            EXPECT_OK(suite, launch_add(suite, from, a, a, 1.0));
        if (!CALL_OK(event_record, from, &event))
            break;
        CALL_OK(stream_wait_event, to, event);
        suite->api.event_destroy(event);
    }
    expect_vector(suite, one, a, 5.0f * PASSES, 1.0f,
                  "a chain over two streams");
}

static void case_across(struct suite *suite)
{
    struct tandem_stream *one = stream_new(suite, NULL, 0);
    struct tandem_stream *two = stream_new(suite, NULL, 0);
    struct vector *a;

    if (one == NULL || two == NULL)
        return;
    a = vector_new(suite, NULL, one, N, 0.0f, 1.0f);
    if (a != NULL)
        ping_pong(suite, a, one, two);
}

static bool waited_or_not(struct suite *suite, enum tandem_status status,
                          const char *what)
{
    return status == TANDEM_NOT_READY ||
           expect(suite, status, TANDEM_OK, "%s", what);
}

/* Creates a vector and enqueues 20 additions of 1 to its elements. */
static struct vector *chain_start(struct suite *suite,
                                  struct tandem_stream *stream)
{
    struct vector *a = vector_new(suite, NULL, stream, N, 0.0f, 1.0f);

    for (int i = 0; i < 20 && a != NULL; i++)
        EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0));
    return a;
}

static void case_events(struct suite *suite)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_event *early = NULL, *late = NULL;
    struct vector *a = vector_new(suite, NULL, NULL, N, 0.0f, 1.0f);

    if (a == NULL)
        return;
    CALL_OK(event_record, suite->stream, &early);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(suite, launch_add(suite, NULL, a, a, 1.0));
    CALL_OK(event_record, suite->stream, &late);
    waited_or_not(suite, api->event_wait(late, 0), "event_wait with 0");
    waited_or_not(suite, api->event_wait(late, 1), "event_wait with 1");
    CALL_OK(event_wait, late, SUITE_TIMEOUT_NS);
    CALL_OK(event_wait, late, 0);
    CALL_OK(event_wait, early, 0);
    CALL_OK(event_wait, late, TANDEM_TIMEOUT_INFINITE);
    expect_vector(suite, NULL, a, 20.0f, 1.0f, "the chain");
    api->event_destroy(early);
    api->event_destroy(late);
    api->event_destroy(NULL);
}

static void case_polls(struct suite *suite)
{
    const struct tandem_backend *api = &suite->api;
    struct vector *a = chain_start(suite, NULL);
    enum tandem_status status = TANDEM_NOT_READY;

    if (a == NULL)
        return;
    for (int i = 0; i < 60000 && status == TANDEM_NOT_READY; i++) {
        status = api->stream_synchronize(suite->stream, 0);
        if (i > 100)
            sleep_ms(5);
    }
    expect(suite, status, TANDEM_OK, "polling stream_synchronize");
    EXPECT_OK(suite, launch_add(suite, NULL, a, a, 1.0));
    waited_or_not(suite, api->stream_synchronize(suite->stream, 0),
                  "stream_synchronize with 0");
    stream_finish(suite, NULL);
    CALL_OK(stream_synchronize, suite->stream, 0);
    expect_vector(suite, NULL, a, 21.0f, 1.0f, "the chain");
}

/* A download that timed out may continue; the stream remains usable. */
static void case_download_poll(struct suite *suite)
{
    static float values[N];
    struct vector *a = chain_start(suite, NULL);

    if (a == NULL)
        return;
    waited_or_not(suite,
                  suite->api.download(suite->stream, a->buffer, 0, values,
                                      sizeof(values), 0, 0),
                  "download with 0");
    stream_finish(suite, NULL);
    expect_vector(suite, NULL, a, 20.0f, 1.0f, "the chain");
}

static void elapsed_check(struct suite *suite, struct tandem_stream *stream,
                          struct vector *a)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_event *start = NULL, *end = NULL;
    uint64_t ns = 12345;

    EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0));
    if (CALL_OK(event_record, stream, &start) &&
        EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0)) &&
        CALL_OK(event_record, stream, &end) &&
        CALL_OK(event_wait, end, SUITE_TIMEOUT_NS)) {
        CALL_OK(event_elapsed_ns, start, end, &ns);
        /* Clocks differ, so the time must only be plausible. */
        EXPECT(suite, ns < 3600ull * 1000000000ull);
    }
    api->event_destroy(start);
    api->event_destroy(end);
}

static void case_elapsed(struct suite *suite)
{
    struct tandem_stream *stream;
    struct vector *a;

    if (!needs_cap(suite, TANDEM_CAP_PROFILING, "profiling") ||
        !EXPECT(suite, suite->api.event_elapsed_ns))
        return;
    stream = stream_new(suite, NULL, TANDEM_STREAM_PROFILING);
    a = vector_new(suite, NULL, stream, N, 0.0f, 1.0f);
    if (stream == NULL || a == NULL)
        return;
    elapsed_check(suite, stream, a);
    expect_vector(suite, stream, a, 2.0f, 1.0f, "the chain");
}

static void case_elapsed_refused(struct suite *suite)
{
    struct tandem_event *event = NULL;
    uint64_t ns = 12345;

    if (HAS_FUNCTION(event_elapsed_ns) &&
        CALL_OK(event_record, suite->stream, &event)) {
        stream_finish(suite, NULL);
        EXPECT(suite,
               suite->api.event_elapsed_ns(event, event, &ns) != TANDEM_OK);
        EXPECT(suite, ns == 0);
        suite->api.event_destroy(event);
    }
}

/* Destroys a stream while work is running. The work completes, and an event of
 * the stream stays valid. */
static void case_destroy_busy(struct suite *suite)
{
    struct tandem_stream *stream = NULL;
    struct tandem_event *event = NULL;
    struct vector *a;

    if (!CALL_OK(stream_create, suite->device, 0, &stream))
        return;
    a = chain_start(suite, stream);
    CALL_OK(event_record, stream, &event);
    suite->api.stream_destroy(stream);
    suite->api.stream_destroy(NULL);
    CALL_OK(event_wait, event, SUITE_TIMEOUT_NS);
    suite->api.event_destroy(event);
    if (a != NULL)
        expect_vector(suite, NULL, a, 20.0f, 1.0f, "the work");
}

static void case_many(struct suite *suite)
{
    struct tandem_stream *streams[16] = {NULL};
    struct tandem_event *events[300] = {NULL};

    for (int i = 0; i < 16; i++)
        CALL_OK(stream_create, suite->device, 0, &streams[i]);
    for (int i = 0; i < 300; i++)
        CALL_OK(event_record, streams[i % 16], &events[i]);
    for (int i = 0; i < 300; i++)
        CALL_OK(event_wait, events[i], SUITE_TIMEOUT_NS);
    for (int i = 0; i < 300; i++)
        suite->api.event_destroy(events[i]);
    for (int i = 0; i < 16; i++)
        suite->api.stream_destroy(streams[i]);
}

/* The work of one thread. It uses only the plugin, not the suite. */
struct worker {
    struct suite *suite;
    pthread_t thread;
    float first;
    char failure[160];
};

static enum tandem_status
worker_chain(struct worker *worker, struct tandem_stream *stream, float *values)
{
    const struct tandem_backend *api = &worker->suite->api;
    struct vector a = {.elements = 1009, .values = values};
    uint64_t bytes = 1009 * sizeof(float);
    enum tandem_status status;

    status = api->alloc(worker->suite->device, TANDEM_BYTES(bytes), &a.buffer);
    for (int i = 0; i < 1009; i++)
        values[i] = worker->first;
    if (status == TANDEM_OK)
        status = api->upload(stream, a.buffer, 0, values, bytes, 0);
    for (int i = 0; i < LAUNCHES && status == TANDEM_OK; i++)
        status = launch_add(worker->suite, stream, &a, &a, 1.0);
    if (status == TANDEM_OK)
        status = api->download(stream, a.buffer, 0, values, bytes, 0,
                               SUITE_TIMEOUT_NS);
    api->free(a.buffer);
    return status;
}

static void *worker_main(void *user)
{
    struct worker *worker = user;
    const struct tandem_backend *api = &worker->suite->api;
    struct tandem_stream *stream = NULL;
    enum tandem_status status;
    float values[1009];

    status = api->stream_create(worker->suite->device, 0, &stream);
    for (int round = 0; round < 5 && status == TANDEM_OK; round++) {
        status = worker_chain(worker, stream, values);
        for (int i = 0; i < 1009 && status == TANDEM_OK; i++)
            if (values[i] != worker->first + (float)LAUNCHES)
                snprintf(worker->failure, sizeof(worker->failure),
                         "element %d is %.9g, expected %.9g", i,
                         (double)values[i],
                         (double)(worker->first + (float)LAUNCHES));
    }
    if (status != TANDEM_OK)
        snprintf(worker->failure, sizeof(worker->failure), "%s: %s",
                 status_text(status), api->last_error());
    api->stream_destroy(stream);
    return NULL;
}

static void case_threads(struct suite *suite)
{
    struct worker workers[THREADS];
    int started = 0;

    for (; started < THREADS; started++) {
        struct worker *worker = &workers[started];

        *worker =
            (struct worker){.suite = suite, .first = (float)(started * 1000)};
        if (pthread_create(&worker->thread, NULL, worker_main, worker)) {
            case_fail(suite, "no thread could be started");
            break;
        }
    }
    while (started-- > 0) {
        pthread_join(workers[started].thread, NULL);
        if (workers[started].failure[0] != '\0')
            case_fail(suite, "thread %d: %s", started,
                      workers[started].failure);
    }
}

/* Counts the calls of a callback, and sums their statuses. */
struct callback_calls {
    atomic_uint count, status;
};

static void callback_count(void *user, enum tandem_status status)
{
    struct callback_calls *calls = user;

    atomic_fetch_add(&calls->status, (unsigned)status);
    atomic_fetch_add(&calls->count, 1);
}

/* Waits for a callback, which gets this status, and is called once. */
static void expect_call(struct suite *suite, struct callback_calls *calls,
                        enum tandem_status status)
{
    for (int i = 0; i < 30000 && atomic_load(&calls->count) == 0; i++)
        sleep_ms(1);
    EXPECT(suite, atomic_load(&calls->count) == 1);
    EXPECT(suite, atomic_load(&calls->status) == (unsigned)status);
}

static void case_callback(struct suite *suite)
{
    static struct callback_calls early, late, destroyed, none;
    struct tandem_event *first = NULL, *last = NULL, *dropped = NULL;
    struct vector *a;

    if (!HAS_FUNCTION(event_callback))
        return;
    CALL_OK(event_record, suite->stream, &first);
    CALL_OK(event_wait, first, SUITE_TIMEOUT_NS);
    CALL_OK(event_callback, first, callback_count, &early);
    expect_call(suite, &early, TANDEM_OK);
    a = chain_start(suite, NULL);
    CALL_OK(event_record, suite->stream, &dropped);
    CALL_OK(event_record, suite->stream, &last);
    CALL_OK(event_callback, dropped, callback_count, &destroyed);
    suite->api.event_destroy(dropped);
    CALL_OK(event_callback, last, callback_count, &late);
    expect_call(suite, &late, TANDEM_OK);
    expect_call(suite, &destroyed, TANDEM_OK);
    CALL_OK(event_wait, last, 0);
    if (a != NULL)
        expect_vector(suite, NULL, a, 20.0f, 1.0f, "the chain");
    expect(suite, suite->api.event_callback(NULL, callback_count, &none),
           TANDEM_INVALID_ARGUMENT, "event_callback of NULL");
    expect(suite, suite->api.event_callback(dropped, callback_count, &none),
           TANDEM_INVALID_ARGUMENT, "event_callback of a destroyed event");
    expect(suite, suite->api.event_callback(last, NULL, &none),
           TANDEM_INVALID_ARGUMENT, "event_callback without a function");
    stream_finish(suite, NULL);
    EXPECT(suite, atomic_load(&early.count) == 1);
    EXPECT(suite, atomic_load(&destroyed.count) == 1);
    EXPECT(suite, atomic_load(&none.count) == 0);
    suite->api.event_destroy(first);
    suite->api.event_destroy(last);
}

/* close calls the callbacks that are left. */
static void case_callback_close(struct suite *suite)
{
    static struct callback_calls calls;
    struct tandem_device *device = NULL;
    struct tandem_stream *stream = NULL;
    struct tandem_event *event = NULL;

    if (!HAS_FUNCTION(event_callback))
        return;
    device = device_new(suite, NULL, NULL);
    stream = device == NULL ? NULL : stream_new(suite, device, 0);
    if (stream == NULL)
        return;
    if (require_add(suite, device)) {
        struct vector *a = vector_new(suite, device, stream, N, 0.0f, 1.0f);

        for (int i = 0; i < 20 && a != NULL; i++)
            EXPECT_OK(suite, launch_add(suite, stream, a, a, 1.0));
    }
    CALL_OK(event_record, stream, &event);
    CALL_OK(event_callback, event, callback_count, &calls);
    device_close(suite, device);
    EXPECT(suite, atomic_load(&calls.count) == 1);
    EXPECT(suite, atomic_load(&calls.status) == TANDEM_OK);
}

void contract_stream(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"launches of a stream run in order", case_order, true},
        {"an event orders two streams", case_across, true},
        {"events: query, poll, wait", case_events, true},
        {"a timeout of 0 polls, and work ends", case_polls, true},
        {"a download with a timeout of 0", case_download_poll, true},
        {"event_callback calls once", case_callback, true},
        {"close calls the callbacks of events", case_callback_close, false},
        {"elapsed time of a profiling stream", case_elapsed, true},
        {"elapsed time needs a profiling stream", case_elapsed_refused, false},
        {"a stream destroyed while it works", case_destroy_busy, true},
        {"many streams, many events", case_many, false},
        {"threads, each with its stream", case_threads, true},
    };

    contract_cases_run(suite, "stream", cases, COUNT_OF(cases));
}
