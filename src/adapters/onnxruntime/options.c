/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the provider's options; see options.h. */
#include <config.h>

#include "adapters/onnxruntime/options.h"
#include "adapters/onnxruntime/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ONNX Runtime stores a provider's options in the session's configuration under
 * "ep.", the provider's name in lower case, and a point. */
#define PREFIX "ep.tandemexecutionprovider."
#define MAX_VALUE_BYTES 512u

/* State of options_read.  `status` is the first failure. */
struct reader {
    const struct ort_api *api;
    const struct OrtSessionOptions *session;
    struct OrtStatus *status;
    char value[MAX_VALUE_BYTES]; /* of the option that was read last */
};

/* Makes the message the error, unless there is one. */
static void reader_fail(struct reader *reader, const char *message)
{
    if (reader->status == NULL)
        reader->status =
            reader->api->CreateStatus(ORT_INVALID_ARGUMENT, message);
}

static void option_reject(struct reader *reader, const char *name,
                          const char *expected)
{
    char message[MAX_VALUE_BYTES + 1280];

    snprintf(message, sizeof(message),
             PROVIDER_NAME ": option %s has the value \"%s\"; "
                           "expected %s",
             name, reader->value, expected);
    reader_fail(reader, message);
}

/* Reads an option to reader->value.  Returns false if it is not set. */
static bool option_read(struct reader *reader, const char *name)
{
    char key[64];
    size_t bytes = sizeof(reader->value);
    struct OrtStatus *status;

    snprintf(key, sizeof(key), PREFIX "%s", name);
    reader->value[0] = '\0';
    status = reader->api->GetSessionConfigEntry(reader->session, key,
                                                reader->value, &bytes);
    if (status == NULL)
        return true;
    reader->api->ReleaseStatus(status);
    if (bytes <= sizeof(reader->value))
        return false;
    option_reject(reader, name, "at most 511 bytes");
    return false;
}

/* Sets *out to true if the option has the second value, to false if it has the
 * first one or is not set. */
static void option_choose(struct reader *reader, const char *name,
                          const char *first, const char *second, bool *out)
{
    char expected[64];

    *out = false;
    if (!option_read(reader, name) || strcmp(reader->value, first) == 0)
        return;
    *out = strcmp(reader->value, second) == 0;
    snprintf(expected, sizeof(expected), "%s or %s", first, second);
    if (!*out)
        option_reject(reader, name, expected);
}

bool options_name_cpu(const struct ort_api *api,
                      const struct OrtSessionOptions *session)
{
    struct reader reader = {.api = api, .session = session};
    const bool cpu =
        option_read(&reader, "device") && strcmp(reader.value, "cpu") == 0;

    if (reader.status != NULL) /* options_read reports it */
        api->ReleaseStatus(reader.status);
    return cpu;
}

/* Sets *out to the device that TANDEM_DEVICE names, if it is set. */
static void device_variable(struct reader *reader,
                            struct tandem_context *context, uint32_t *out)
{
    char message[1024];
#ifdef HAVE_SECURE_GETENV
    const char *name = secure_getenv("TANDEM_DEVICE");
#else
    const char *name = NULL; /* libtandem reads no variables either */
#endif

    if (name == NULL || name[0] == '\0' ||
        tandem_device_find(context, name, out) == TANDEM_OK)
        return;
    snprintf(message, sizeof(message),
             PROVIDER_NAME ": TANDEM_DEVICE: %.800s; unset TANDEM_DEVICE to "
                           "let Tandem choose",
             tandem_last_error());
    reader_fail(reader, message);
}

/* The option takes precedence over TANDEM_DEVICE. But if TANDEM_DEVICE names no
 * device, the context runs nothing, unless it is that of the CPU sessions. */
static void device_option(struct reader *reader, struct tandem_context *context,
                          uint32_t *out)
{
    const bool is_set = option_read(reader, "device");
    char message[MAX_VALUE_BYTES + 640];

    *out = TANDEM_ANY_DEVICE;
    if (!is_set || strcmp(reader->value, "cpu") != 0)
        device_variable(reader, context, out);
    if (!is_set || strcmp(reader->value, "auto") == 0 ||
        tandem_device_find(context, reader->value, out) == TANDEM_OK)
        return;
    snprintf(message, sizeof(message),
             PROVIDER_NAME ": option device has the value \"%s\": %.512s; "
                           "expected auto, cpu or opencl:N",
             reader->value, tandem_last_error());
    reader_fail(reader, message);
}

/* Reads "NAME:1x3x640x640" up to a semicolon or the end.  A name may contain
 * colons.  Returns the rank, or 0 if the entry is wrong. */
