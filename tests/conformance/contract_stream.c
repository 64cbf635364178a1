/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: order within and across streams, events, waits, threads. */
#include "contract.h"

#include <pthread.h>
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

/* Copies the vector between two streams in turn; each waits for the other. */
static void ping_pong(struct suite *suite, struct vector *a,
                      struct tandem_stream *one, struct tandem_stream *two)
{
    struct tandem_event *kept[PASSES] = {NULL};

    for (int i = 0; i < PASSES; i++) {
        struct tandem_stream *from = i % 2 ? two : one;
        struct tandem_stream *to = i % 2 ? one : two;
        struct tandem_event *event = NULL;

        for (int k = 0; k < 5; k++)
            EXPECT_OK(suite, launch_add(suite, from, a, a, 1.0));
        if (!CALL_OK(event_record, from, &event))
            break;
        CALL_OK(stream_wait_event, to, event);
        /* The header does not guarantee that the wait outlives the event. */
        kept[i] = event;
    }
    expect_vector(suite, one, a, 5.0f * PASSES, 1.0f,
                  "a chain over two streams");
    for (int i = 0; i < PASSES; i++)
        suite->api.event_destroy(kept[i]);
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

/* Destroys a stream while work is running. The work completes. */
static void case_destroy_busy(struct suite *suite)
{
    struct tandem_stream *stream = NULL;
    struct vector *a;

    if (!CALL_OK(stream_create, suite->device, 0, &stream))
        return;
    a = chain_start(suite, stream);
    suite->api.stream_destroy(stream);
    suite->api.stream_destroy(NULL);
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

void contract_stream(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"launches of a stream run in order", case_order, true},
        {"an event orders two streams", case_across, true},
        {"events: query, poll, wait", case_events, true},
        {"a timeout of 0 polls, and work ends", case_polls, true},
        {"a download with a timeout of 0", case_download_poll, true},
        {"elapsed time of a profiling stream", case_elapsed, true},
        {"elapsed time needs a profiling stream", case_elapsed_refused, false},
        {"a stream destroyed while it works", case_destroy_busy, true},
        {"many streams, many events", case_many, false},
        {"threads, each with its stream", case_threads, true},
    };

    contract_cases_run(suite, "stream", cases, COUNT_OF(cases));
}
