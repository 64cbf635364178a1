/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of refused calls of the functions for devices, memory, streams and
 * events.  In Tandem's own plugins each mistake in a call of one function has a
 * message of its own.  The conformance suite tests the rest: outputs, contents
 * and handles after such a call.
 */
#include <config.h>

#include "plugin.h"

#include <string.h>

static struct refusals refusals;
static unsigned char host[2 * BENCH_BYTES];

/* Fails the test unless the call is invalid and has a message of its own. */
static void refused(const struct bench *bench, enum tandem_status status,
                    const char *function, const char *call)
{
    ck_assert_msg(status == TANDEM_INVALID_ARGUMENT, "%s: %s, %s: status %d",
                  bench->plugin->name, function, call, (int)status);
    message_check(&refusals, bench, function, call);
}

#define REFUSED(function, what, ...)                                           \
    refused(bench, bench->api->function(__VA_ARGS__), #function, what)

static void transfers(const struct bench *bench)
{
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer, *freed = bench->freed;
    struct tandem_buffer *foreign = bench->foreign;
    const uint64_t t = TIMEOUT_NS;
    const uint32_t unknown = 1u << 31;

    REFUSED(upload, "no stream", NULL, b, 0, host, 4, 0);
    REFUSED(upload, "no buffer", s, NULL, 0, host, 4, 0);
    REFUSED(upload, "no source", s, b, 0, NULL, 4, 0);
    REFUSED(upload, "past the end", s, b, 4095, host, 2, 0);
    REFUSED(upload, "far past the end", s, b, UINT64_MAX, host, 4, 0);
    REFUSED(upload, "too much", s, b, 0, host, BENCH_BYTES + 1, 0);
    REFUSED(upload, "a range that wraps", s, b, 8, host, UINT64_MAX - 4, 0);
    REFUSED(upload, "a foreign buffer", s, foreign, 0, host, 4, 0);
    REFUSED(upload, "unknown flags", s, b, 0, host, 4, unknown);
    REFUSED(download, "no stream", NULL, b, 0, host, 4, 0, t);
    REFUSED(download, "no buffer", s, NULL, 0, host, 4, 0, t);
    REFUSED(download, "no target", s, b, 0, NULL, 4, 0, t);
    REFUSED(download, "past the end", s, b, 4095, host, 2, 0, t);
    REFUSED(download, "far past the end", s, b, UINT64_MAX - 1, host, 1, 0, t);
    REFUSED(download, "a foreign buffer", s, foreign, 0, host, 4, 0, t);
    REFUSED(download, "unknown flags", s, b, 0, host, 4, unknown, t);
    REFUSED(copy, "no stream", NULL, b, 0, b, 64, 4);
    REFUSED(copy, "no target", s, NULL, 0, b, 0, 4);
    REFUSED(copy, "no source", s, b, 0, NULL, 0, 4);
    REFUSED(copy, "a foreign target", s, foreign, 0, b, 0, 4);
    REFUSED(copy, "a foreign source", s, b, 0, foreign, 0, 5);
    REFUSED(copy, "past the target's end", s, b, 4095, b, 0, 2);
    REFUSED(copy, "past the source's end", s, b, 0, b, 4095, 3);
    REFUSED(copy, "over itself", s, b, 0, b, 0, 64);
    REFUSED(copy, "an overlap", s, b, 32, b, 0, 65);
    REFUSED(fill, "no stream", NULL, b, 0, 4, host, 1);
    REFUSED(fill, "no buffer", s, NULL, 0, 4, host, 1);
    REFUSED(fill, "no pattern", s, b, 0, 4, NULL, 1);
    REFUSED(fill, "3 bytes", s, b, 0, 6, host, 3);
    REFUSED(fill, "0 bytes", s, b, 0, 4, host, 0);
    REFUSED(fill, "16 bytes", s, b, 0, 32, host, 16);
    REFUSED(fill, "part of a pattern", s, b, 0, 7, host, 4);
    REFUSED(fill, "an odd offset", s, b, 2, 8, host, 4);
    REFUSED(fill, "past the end", s, b, 4092, 8, host, 4);
    REFUSED(fill, "a foreign buffer", s, foreign, 0, 4, host, 1);
    /* A freed and a foreign handle may have the same message. */
    memset(&refusals, 0, sizeof(refusals));
    REFUSED(upload, "a freed buffer", s, freed, 0, host, 4, 0);
    REFUSED(download, "a freed buffer", s, freed, 0, host, 4, 0, t);
    REFUSED(copy, "a freed source", s, b, 0, freed, 0, 4);
    REFUSED(fill, "a freed buffer", s, freed, 0, 4, host, 1);
}

static void objects(const struct bench *bench)
{
    const struct tandem_backend *api = bench->api;
    struct tandem_device *d = bench->device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    struct tandem_event *event, *foreign;
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    REFUSED(alloc, "no device", NULL, 4, &buffer);
    REFUSED(alloc, "no output", d, 4, NULL);
    REFUSED(stream_create, "no device", NULL, 0, &stream);
    REFUSED(stream_create, "no output", d, 0, NULL);
    REFUSED(stream_create, "unknown flags", d, 1u << 31, &stream);
    REFUSED(event_record, "no stream", NULL, &event);
    REFUSED(event_record, "no output", bench->stream, NULL);
    REFUSED(memory_stats, "no device", NULL, &stats);
    REFUSED(memory_stats, "no output", d, NULL);
    stats.struct_size = 0;
    REFUSED(memory_stats, "a struct_size of 0", d, &stats);
    OK(bench, api->event_record(bench->other_stream, &foreign));
    REFUSED(stream_wait_event, "no stream", NULL, foreign);
    REFUSED(stream_wait_event, "no event", bench->stream, NULL);
    REFUSED(stream_wait_event, "a foreign event", bench->stream, foreign);
    api->event_destroy(foreign);
}

static void devices(const struct bench *bench)
{
    struct tandem_device *device;
    struct tandem_device_info info = {.struct_size = 0};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1};

    REFUSED(device_describe, "no output", 0, NULL);
    REFUSED(device_describe, "a struct_size of 0", 0, &info);
    REFUSED(open, "no output", 0, NULL, NULL);
    REFUSED(open, "an option without keys", 0, &options, &device);
    options = (struct tandem_open_options){.struct_size = 0};
    REFUSED(open, "a struct_size of 0", 0, &options, &device);
}