static uint32_t shape_parse(const char *entry, size_t *out_name_length,
                            int64_t out_shape[TANDEM_MAX_RANK])
{
    const char *end = entry + strcspn(entry, ";"), *at = end;
    uint32_t rank = 0;

    while (at > entry && *at != ':')
        at--;
    *out_name_length = (size_t)(at - entry);
    if (at == entry)
        return 0;
    do {
        char *next;
        const long long length = strtoll(++at, &next, 10);

        if (*at < '0' || *at > '9' || next > end || length > INT32_MAX ||
            rank == TANDEM_MAX_RANK)
            return 0;
        out_shape[rank++] = length;
        at = next;
    } while (*at == 'x');
    return at == end ? rank : 0;
}

uint32_t options_shape_entry(const struct provider_options *options,
                             uint32_t index, const char **out_name,
                             size_t *out_name_length,
                             int64_t out_shape[TANDEM_MAX_RANK])
{
    const char *entry = options->shapes;

    for (uint32_t i = 0; i < index && *entry != '\0'; i++) {
        entry += strcspn(entry, ";");
        entry += *entry == ';';
    }
    *out_name = entry;
    return shape_parse(entry, out_name_length, out_shape);
}

uint32_t options_shape(const struct provider_options *options, const char *name,
                       int64_t out_shape[TANDEM_MAX_RANK])
{
    const char *entry;
    size_t length;
    uint32_t rank;

    for (uint32_t i = 0; (rank = options_shape_entry(options, i, &entry,
                                                     &length, out_shape)) > 0;
         i++) {
        if (strlen(name) == length && memcmp(name, entry, length) == 0)
            return rank;
    }
    return 0;
}

static void shapes_option(struct reader *reader, char out[MAX_VALUE_BYTES])
{
    int64_t shape[TANDEM_MAX_RANK];
    const char *entry = reader->value;
    size_t length;

    if (!option_read(reader, "shapes"))
        return;
    while (*entry != '\0') {
        if (shape_parse(entry, &length, shape) == 0) {
            option_reject(reader, "shapes",
                          "NAME:LENGTHxLENGTH... for each input, separated by "
                          "semicolons, for example "
                          "images:1x3x640x640;ids:1x128");
            return;
        }
        entry += strcspn(entry, ";");
        entry += *entry == ';';
    }
    memcpy(out, reader->value, MAX_VALUE_BYTES);
}

/* Rejects a file that cannot be written. */
static void explain_option(struct reader *reader, char out[MAX_VALUE_BYTES])
{
    char expected[128];
    FILE *file;

    if (!option_read(reader, "explain") || reader->value[0] == '\0')
        return;
    file = fopen(reader->value, "ae");
    if (file == NULL) {
        snprintf(expected, sizeof(expected), "a file that can be written (%s)",
                 strerror(errno));
        option_reject(reader, "explain", expected);
        return;
    }
    fclose(file);
    memcpy(out, reader->value, MAX_VALUE_BYTES);
}

/* Rejects options that do not exist, such as misspelt ones. */
static void unknown_options_reject(struct reader *reader)
{
    static const char *const known[] = {"device",    "claim",   "precision",
                                        "first_run", "explain", "shapes"};
    struct OrtKeyValuePairs *pairs = NULL;
    const char *const *keys, *const *values;
    char message[512];
    size_t count;

    reader->status =
        reader->api->GetSessionOptionsConfigEntries(reader->session, &pairs);
    if (reader->status != NULL)
        return;
    reader->api->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count && reader->status == NULL; i++) {
        const char *name = keys[i] + strlen(PREFIX);
        size_t k = 0;

        if (strncmp(keys[i], PREFIX, strlen(PREFIX)) != 0)
            continue;
        while (k < sizeof(known) / sizeof(known[0]) &&
               strcmp(known[k], name) != 0)
            k++;
        if (k < sizeof(known) / sizeof(known[0]))
            continue;
        snprintf(message, sizeof(message),
                 PROVIDER_NAME
                 ": there is no option \"%.200s\"; expected "
                 "device, claim, precision, first_run, explain or "
                 "shapes",
                 name);
        reader->status =
            reader->api->CreateStatus(ORT_INVALID_ARGUMENT, message);
    }
    reader->api->ReleaseKeyValuePairs(pairs);
}

struct OrtStatus *options_read(struct provider_options *options,
                               const struct ort_api *api,
                               const struct OrtSessionOptions *session,
                               struct tandem_context *context)
{
    struct reader reader = {.api = api, .session = session};
    bool all, tf32;

    unknown_options_reject(&reader);
    device_option(&reader, context, &options->device);
    option_choose(&reader, "claim", "cost", "all", &all);
    options->claim = all ? CLAIM_ALL : CLAIM_BY_COST;
    option_choose(&reader, "precision", "f32", "tf32", &tf32);
    options->gemm_flags = tf32 ? TANDEM_GEMM_ALLOW_TF32 : 0;
    option_choose(&reader, "first_run", "cpu", "wait",
                  &options->wait_for_compilation);
    shapes_option(&reader, options->shapes);
    explain_option(&reader, options->explain);
    return reader.status;
}
