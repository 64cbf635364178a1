/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of the functions for memory, streams and events: NULL,
 * freed handles, handles of another device, ranges out of bounds, invalid
 * patterns and flags.
 */
#include "contract.h"

#include <string.h>

#define GROUP "invalid-memory"
#define BYTES 4096u

/* Two devices with a stream and a buffer each. */
struct pair {
    struct tandem_device *other;
    struct tandem_stream *stream, *other_stream;
    struct tandem_buffer *buffer, *other_buffer;
    unsigned char host[2 * BYTES];
};

static bool pair_open(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;

    memset(pair, 0, sizeof(*pair));
    pair->stream = suite->stream;
    memset(pair->host, 0x11, sizeof(pair->host));
    return EXPECT_OK(suite, suite_open(suite, NULL, NULL, &pair->other)) &&
           EXPECT_OK(suite,
                     api->stream_create(pair->other, 0, &pair->other_stream)) &&
           EXPECT_OK(suite,
                     api->alloc(pair->other, BYTES, &pair->other_buffer)) &&
           EXPECT_OK(suite, api->alloc(suite->device, BYTES, &pair->buffer)) &&
           EXPECT_OK(suite, api->upload(pair->stream, pair->buffer, 0,
                                        pair->host, BYTES, 0));
}

/* Checks that the buffer is unchanged and still works. */
static void pair_close(struct suite *suite, struct pair *pair)
{
    unsigned char now[BYTES];

    if (pair->buffer != NULL &&
        EXPECT_OK(suite, suite->api.download(pair->stream, pair->buffer, 0, now,
                                             BYTES, 0, SUITE_TIMEOUT_NS)))
        EXPECT(suite, memcmp(now, pair->host, BYTES) == 0);
    suite->api.free(pair->buffer);
    if (pair->other != NULL)
        suite->api.close(pair->other);
}

#define EXPECT_ERROR(what, call)                                               \
    expect_error(suite, call, TANDEM_INVALID_ARGUMENT, what)

static void invalid_upload(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = pair->stream;
    struct tandem_buffer *b = pair->buffer;
    unsigned char *host = pair->host;

    EXPECT_ERROR("upload on no stream", api->upload(NULL, b, 0, host, 4, 0));
    EXPECT_ERROR("upload to no buffer", api->upload(s, NULL, 0, host, 4, 0));
    EXPECT_ERROR("upload from NULL", api->upload(s, b, 0, NULL, 4, 0));
    EXPECT_ERROR("upload past the end", api->upload(s, b, 4095, host, 2, 0));
    EXPECT_ERROR("upload far past the end",
                 api->upload(s, b, UINT64_MAX, host, 4, 0));
    EXPECT_ERROR("upload of too much",
                 api->upload(s, b, 0, host, BYTES + 1, 0));
    EXPECT_ERROR("upload that wraps around",
                 api->upload(s, b, 8, host, UINT64_MAX - 4, 0));
    EXPECT_ERROR("upload to a buffer of another device",
                 api->upload(s, pair->other_buffer, 0, host, 4, 0));
    EXPECT_ERROR("upload with unknown flags",
                 api->upload(s, b, 0, host + 4, 4, 1u << 31));
}

static void invalid_download(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = pair->stream;
    struct tandem_buffer *b = pair->buffer;
    unsigned char *host = pair->host;
    uint64_t t = SUITE_TIMEOUT_NS;

    EXPECT_ERROR("download on no stream",
                 api->download(NULL, b, 0, host, 4, 0, t));
    EXPECT_ERROR("download of no buffer",
                 api->download(s, NULL, 0, host, 4, 0, t));
    EXPECT_ERROR("download into NULL", api->download(s, b, 0, NULL, 4, 0, t));
    EXPECT_ERROR("download past the end",
                 api->download(s, b, 4095, host, 2, 0, t));
    EXPECT_ERROR("download far past the end",
                 api->download(s, b, UINT64_MAX - 1, host, 1, 0, t));
    EXPECT_ERROR("download of a buffer of another device",
                 api->download(s, pair->other_buffer, 0, host, 4, 0, t));
    EXPECT_ERROR("download with unknown flags",
                 api->download(s, b, 0, host, 4, 1u << 31, t));
}