static void optional_entries(const struct bench *bench)
{
    const struct tandem_backend *api = bench->api;
    struct tandem_device *d = bench->device;
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer, *imported;
    const uint32_t read = TANDEM_MAP_READ;
    const uint64_t t = TIMEOUT_NS;
    void *memory;

    if (api->import_host != NULL) {
        REFUSED(import_host, "no device", NULL, host, 64, &imported);
        REFUSED(import_host, "no memory", d, NULL, 64, &imported);
        REFUSED(import_host, "no output", d, host, 64, NULL);
    }
    if (api->host_alloc != NULL) {
        REFUSED(host_alloc, "no device", NULL, 64, &memory);
        REFUSED(host_alloc, "no output", d, 64, NULL);
    }
    if (api->map == NULL ||
        api->map(s, b, 0, 64, read, t, &memory) == TANDEM_UNSUPPORTED)
        return;
    OK(bench, api->unmap(s, b, memory));
    REFUSED(map, "no stream", NULL, b, 0, 64, read, t, &memory);
    REFUSED(map, "no buffer", s, NULL, 0, 64, read, t, &memory);
    REFUSED(map, "no output", s, b, 0, 64, read, t, NULL);
    REFUSED(map, "past the end", s, b, 4000, 97, read, t, &memory);
    REFUSED(map, "no flags", s, b, 0, 64, 0, t, &memory);
    REFUSED(map, "unknown flags", s, b, 0, 64, read | 1u << 31, t, &memory);
    REFUSED(map, "a foreign buffer", s, bench->foreign, 0, 64, read, t,
            &memory);
}

START_TEST(messages_are_distinct)
{
    static void (*const parts[])(const struct bench *bench) = {
        transfers, objects, devices, optional_entries};
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        memset(&refusals, 0, sizeof(refusals));
        parts[i](&bench);
    }
    bench_close(&bench);
}
END_TEST

TCase *invalid_memory_case(uint32_t plugins)
{
    TCase *tests = tcase_create("invalid memory");

    tcase_add_loop_test(tests, messages_are_distinct, 0, (int)plugins);
    return tests;
}
