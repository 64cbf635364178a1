/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of the functions for memory, streams and events: NULL,
 * freed handles, handles of another device, ranges out of bounds, invalid
 * patterns and flags.
 */
#include "contract.h"
#include "invalid_memory.h"

#include <string.h>

#define GROUP "invalid-memory"

static unsigned char host[2 * PAIR_BYTES];

/* The messages contain the call. */
#define EXPECT_INVALID(call)                                                   \
    expect_error(suite, call, TANDEM_INVALID_ARGUMENT, #call)

#define EXPECT_INVALID_CALL(function, ...)                                     \
    expect_error(suite, api->function(__VA_ARGS__), TANDEM_INVALID_ARGUMENT,   \
                 #function "(" #__VA_ARGS__ ")");

static void invalid_upload(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = suite->stream;
    struct tandem_buffer *b = pair->buffer, *other = pair->other_buffer;

    INVALID_UPLOADS(EXPECT_INVALID_CALL)
}

static void invalid_download(struct suite *suite,
                             const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = suite->stream;
    struct tandem_buffer *b = pair->buffer, *other = pair->other_buffer;
    uint64_t t = SUITE_TIMEOUT_NS;

    INVALID_DOWNLOADS(EXPECT_INVALID_CALL)
}

static void invalid_copy_fill(struct suite *suite,
                              const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = suite->stream;
    struct tandem_buffer *b = pair->buffer, *other = pair->other_buffer;

    INVALID_COPIES_AND_FILLS(EXPECT_INVALID_CALL)
}

static void invalid_create(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_buffer *buffer = pair->buffer;
    struct tandem_stream *stream = suite->stream;
    struct tandem_event *event = NULL;
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_INVALID(api->alloc(NULL, TANDEM_BYTES(4), &buffer));
    EXPECT(suite, buffer == NULL);
    EXPECT_INVALID(api->alloc(suite->device, TANDEM_BYTES(4), NULL));
    EXPECT_INVALID(api->stream_create(NULL, 0, &stream));
    EXPECT(suite, stream == NULL);
    EXPECT_INVALID(api->stream_create(suite->device, 0, NULL));
    EXPECT_INVALID(api->event_record(NULL, &event));
    EXPECT(suite, event == NULL);
    EXPECT_INVALID(api->event_record(suite->stream, NULL));
    EXPECT_INVALID(api->memory_stats(NULL, &stats));
    EXPECT_INVALID(api->memory_stats(suite->device, NULL));
    stats.struct_size = 0;
    EXPECT_INVALID(api->memory_stats(suite->device, &stats));
}

static void invalid_stream(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_event *other_device_object = NULL;
    uint64_t ns;

    EXPECT_INVALID(api->stream_synchronize(NULL, 0));
    EXPECT_INVALID(api->stream_wait_event(NULL, other_device_object));
    EXPECT_INVALID(api->stream_wait_event(suite->stream, NULL));
    EXPECT_INVALID(api->event_wait(NULL, 0));
    if (api->event_elapsed_ns != NULL)
        EXPECT(suite, api->event_elapsed_ns(NULL, NULL, &ns) != TANDEM_OK);
    if (CALL_OK(event_record, pair->other_stream, &other_device_object)) {
        EXPECT_INVALID(
            api->stream_wait_event(suite->stream, other_device_object));
        api->event_destroy(other_device_object);
    }
}

/* import_host failed, so the plugin does not use the memory. */
static void release_fail(void *user)
{
    case_fail(user, "release was called, although import_host failed");
}

/* Optional functions of the table. */
static void invalid_shared(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_buffer *buffer;
    void *memory = host;

    if (api->import_host != NULL) {
        buffer = pair->buffer;
        EXPECT_INVALID(
            api->import_host(NULL, host, 64, release_fail, suite, &buffer));
        EXPECT(suite, buffer == NULL);
        EXPECT_INVALID(api->import_host(suite->device, NULL, 64, release_fail,
                                        suite, &buffer));
        EXPECT_INVALID(api->import_host(suite->device, host, 64, release_fail,
                                        suite, NULL));
    }
    if (api->host_alloc != NULL) {
        EXPECT_INVALID(api->host_alloc(NULL, 64, &memory));
        EXPECT(suite, memory == NULL);
        EXPECT_INVALID(api->host_alloc(suite->device, 64, NULL));
    }
    if (api->buffer_seal != NULL) {
        EXPECT_INVALID(api->buffer_seal(NULL));
        EXPECT_INVALID(api->buffer_seal(pair->freed));
    }
    if (api->trim != NULL)
        EXPECT_INVALID(api->trim(NULL, 0));
}

static void invalid_map(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = suite->stream;
    struct tandem_buffer *b = pair->buffer, *other = pair->other_buffer;
    uint64_t t = SUITE_TIMEOUT_NS;
    uint32_t read = TANDEM_MAP_READ;
    void *memory = host;

    if (api->map == NULL ||
        api->map(s, b, 0, 64, read, t, &memory) == TANDEM_UNSUPPORTED)
        return;
    CALL_OK(unmap, s, b, memory);
    EXPECT_INVALID(api->map(NULL, b, 0, 64, read, t, &memory));
    EXPECT(suite, memory == NULL);
    INVALID_MAPS(EXPECT_INVALID_CALL)
}

/* A freed handle must be recognised without being dereferenced. */
static void freed_handles(struct suite *suite, const struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = suite->stream;
    struct tandem_buffer *b = pair->buffer, *freed = pair->freed;
    uint64_t t = SUITE_TIMEOUT_NS;

    TRANSFERS_OF_FREED_BUFFERS(EXPECT_INVALID_CALL)
    api->free(freed); /* The second free does nothing. */
}

void invalid_memory_run(struct suite *suite)
{
    static const struct {
        const char *name;
        void (*run)(struct suite *suite, const struct device_pair *pair);
    } cases[] = {{"upload", invalid_upload},
                 {"download", invalid_download},
                 {"copy and fill", invalid_copy_fill},
                 {"what is made", invalid_create},
                 {"streams and events", invalid_stream},
                 {"memory that is shared", invalid_shared},
                 {"map", invalid_map},
                 {"freed buffers", freed_handles}};
    static struct device_pair pair;

    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        if (!case_begin(suite, GROUP, "%s", cases[i].name))
            continue;
        memset(host, 0x11, sizeof(host));
        memcpy(pair.contents, host, PAIR_BYTES);
        if (pair_open(suite, &pair)) {
            cases[i].run(suite, &pair);
            pair_check(suite, &pair);
        }
        suite->api.free(pair.buffer);
        contract_case_end(suite);
    }
}