static void invalid_copy_fill(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = pair->stream;
    struct tandem_buffer *b = pair->buffer,
                         *other_device_object = pair->other_buffer;
    unsigned char *host = pair->host;

    EXPECT_ERROR("copy on no stream", api->copy(NULL, b, 0, b, 64, 4));
    EXPECT_ERROR("copy to no buffer", api->copy(s, NULL, 0, b, 0, 4));
    EXPECT_ERROR("copy from no buffer", api->copy(s, b, 0, NULL, 0, 4));
    EXPECT_ERROR("copy to a buffer of another device",
                 api->copy(s, other_device_object, 0, b, 0, 4));
    EXPECT_ERROR("copy from a buffer of another device",
                 api->copy(s, b, 0, other_device_object, 0, 5));
    EXPECT_ERROR("copy past the target's end", api->copy(s, b, 4095, b, 0, 2));
    EXPECT_ERROR("copy past the source's end", api->copy(s, b, 0, b, 4095, 3));
    EXPECT_ERROR("copy over itself", api->copy(s, b, 0, b, 0, 64));
    EXPECT_ERROR("copy that overlaps", api->copy(s, b, 32, b, 0, 65));
    EXPECT_ERROR("fill on no stream", api->fill(NULL, b, 0, 4, host, 1));
    EXPECT_ERROR("fill of no buffer", api->fill(s, NULL, 0, 4, host, 1));
    EXPECT_ERROR("fill with no pattern", api->fill(s, b, 0, 4, NULL, 1));
    EXPECT_ERROR("fill with 3 bytes", api->fill(s, b, 0, 6, host, 3));
    EXPECT_ERROR("fill with 0 bytes", api->fill(s, b, 0, 4, host, 0));
    EXPECT_ERROR("fill with 16 bytes", api->fill(s, b, 0, 32, host, 16));
    EXPECT_ERROR("fill of part of a pattern", api->fill(s, b, 0, 7, host, 4));
    EXPECT_ERROR("fill at part of a pattern", api->fill(s, b, 2, 8, host, 4));
    EXPECT_ERROR("fill past the end", api->fill(s, b, 4092, 8, host, 4));
    EXPECT_ERROR("fill of a buffer of another device",
                 api->fill(s, other_device_object, 0, 4, host, 1));
}

static void invalid_create(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_buffer *buffer = pair->buffer;
    struct tandem_stream *stream = pair->stream;
    struct tandem_event *event = NULL;
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_ERROR("alloc on no device", api->alloc(NULL, 4, &buffer));
    EXPECT(suite, buffer == NULL);
    EXPECT_ERROR("alloc into NULL", api->alloc(suite->device, 4, NULL));
    EXPECT_ERROR("stream_create on no device",
                 api->stream_create(NULL, 0, &stream));
    EXPECT(suite, stream == NULL);
    EXPECT_ERROR("stream_create into NULL",
                 api->stream_create(suite->device, 0, NULL));
    stream = pair->stream;
    EXPECT_ERROR("stream_create with unknown flags",
                 api->stream_create(suite->device, 1u << 31, &stream));
    EXPECT(suite, stream == NULL);
    EXPECT_ERROR("event_record of no stream", api->event_record(NULL, &event));
    EXPECT(suite, event == NULL);
    EXPECT_ERROR("event_record into NULL",
                 api->event_record(pair->stream, NULL));
    EXPECT_ERROR("memory_stats of no device", api->memory_stats(NULL, &stats));
    EXPECT_ERROR("memory_stats into NULL",
                 api->memory_stats(suite->device, NULL));
    stats.struct_size = 0;
    EXPECT_ERROR("memory_stats into a struct_size of 0",
                 api->memory_stats(suite->device, &stats));
}

static void invalid_stream(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_event *other_device_object = NULL;
    uint64_t ns;

    EXPECT_ERROR("stream_query of no stream", api->stream_query(NULL));
    EXPECT_ERROR("stream_synchronize of no stream",
                 api->stream_synchronize(NULL, 0));
    EXPECT_ERROR("synchronize of no device", api->synchronize(NULL, 0));
    EXPECT_ERROR("stream_wait_event on no stream",
                 api->stream_wait_event(NULL, other_device_object));
    EXPECT_ERROR("stream_wait_event for no event",
                 api->stream_wait_event(pair->stream, NULL));
    EXPECT_ERROR("event_query of no event", api->event_query(NULL));
    EXPECT_ERROR("event_wait for no event", api->event_wait(NULL, 0));
    if (api->event_elapsed_ns != NULL)
        EXPECT(suite, api->event_elapsed_ns(NULL, NULL, &ns) != TANDEM_OK);
    if (EXPECT_OK(suite, api->event_record(pair->other_stream,
                                           &other_device_object))) {
        EXPECT_ERROR("stream_wait_event for a event of another device",
                     api->stream_wait_event(pair->stream, other_device_object));
        api->event_destroy(other_device_object);
    }
}

