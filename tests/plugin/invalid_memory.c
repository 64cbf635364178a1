/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages of the functions for devices, memory, streams and events. In
 * Tandem's own plugins each mistake in a call of one function has a different
 * message, which is the same in the CPU and the OpenCL plugin. The conformance
 * suite tests the rest: outputs, contents and handles after such a call.
 */
#include <config.h>

#include "../conformance/invalid_memory.h"
#include "plugin.h"

#include <string.h>

static unsigned char host[2 * BENCH_BYTES];

/*
 * Fails the test unless the call returns TANDEM_INVALID_ARGUMENT with a
 * message that no other mistake has.
 */
static void expect_invalid(const struct bench *bench, struct messages *messages,
                           enum tandem_status status, const char *function,
                           const char *call)
{
    ck_assert_msg(status == TANDEM_INVALID_ARGUMENT, "%s: %s, %s: status %d",
                  bench->plugin->name, function, call, (int)status);
    message_check(messages, bench, status, function, call);
}

#define EXPECT_INVALID(function, ...)                                          \
    expect_invalid(bench, messages, bench->api->function(__VA_ARGS__),         \
                   #function, #__VA_ARGS__)
#define EXPECT_INVALID_CALL(...) EXPECT_INVALID(__VA_ARGS__);

static void transfers(const struct bench *bench, struct messages *messages)
{
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer;
    struct tandem_buffer *other = bench->other_device_object;
    const uint64_t t = TIMEOUT_NS;

    INVALID_UPLOADS(EXPECT_INVALID_CALL)
    INVALID_DOWNLOADS(EXPECT_INVALID_CALL)
    INVALID_COPIES_AND_FILLS(EXPECT_INVALID_CALL)
}

/* A freed handle and one of another device may have the same message. */
static void freed_transfers(const struct bench *bench,
                            struct messages *messages)
{
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer, *freed = bench->freed;
    const uint64_t t = TIMEOUT_NS;

    TRANSFERS_OF_FREED_BUFFERS(EXPECT_INVALID_CALL)
}

static void objects(const struct bench *bench, struct messages *messages)
{
    const struct tandem_backend *api = bench->api;
    struct tandem_device *d = bench->device;
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    struct tandem_event *event, *other_device_object;
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_INVALID(alloc, NULL, TANDEM_BYTES(4), &buffer);
    EXPECT_INVALID(alloc, d, TANDEM_BYTES(4), NULL);
    EXPECT_INVALID(stream_create, NULL, 0, &stream);
    EXPECT_INVALID(stream_create, d, 0, NULL);
    EXPECT_INVALID(event_record, NULL, &event);
    EXPECT_INVALID(event_record, bench->stream, NULL);
    EXPECT_INVALID(memory_stats, NULL, &stats);
    EXPECT_INVALID(memory_stats, d, NULL);
    stats.struct_size = 0;
    EXPECT_INVALID(memory_stats, d, &stats);
    OK(bench, api->event_record(bench->other_stream, &other_device_object));
    EXPECT_INVALID(stream_wait_event, NULL, other_device_object);
    EXPECT_INVALID(stream_wait_event, bench->stream, NULL);
    EXPECT_INVALID(stream_wait_event, bench->stream, other_device_object);
    api->event_destroy(other_device_object);
}

static void devices(const struct bench *bench, struct messages *messages)
{
    struct tandem_device *device;
    struct tandem_device_info info = {.struct_size = 0};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1};
    const struct tandem_open_options without_size = {.struct_size = 0};

    EXPECT_INVALID(device_describe, 0, NULL);
    EXPECT_INVALID(device_describe, 0, &info);
    EXPECT_INVALID(open, 0, NULL, NULL);
    EXPECT_INVALID(open, 0, &options, &device);
    EXPECT_INVALID(open, 0, &without_size, &device);
}

static void optional_entries(const struct bench *bench,
                             struct messages *messages)
{
    const struct tandem_backend *api = bench->api;
    struct tandem_device *d = bench->device;
    struct tandem_stream *s = bench->stream;
    struct tandem_buffer *b = bench->buffer, *imported;
    struct tandem_buffer *other = bench->other_device_object;
    const uint32_t read = TANDEM_MAP_READ;
    const uint64_t t = TIMEOUT_NS;
    void *memory;

    if (api->import_host != NULL) {
        EXPECT_INVALID(import_host, NULL, host, 64, NULL, NULL, &imported);
        EXPECT_INVALID(import_host, d, NULL, 64, NULL, NULL, &imported);
        EXPECT_INVALID(import_host, d, host, 64, NULL, NULL, NULL);
    }
    if (api->host_alloc != NULL) {
        EXPECT_INVALID(host_alloc, NULL, 64, &memory);
        EXPECT_INVALID(host_alloc, d, 64, NULL);
    }
    if (api->map == NULL ||
        api->map(s, b, 0, 64, read, t, &memory) == TANDEM_UNSUPPORTED)
        return;
    OK(bench, api->unmap(s, b, memory));
    INVALID_MAPS(EXPECT_INVALID_CALL)
}

static const invalid_calls_fn parts[] = {transfers, freed_transfers, objects,
                                         devices, optional_entries};

PLUGIN_TEST(messages_are_distinct)
{
    static struct messages messages;

    for (int i = 0; i < CASES_IN(parts); i++)
        invalid_calls_run((uint32_t)_i, parts[i], &messages);
}

LOOP_TEST(plugins_have_the_same_messages, CASES_IN(parts))
{
    messages_compare(parts[_i]);
}

void invalid_memory_add(TCase *tests)
{
    tests_add(tests);
}
