/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid arguments of the functions for memory, streams and events: NULL,
 * freed handles, handles of another device, ranges out of bounds, invalid
 * patterns and flags. Each call is a case.
 */
#include "contract.h"

#include <string.h>

#define GROUP "invalid-memory"

/* The arguments of the calls. The name of a case contains them. */
static struct tandem_stream *s, *other_stream, *stream;
static struct tandem_device *d;
static struct tandem_buffer *b, *other, *freed, *buffer;
static struct tandem_event *event, *other_event;
static struct tandem_memory_stats stats, sizeless;
static unsigned char host[2 * PAIR_BYTES];
static void *memory, *mapped;
static uint64_t ns;
static const uint64_t t = SUITE_TIMEOUT_NS;
static const uint32_t read = TANDEM_MAP_READ;

/* Outputs that a call must set to NULL. */
static void *const unset = host;

/* Creates new arguments, whatever an earlier call did. */
static bool arguments_make(struct suite *suite, struct device_pair *pair)
{
    memset(host, 0x11, sizeof(host));
    memcpy(pair->contents, host, PAIR_BYTES);
    if (!pair_open(suite, pair))
        return false;
    d = suite->device;
    s = suite->stream;
    other_stream = pair->other_stream;
    b = pair->buffer;
    other = pair->other_buffer;
    freed = pair->freed;
    stats.struct_size = sizeof(stats);
    buffer = unset;
    stream = unset;
    event = unset;
    memory = unset;
    return CALL_OK(event_record, other_stream, &other_event);
}

static bool call_begin(struct suite *suite, struct device_pair *pair,
                       const char *call)
{
    if (!case_begin(suite, GROUP, "%s", call))
        return false;
    if (arguments_make(suite, pair))
        return true;
    contract_case_end(suite);
    return false;
}

static void call_end(struct suite *suite, const struct device_pair *pair,
                     enum tandem_status status)
{
    if (!suite->case_skipped)
        expect_error(suite, status, TANDEM_INVALID_ARGUMENT, "the call");
    case_note(suite, "%s: %s", status_text(status), plugin_message(suite));
    pair_check(suite, pair);
    suite->api.event_destroy(other_event);
    suite->api.free(pair->buffer);
    contract_case_end(suite);
}

