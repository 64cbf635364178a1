/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contract cases: the function table, describing, opening and closing devices,
 * messages.
 */
#include "contract.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void case_table(struct suite *suite)
{
    const struct tandem_backend *api = &suite->api;

    EXPECT(suite, api->abi_major == TANDEM_ABI_MAJOR);
    EXPECT(suite, api->version[0] != '\0');
    EXPECT(suite, api->name[0] != '\0');
    for (const char *c = api->name; *c != '\0'; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) &&
            *c != '_' && *c != '-')
            case_fail(suite, "a name is [a-z0-9_-]: %s", api->name);
    EXPECT(suite, (api->host_alloc == NULL) == (api->host_free == NULL));
    EXPECT(suite, (api->map == NULL) == (api->unmap == NULL));
    EXPECT(suite, api->prepare != NULL);
    EXPECT(suite, api->prepared_wait != NULL);
    EXPECT(suite, api->prepared_release != NULL);
    EXPECT(suite, api->launch != NULL);
}

static void case_query(struct suite *suite)
{
    EXPECT(suite, suite->query(TANDEM_ABI_MAJOR) != NULL);
    EXPECT(suite,
           suite->query(TANDEM_ABI_MAJOR) == suite->query(TANDEM_ABI_MAJOR));
    EXPECT(suite, suite->query(TANDEM_ABI_MAJOR + 1000u) == NULL);
    EXPECT(suite, suite->query(0) == NULL);
}

static void case_describe(struct suite *suite)
{
    const struct tandem_device_info *info = &suite->info;

    EXPECT(suite, info->kind >= TANDEM_DEVICE_CPU &&
                      info->kind <= TANDEM_DEVICE_ACCELERATOR);
    EXPECT(suite, info->name[0] != '\0');
#define TERMINATED(field)                                                      \
    EXPECT(suite, memchr(info->field, 0, sizeof(info->field)) != NULL)
    TERMINATED(name);
    TERMINATED(vendor);
    TERMINATED(platform);
    TERMINATED(driver_version);
    TERMINATED(pci_address);
    TERMINATED(extensions);
    TERMINATED(quirks);
#undef TERMINATED
    EXPECT(suite, info->memory_bytes > 0 && info->max_alloc_bytes > 0);
    EXPECT(suite, info->duplicate_of >= -1);
}

/* Fails the case if a byte after the first `known` ones is not 0x5a. */
static void expect_untouched(struct suite *suite, const void *structure,
                             size_t known, size_t size)
{
    const unsigned char *bytes = structure;

    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0x5a) {
            case_fail(suite, "byte %zu was written", i);
            break;
        }
}

/* The host knows only the first fields of the struct. */
static void case_describe_short(struct suite *suite)
{
    struct tandem_device_info info;
    size_t known = offsetof(struct tandem_device_info, vendor);

    memset(&info, 0x5a, sizeof(info));
    info.struct_size = known;
    if (CALL_OK(device_describe, suite->options->device, &info)) {
        EXPECT(suite, strcmp(info.name, suite->info.name) == 0);
        expect_untouched(suite, &info, known, sizeof(info));
    }
}

static void case_stats_short(struct suite *suite)
{
    struct tandem_memory_stats stats;
    size_t known = offsetof(struct tandem_memory_stats, limit_bytes);

    memset(&stats, 0x5a, sizeof(stats));
    stats.struct_size = known;
    if (CALL_OK(memory_stats, suite->device, &stats))
        expect_untouched(suite, &stats, known, sizeof(stats));
}

static void case_bad_open(struct suite *suite)
{
    struct tandem_device *device = (struct tandem_device *)(void *)suite;
    struct tandem_device_info info = {.struct_size = sizeof(info)};
    struct tandem_open_options options = {.struct_size = sizeof(options),
                                          .count = 1};
    uint32_t index = suite->options->device;
    enum tandem_status status;

    status = suite->api.open(UINT32_MAX, NULL, &device);
    if (status != TANDEM_NO_DEVICE)
        expect_error(suite, status, TANDEM_INVALID_ARGUMENT,
                     "open of device 4294967295");
    EXPECT(suite, device == NULL);
    status = suite->api.device_describe(UINT32_MAX, &info);
    if (status != TANDEM_NO_DEVICE)
        expect_error(suite, status, TANDEM_INVALID_ARGUMENT,
                     "describe of device 4294967295");
    expect_error(suite, suite->api.device_describe(index, NULL),
                 TANDEM_INVALID_ARGUMENT, "describe into NULL");
    expect_error(suite, suite->api.device_count(NULL), TANDEM_INVALID_ARGUMENT,
                 "device_count into NULL");
    info.struct_size = 0;
    expect_error(suite, suite->api.device_describe(index, &info),
                 TANDEM_INVALID_ARGUMENT, "describe into a struct_size of 0");
    expect_error(suite, suite->api.open(index, NULL, NULL),
                 TANDEM_INVALID_ARGUMENT, "open into NULL");
    device = (struct tandem_device *)(void *)suite;
    expect_error(suite, suite->api.open(index, &options, &device),
                 TANDEM_INVALID_ARGUMENT, "open with one option and no keys");
    EXPECT(suite, device == NULL);
    device = (struct tandem_device *)(void *)suite;
    options = (struct tandem_open_options){.struct_size = 0};
    expect_error(suite, suite->api.open(index, &options, &device),
                 TANDEM_INVALID_ARGUMENT,
                 "open with options whose struct_size is 0");
    EXPECT(suite, device == NULL);
}