/* Optional functions of the table. */
static void invalid_shared(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_buffer *buffer;
    void *memory = pair->host;

    if (api->import_host != NULL) {
        buffer = pair->buffer;
        EXPECT_ERROR("import on no device",
                     api->import_host(NULL, pair->host, 64, &buffer));
        EXPECT(suite, buffer == NULL);
        EXPECT_ERROR("import of NULL",
                     api->import_host(suite->device, NULL, 64, &buffer));
        EXPECT_ERROR("import into NULL",
                     api->import_host(suite->device, pair->host, 64, NULL));
    }
    if (api->host_alloc != NULL) {
        EXPECT_ERROR("host_alloc on no device",
                     api->host_alloc(NULL, 64, &memory));
        EXPECT(suite, memory == NULL);
        EXPECT_ERROR("host_alloc into NULL",
                     api->host_alloc(suite->device, 64, NULL));
    }
    if (api->trim != NULL)
        EXPECT_ERROR("trim of no device", api->trim(NULL, 0));
}

static void invalid_map(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_stream *s = pair->stream;
    uint64_t t = SUITE_TIMEOUT_NS;
    uint32_t read = TANDEM_MAP_READ;
    void *memory = pair->host;

    if (api->map == NULL || api->map(s, pair->buffer, 0, 64, read, t,
                                     &memory) == TANDEM_UNSUPPORTED)
        return;
    EXPECT_OK(suite, api->unmap(s, pair->buffer, memory));
    EXPECT_ERROR("map on no stream",
                 api->map(NULL, pair->buffer, 0, 64, read, t, &memory));
    EXPECT(suite, memory == NULL);
    EXPECT_ERROR("map of no buffer",
                 api->map(s, NULL, 0, 64, read, t, &memory));
    EXPECT_ERROR("map into NULL",
                 api->map(s, pair->buffer, 0, 64, read, t, NULL));
    EXPECT_ERROR("map past the end",
                 api->map(s, pair->buffer, 4000, 97, read, t, &memory));
    EXPECT_ERROR("map with no flags",
                 api->map(s, pair->buffer, 0, 64, 0, t, &memory));
    EXPECT_ERROR("map with unknown flags",
                 api->map(s, pair->buffer, 0, 64, read | 1u << 31, t, &memory));
    EXPECT_ERROR("map of a buffer of another device",
                 api->map(s, pair->other_buffer, 0, 64, read, t, &memory));
    EXPECT_ERROR("unmap of what is not mapped",
                 api->unmap(s, pair->buffer, pair->host));
}

/* A freed handle must be recognised without being dereferenced. */
static void freed_handles(struct suite *suite, struct pair *pair)
{
    const struct tandem_backend *api = &suite->api;
    struct tandem_buffer *freed = NULL;
    unsigned char *host = pair->host;

    if (!EXPECT_OK(suite, api->alloc(suite->device, 256, &freed)))
        return;
    api->free(freed);
    EXPECT_ERROR("upload to a freed buffer",
                 api->upload(pair->stream, freed, 0, host, 4, 0));
    EXPECT_ERROR(
        "download of a freed buffer",
        api->download(pair->stream, freed, 0, host, 4, 0, SUITE_TIMEOUT_NS));
    EXPECT_ERROR("copy from a freed buffer",
                 api->copy(pair->stream, pair->buffer, 0, freed, 0, 4));
    EXPECT_ERROR("fill of a freed buffer",
                 api->fill(pair->stream, freed, 0, 4, host, 1));
    api->free(freed); /* The second free does nothing. */
}

void invalid_memory_run(struct suite *suite)
{
    static const struct {
        const char *name;
        void (*run)(struct suite *suite, struct pair *pair);
    } cases[] = {{"upload", invalid_upload},
                 {"download", invalid_download},
                 {"copy and fill", invalid_copy_fill},
                 {"what is made", invalid_create},
                 {"streams and events", invalid_stream},
                 {"memory that is shared", invalid_shared},
                 {"map", invalid_map},
                 {"freed buffers", freed_handles}};
    static struct pair pair;

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!case_begin(suite, GROUP, "%s", cases[i].name))
            continue;
        if (pair_open(suite, &pair))
            cases[i].run(suite, &pair);
        pair_close(suite, &pair);
        case_end(suite);
    }
}