#define INVALID(function, ...)                                                 \
    if (call_begin(suite, pair, #function "(" #__VA_ARGS__ ")"))               \
        call_end(suite, pair, suite->api.function(__VA_ARGS__));
/* The call must set the output to NULL. */
#define INVALID_OUTPUT(output, function, ...)                                  \
    if (call_begin(suite, pair, #function "(" #__VA_ARGS__ ")")) {             \
        const enum tandem_status status_ = suite->api.function(__VA_ARGS__);   \
                                                                               \
        EXPECT(suite, output == NULL);                                         \
        call_end(suite, pair, status_);                                        \
    }

static void transfers_run(struct suite *suite, struct device_pair *pair)
{
    INVALID(upload, NULL, b, 0, host, 4, 0)
    INVALID(upload, s, NULL, 0, host, 4, 0)
    INVALID(upload, s, b, 0, NULL, 4, 0)
    INVALID(upload, s, b, 4095, host, 2, 0)
    INVALID(upload, s, b, UINT64_MAX, host, 4, 0)
    INVALID(upload, s, b, 0, host, 4097, 0)
    INVALID(upload, s, b, 8, host, UINT64_MAX - 4, 0)
    INVALID(upload, s, other, 0, host, 4, 0)
    INVALID(download, NULL, b, 0, host, 4, 0, t)
    INVALID(download, s, NULL, 0, host, 4, 0, t)
    INVALID(download, s, b, 0, NULL, 4, 0, t)
    INVALID(download, s, b, 4095, host, 2, 0, t)
    INVALID(download, s, b, UINT64_MAX - 1, host, 1, 0, t)
    INVALID(download, s, other, 0, host, 4, 0, t)
    INVALID(copy, NULL, b, 0, b, 64, 4)
    INVALID(copy, s, NULL, 0, b, 0, 4)
    INVALID(copy, s, b, 0, NULL, 0, 4)
    INVALID(copy, s, other, 0, b, 0, 4)
    INVALID(copy, s, b, 0, other, 0, 5)
    INVALID(copy, s, b, 4095, b, 0, 2)
    INVALID(copy, s, b, 0, b, 4095, 3)
    INVALID(copy, s, b, 0, b, 0, 64)
    INVALID(copy, s, b, 32, b, 0, 65)
    INVALID(fill, NULL, b, 0, 4, host, 1)
    INVALID(fill, s, NULL, 0, 4, host, 1)
    INVALID(fill, s, b, 0, 4, NULL, 1)
    INVALID(fill, s, b, 0, 6, host, 3)
    INVALID(fill, s, b, 0, 4, host, 0)
    INVALID(fill, s, b, 0, 32, host, 16)
    INVALID(fill, s, b, 0, 7, host, 4)
    INVALID(fill, s, b, 2, 8, host, 4)
    INVALID(fill, s, b, 4092, 8, host, 4)
    INVALID(fill, s, other, 0, 4, host, 1)
}

/* A freed handle must be recognised without being dereferenced. */
static void freed_handles_run(struct suite *suite, struct device_pair *pair)
{
    INVALID(upload, s, freed, 0, host, 4, 0)
    INVALID(download, s, freed, 0, host, 4, 0, t)
    INVALID(copy, s, b, 0, freed, 0, 4)
    INVALID(fill, s, freed, 0, 4, host, 1)
    if (case_begin(suite, GROUP, "free(freed)")) {
        if (arguments_make(suite, pair)) {
            suite->api.free(freed); /* The second free does nothing. */
            pair_check(suite, pair);
            suite->api.event_destroy(other_event);
        }
        suite->api.free(pair->buffer);
        contract_case_end(suite);
    }
}

static void objects_run(struct suite *suite, struct device_pair *pair)
{
    INVALID_OUTPUT(buffer, alloc, NULL, TANDEM_BYTES(4), &buffer)
    INVALID(alloc, d, TANDEM_BYTES(4), NULL)
    INVALID_OUTPUT(stream, stream_create, NULL, 0, &stream)
    INVALID(stream_create, d, 0, NULL)
    INVALID_OUTPUT(event, event_record, NULL, &event)
    INVALID(event_record, s, NULL)
    INVALID(memory_stats, NULL, &stats)
    INVALID(memory_stats, d, NULL)
    INVALID(memory_stats, d, &sizeless)
    INVALID(stream_synchronize, NULL, 0)
    INVALID(stream_wait_event, NULL, other_event)
    INVALID(stream_wait_event, s, NULL)
    INVALID(stream_wait_event, s, other_event)
    INVALID(event_wait, NULL, 0)
    if (suite->api.event_elapsed_ns != NULL)
        INVALID(event_elapsed_ns, NULL, NULL, &ns)
}

/* import_host failed, so the plugin does not use the memory. */
static void release_fail(void *user)
{
    case_fail(user, "release was called, although import_host failed");
}

/* Returns true if map works; otherwise skips the case. */
static bool map_works(struct suite *suite)
{
    const enum tandem_status status =
        suite->api.map(s, b, 0, 64, read, t, &mapped);

    if (status == TANDEM_UNSUPPORTED) {
        case_skip(suite, "map: %s", plugin_message(suite));
        return false;
    }
    return expect(suite, status, TANDEM_OK, "a valid map") &&
           CALL_OK(unmap, s, b, mapped);
}

#define INVALID_MAP(function, ...)                                             \
    if (call_begin(suite, pair, #function "(" #__VA_ARGS__ ")"))               \
        call_end(suite, pair,                                                  \
                 map_works(suite) ? suite->api.function(__VA_ARGS__)           \
                                  : TANDEM_UNSUPPORTED);

/* Optional functions of the table. */
static void optional_functions_run(struct suite *suite,
                                   struct device_pair *pair)
{
    if (suite->api.import_host != NULL) {
        INVALID_OUTPUT(buffer, import_host, NULL, host, 64, release_fail, suite,
                       &buffer)
        INVALID(import_host, d, NULL, 64, release_fail, suite, &buffer)
        INVALID(import_host, d, host, 64, release_fail, suite, NULL)
    }
    if (suite->api.host_alloc != NULL) {
        INVALID_OUTPUT(memory, host_alloc, NULL, 64, &memory)
        INVALID(host_alloc, d, 64, NULL)
    }
    if (suite->api.buffer_seal != NULL) {
        INVALID(buffer_seal, NULL)
        INVALID(buffer_seal, freed)
    }
    if (suite->api.trim != NULL)
        INVALID(trim, NULL, 0)
}

static void maps_run(struct suite *suite, struct device_pair *pair)
{
    if (suite->api.map == NULL)
        return;
    INVALID_MAP(map, NULL, b, 0, 64, read, t, &memory)
    INVALID_MAP(map, s, NULL, 0, 64, read, t, &memory)
    INVALID_MAP(map, s, b, 0, 64, read, t, NULL)
    INVALID_MAP(map, s, b, 4000, 97, read, t, &memory)
    INVALID_MAP(map, s, b, 0, 64, 0, t, &memory)
    INVALID_MAP(map, s, other, 0, 64, read, t, &memory)
    INVALID_MAP(unmap, s, b, host)
}

void invalid_memory_run(struct suite *suite)
{
    static struct device_pair pair;

    transfers_run(suite, &pair);
    freed_handles_run(suite, &pair);
    objects_run(suite, &pair);
    optional_functions_run(suite, &pair);
    maps_run(suite, &pair);
}