static void case_open_close(struct suite *suite)
{
    struct tandem_device *first = device_new(suite, "no.such.key", "1");
    struct tandem_device *second = device_new(suite, NULL, NULL);
    struct tandem_stream *stream;
    struct vector *vector;

    suite->api.close(NULL);
    if (first == NULL || second == NULL)
        return;
    stream = stream_new(suite, second, 0);
    vector = vector_new(suite, second, stream, 1000, 1.0f, 1.0f);
    device_close(suite, first);
    if (stream != NULL && vector != NULL)
        expect_vector(suite, stream, vector, 1.0f, 1.0f,
                      "a buffer after another device was closed");
    /* Closing the device frees the stream and the buffer. */
    device_close(suite, second);
}

struct other_thread {
    struct suite *suite;
    char before[64], after[64];
};

static void *thread_main(void *user)
{
    struct other_thread *other = user;
    const struct tandem_backend *api = &other->suite->api;

    snprintf(other->before, sizeof(other->before), "%s", api->last_error());
    (void)api->device_count(NULL);
    snprintf(other->after, sizeof(other->after), "%s", api->last_error());
    return NULL;
}

static void case_last_error(struct suite *suite)
{
    struct other_thread other = {.suite = suite};
    char message[64];
    pthread_t thread;

    (void)suite->api.alloc(suite->device, TANDEM_BYTES(16), NULL);
    snprintf(message, sizeof(message), "%s", suite->api.last_error());
    EXPECT(suite, message[0] != '\0');
    if (pthread_create(&thread, NULL, thread_main, &other) != 0) {
        case_fail(suite, "no thread could be started");
    } else {
        pthread_join(thread, NULL);
        EXPECT(suite, other.before[0] == '\0');
        EXPECT(suite, other.after[0] != '\0');
        EXPECT(suite, strncmp(message, suite->api.last_error(),
                              sizeof(message) - 1) == 0);
    }
}

static void count_pair(void *user, const char *key, const char *value)
{
    unsigned *count = user;

    if (key != NULL && value != NULL)
        (*count)++;
}

static void case_extension(struct suite *suite)
{
    static const char *const names[] = {TANDEM_EXTENSION_TUNE,
                                        TANDEM_EXTENSION_TEST};
    static const char *const unknown[] = {NULL,      "",       "tune",
                                          "tune.1 ", "TUNE.1", "unknown.1"};
    const struct tandem_test_extension *test;

    if (!HAS_FUNCTION(extension))
        return;
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        EXPECT(suite, suite->api.extension(unknown[i]) == NULL);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const size_t *struct_size = suite->api.extension(names[i]);

        EXPECT(suite, struct_size == suite->api.extension(names[i]));
        EXPECT(suite,
               struct_size == NULL || *struct_size >= 2 * sizeof(void *));
    }
    test = suite->api.extension(TANDEM_EXTENSION_TEST);
    for (size_t i = 0; test != NULL && test->open_keys[i] != NULL; i++)
        EXPECT(suite, strncmp(test->open_keys[i], "test.", 5) == 0);
}

static void case_tune(struct suite *suite)
{
    const struct tandem_tune_extension *extension =
        suite_extension(suite, TANDEM_EXTENSION_TUNE);
    enum tandem_status status;
    unsigned pairs = 0;

    if (extension == NULL) {
        case_skip(suite, "needs the extension tune.1");
        return;
    }
    status = extension->tune(suite->device, 0, count_pair, &pairs);
    if (status != TANDEM_UNSUPPORTED)
        expect(suite, status, TANDEM_OK, "tune with a budget of 0");
    expect(suite, extension->tune(NULL, 0, count_pair, &pairs),
           TANDEM_INVALID_ARGUMENT, "tune(NULL)");
    expect(suite, extension->tune(suite->device, 0, NULL, NULL),
           TANDEM_INVALID_ARGUMENT, "tune without a sink");
}

void contract_device(struct suite *suite)
{
    static const struct contract_case cases[] = {
        {"the table keeps the header's rules", case_table, false},
        {"the query function knows its version", case_query, false},
        {"describe fills the fields", case_describe, false},
        {"describe writes nothing past struct_size", case_describe_short,
         false},
        {"memory_stats writes nothing past struct_size", case_stats_short,
         false},
        {"bad input to describe and open", case_bad_open, false},
        {"opened twice, each apart; close with all still alive",
         case_open_close, false},
        {"each thread has its own last message", case_last_error, false},
        {"extension returns tables by name", case_extension, false},
        {"tune keeps to its budget or declines", case_tune, false},
    };

    contract_cases_run(suite, "device", cases, COUNT_OF(cases));
}
