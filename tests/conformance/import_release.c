/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback `release` of import_host: it is called once, after the buffer
 * was freed and the work that used it has ended, whoever freed the buffer.
 */
#include "contract.h"

#include <stdatomic.h>
#include <stdlib.h>

#define ELEMENTS 4096
#define BYTES (ELEMENTS * sizeof(float))
#define LAUNCHES 20
/* Time in which the callback must have been called, in ms. */
#define RELEASE_MS 60000u

/* Memory that is imported, and what the callback saw. */
struct imported {
    float *memory;
    float first, last; /* Elements when the callback was called. */
    struct vector vector;
    _Atomic uint32_t calls;
};

static void released(void *user)
{
    struct imported *imported = user;

    imported->first = imported->memory[0];
    imported->last = imported->memory[ELEMENTS - 1];
    atomic_fetch_add(&imported->calls, 1);
}

/* Returns false, and skips or fails the case, if the import fails.  Either way,
 * the caller frees the memory. */
static bool import(struct suite *suite, struct tandem_device *device,
                   uint64_t bytes, struct imported *out)
{
    enum tandem_status status;

    *out = (struct imported){.memory = aligned_alloc(4096, BYTES)};
    if (!HAS_FUNCTION(import_host) || !EXPECT(suite, out->memory != NULL))
        return false;
    for (int i = 0; i < ELEMENTS; i++)
        out->memory[i] = (float)i;
    out->vector.elements = ELEMENTS;
    out->vector.device = device;
    status = suite->api.import_host(device, out->memory, bytes, released, out,
                                    &out->vector.buffer);
    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "import_host: %s", plugin_message(suite));
        EXPECT(suite, atomic_load(&out->calls) == 0);
        return false;
    }
    return expect(suite, status, TANDEM_OK, "import_host") &&
           EXPECT(suite, atomic_load(&out->calls) == 0);
}

/* Waits for the callback, and checks that no second call follows. */
static void expect_released(struct suite *suite, struct imported *imported)
{
    for (unsigned ms = 0; ms < RELEASE_MS && atomic_load(&imported->calls) == 0;
         ms++)
        sleep_ms(1);
    sleep_ms(20);
    if (atomic_load(&imported->calls) != 1)
        case_fail(suite, "release was called %u times, expected 1",
                  (unsigned)atomic_load(&imported->calls));
}

/* Enqueues LAUNCHES additions of 1, the last of which may wait for submission.
 */
static void work_enqueue(struct suite *suite, struct tandem_stream *stream,
                         const struct imported *imported)
{
    for (int i = 0; i < LAUNCHES; i++)
        EXPECT_OK(suite, launch_add(suite, stream, &imported->vector,
                                    &imported->vector, 1.0));
}

/* Checks that the callback saw the results of work_enqueue. */
static void expect_work_ended(struct suite *suite,
                              const struct imported *imported)
{
    if (imported->first != LAUNCHES ||
        imported->last != ELEMENTS - 1 + LAUNCHES)
        case_fail(suite,
                  "release was called before the work ended: the first and "
                  "the last element were %g and %g",
                  (double)imported->first, (double)imported->last);
}

static void case_free(struct suite *suite)
{
    struct imported imported;

    if (import(suite, suite->device, BYTES, &imported)) {
        suite->api.free(imported.vector.buffer);
        expect_released(suite, &imported);
        suite->api.free(imported.vector.buffer); /* No buffer any more. */
        expect_released(suite, &imported);
    }
    free(imported.memory);
}

/* No call submits the work after free. */
static void case_free_busy(struct suite *suite)
{
    struct imported imported;

    if (import(suite, suite->device, BYTES, &imported)) {
        work_enqueue(suite, suite->stream, &imported);
        suite->api.free(imported.vector.buffer);
        expect_released(suite, &imported);
        expect_work_ended(suite, &imported);
        stream_finish(suite, NULL);
    }
    free(imported.memory);
}

/* Two streams use the buffer one after the other. */
static void case_free_two_streams(struct suite *suite)
{
    struct imported imported;
    struct tandem_stream *other = stream_new(suite, NULL, 0);
    struct tandem_event *event = NULL;

    if (import(suite, suite->device, BYTES, &imported)) {
        EXPECT_OK(suite, launch_add(suite, NULL, &imported.vector,
                                    &imported.vector, 0.0));
        CALL_OK(event_record, suite->stream, &event);
        CALL_OK(stream_wait_event, other, event);
        work_enqueue(suite, other, &imported);
        suite->api.free(imported.vector.buffer);
        expect_released(suite, &imported);
        expect_work_ended(suite, &imported);
        suite->api.event_destroy(event);
        stream_finish(suite, other);
    }
    free(imported.memory);
}

static void case_empty(struct suite *suite)
{
    struct imported imported;

    if (import(suite, suite->device, 0, &imported)) {
        suite->api.free(imported.vector.buffer);
        expect_released(suite, &imported);
    }
    free(imported.memory);
}

/* Closes the device while the buffer exists, with and without work. */
static void case_close(struct suite *suite)
{
    for (int busy = 0; busy < 2; busy++) {
        struct tandem_device *device = device_new(suite, NULL, NULL);
        struct tandem_stream *stream = NULL;
        struct imported imported;

        if (device == NULL)
            return;
        if (import(suite, device, BYTES, &imported) &&
            CALL_OK(stream_create, device, 0, &stream)) {
            if (busy)
                work_enqueue(suite, stream, &imported);
            device_close(suite, device);
            expect_released(suite, &imported);
            if (busy)
                expect_work_ended(suite, &imported);
        } else {
            device_close(suite, device);
        }
        free(imported.memory);
    }
}

/* A buffer without a callback, freed while it is used. */
static void case_none(struct suite *suite)
{
    float *memory = aligned_alloc(4096, BYTES);
    struct vector vector = {.elements = ELEMENTS};
    enum tandem_status status;

    if (HAS_FUNCTION(import_host) && EXPECT(suite, memory != NULL)) {
        for (int i = 0; i < ELEMENTS; i++)
            memory[i] = (float)i;
        status = suite->api.import_host(suite->device, memory, BYTES, NULL,
                                        suite, &vector.buffer);
        if (status == TANDEM_UNSUPPORTED)
            case_skip(suite, "import_host: %s", plugin_message(suite));
        else if (expect(suite, status, TANDEM_OK, "import_host")) {
            EXPECT_OK(suite, launch_add(suite, NULL, &vector, &vector, 1.0));
            suite->api.free(vector.buffer);
            stream_finish(suite, NULL);
            EXPECT(suite, memory[7] == 8.0f);
        }
    }
    free(memory);
}

void contract_import_release(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"release after free", case_free, false},
        {"release after free and the work", case_free_busy, true},
        {"release after the work of two streams", case_free_two_streams, true},
        {"release of 0 bytes", case_empty, false},
        {"release by close", case_close, true},
        {"no release", case_none, true},
    };

    contract_cases_run(suite, "memory", cases, COUNT_OF(cases));
}
