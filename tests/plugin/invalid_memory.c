/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages of the functions for devices, memory, streams and events. In
 * Tandem's own plugins each mistake in a call of one function has a different
 * message. The conformance suite tests the rest: outputs, contents and handles
 * after such a call.
 */
#include <config.h>

#include "plugin.h"

#include <string.h>

static struct messages messages;
static unsigned char host[2 * BENCH_BYTES];

/*
 * Fails the test unless the call returns TANDEM_INVALID_ARGUMENT with a
 * message that no other mistake has.
 */
static void expect_invalid(const struct bench *bench, enum tandem_status status,
                           const char *function, const char *call)
{
    ck_assert_msg(status == TANDEM_INVALID_ARGUMENT, "%s: %s, %s: status %d",
                  bench->plugin->name, function, call, (int)status);
    message_check(&messages, bench, function, call);
}

#define EXPECT_INVALID(function, what, ...)                                    \
    expect_invalid(bench, bench->api->function(__VA_ARGS__), #function, what)

static void transfers(const struct bench *bench)
{
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer, *freed = bench->freed;
    struct tandem_buffer *other_device_object = bench->other_device_object;
    const uint64_t t = TIMEOUT_NS;
    const uint32_t unknown = 1u << 31;

    EXPECT_INVALID(upload, "no stream", NULL, b, 0, host, 4, 0);
    EXPECT_INVALID(upload, "no buffer", s, NULL, 0, host, 4, 0);
    EXPECT_INVALID(upload, "no source", s, b, 0, NULL, 4, 0);
    EXPECT_INVALID(upload, "past the end", s, b, 4095, host, 2, 0);
    EXPECT_INVALID(upload, "far past the end", s, b, UINT64_MAX, host, 4, 0);
    EXPECT_INVALID(upload, "too much", s, b, 0, host, BENCH_BYTES + 1, 0);
    EXPECT_INVALID(upload, "a range that wraps", s, b, 8, host, UINT64_MAX - 4,
                   0);
    EXPECT_INVALID(upload, "a buffer of another device", s, other_device_object,
                   0, host, 4, 0);
    EXPECT_INVALID(upload, "unknown flags", s, b, 0, host, 4, unknown);
    EXPECT_INVALID(download, "no stream", NULL, b, 0, host, 4, 0, t);
    EXPECT_INVALID(download, "no buffer", s, NULL, 0, host, 4, 0, t);
    EXPECT_INVALID(download, "no target", s, b, 0, NULL, 4, 0, t);
    EXPECT_INVALID(download, "past the end", s, b, 4095, host, 2, 0, t);
    EXPECT_INVALID(download, "far past the end", s, b, UINT64_MAX - 1, host, 1,
                   0, t);
    EXPECT_INVALID(download, "a buffer of another device", s,
                   other_device_object, 0, host, 4, 0, t);
    EXPECT_INVALID(download, "unknown flags", s, b, 0, host, 4, unknown, t);
    EXPECT_INVALID(copy, "no stream", NULL, b, 0, b, 64, 4);
    EXPECT_INVALID(copy, "no target", s, NULL, 0, b, 0, 4);
    EXPECT_INVALID(copy, "no source", s, b, 0, NULL, 0, 4);
    EXPECT_INVALID(copy, "a target of another device", s, other_device_object,
                   0, b, 0, 4);
    EXPECT_INVALID(copy, "a source of another device", s, b, 0,
                   other_device_object, 0, 5);
    EXPECT_INVALID(copy, "past the target's end", s, b, 4095, b, 0, 2);
    EXPECT_INVALID(copy, "past the source's end", s, b, 0, b, 4095, 3);
    EXPECT_INVALID(copy, "over itself", s, b, 0, b, 0, 64);
    EXPECT_INVALID(copy, "an overlap", s, b, 32, b, 0, 65);
    EXPECT_INVALID(fill, "no stream", NULL, b, 0, 4, host, 1);
    EXPECT_INVALID(fill, "no buffer", s, NULL, 0, 4, host, 1);
    EXPECT_INVALID(fill, "no pattern", s, b, 0, 4, NULL, 1);
    EXPECT_INVALID(fill, "3 bytes", s, b, 0, 6, host, 3);
    EXPECT_INVALID(fill, "0 bytes", s, b, 0, 4, host, 0);
    EXPECT_INVALID(fill, "16 bytes", s, b, 0, 32, host, 16);
    EXPECT_INVALID(fill, "part of a pattern", s, b, 0, 7, host, 4);
    EXPECT_INVALID(fill, "an odd offset", s, b, 2, 8, host, 4);
    EXPECT_INVALID(fill, "past the end", s, b, 4092, 8, host, 4);
    EXPECT_INVALID(fill, "a buffer of another device", s, other_device_object,
                   0, 4, host, 1);
    /* A freed handle and one of another device may have the same message. */
    memset(&messages, 0, sizeof(messages));
    EXPECT_INVALID(upload, "a freed buffer", s, freed, 0, host, 4, 0);
    EXPECT_INVALID(download, "a freed buffer", s, freed, 0, host, 4, 0, t);
    EXPECT_INVALID(copy, "a freed source", s, b, 0, freed, 0, 4);
    EXPECT_INVALID(fill, "a freed buffer", s, freed, 0, 4, host, 1);
}

static void objects(const struct bench *bench)
{
    const struct tandem_backend *api = bench->api;
    struct tandem_device *d = bench->device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    struct tandem_event *event, *other_device_object;
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_INVALID(alloc, "no device", NULL, 4, &buffer);
    EXPECT_INVALID(alloc, "no output", d, 4, NULL);
    EXPECT_INVALID(stream_create, "no device", NULL, 0, &stream);
    EXPECT_INVALID(stream_create, "no output", d, 0, NULL);
    EXPECT_INVALID(stream_create, "unknown flags", d, 1u << 31, &stream);
    EXPECT_INVALID(event_record, "no stream", NULL, &event);
    EXPECT_INVALID(event_record, "no output", bench->stream, NULL);
    EXPECT_INVALID(memory_stats, "no device", NULL, &stats);
    EXPECT_INVALID(memory_stats, "no output", d, NULL);
    stats.struct_size = 0;
    EXPECT_INVALID(memory_stats, "a struct_size of 0", d, &stats);
    OK(bench, api->event_record(bench->other_stream, &other_device_object));
    EXPECT_INVALID(stream_wait_event, "no stream", NULL, other_device_object);
    EXPECT_INVALID(stream_wait_event, "no event", bench->stream, NULL);
    EXPECT_INVALID(stream_wait_event, "a event of another device",
                   bench->stream, other_device_object);
    api->event_destroy(other_device_object);
}

static void devices(const struct bench *bench)
{
    struct tandem_device *device;
    struct tandem_device_info info = {.struct_size = 0};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1};

    EXPECT_INVALID(device_describe, "no output", 0, NULL);
    EXPECT_INVALID(device_describe, "a struct_size of 0", 0, &info);
    EXPECT_INVALID(open, "no output", 0, NULL, NULL);
    EXPECT_INVALID(open, "an option without keys", 0, &options, &device);
    options = (struct tandem_open_options){.struct_size = 0};
    EXPECT_INVALID(open, "a struct_size of 0", 0, &options, &device);
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
        EXPECT_INVALID(import_host, "no device", NULL, host, 64, &imported);
        EXPECT_INVALID(import_host, "no memory", d, NULL, 64, &imported);
        EXPECT_INVALID(import_host, "no output", d, host, 64, NULL);
    }
    if (api->host_alloc != NULL) {
        EXPECT_INVALID(host_alloc, "no device", NULL, 64, &memory);
        EXPECT_INVALID(host_alloc, "no output", d, 64, NULL);
    }
    if (api->map == NULL ||
        api->map(s, b, 0, 64, read, t, &memory) == TANDEM_UNSUPPORTED)
        return;
    OK(bench, api->unmap(s, b, memory));
    EXPECT_INVALID(map, "no stream", NULL, b, 0, 64, read, t, &memory);
    EXPECT_INVALID(map, "no buffer", s, NULL, 0, 64, read, t, &memory);
    EXPECT_INVALID(map, "no output", s, b, 0, 64, read, t, NULL);
    EXPECT_INVALID(map, "past the end", s, b, 4000, 97, read, t, &memory);
    EXPECT_INVALID(map, "no flags", s, b, 0, 64, 0, t, &memory);
    EXPECT_INVALID(map, "unknown flags", s, b, 0, 64, read | 1u << 31, t,
                   &memory);
    EXPECT_INVALID(map, "a buffer of another device", s,
                   bench->other_device_object, 0, 64, read, t, &memory);
}

START_TEST(messages_are_distinct)
{
    static void (*const parts[])(const struct bench *bench) = {
        transfers, objects, devices, optional_entries};
    struct bench bench;

    bench_open(&bench, (uint32_t)_i);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        memset(&messages, 0, sizeof(messages));
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
