/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the contract cases share; see contract.h. */
#include "contract.h"

#include "../../tools/common/tensor_call.h"

#include "operator_list.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CASE_OBJECTS 4u

/* The objects of the current case. */
static struct vector *vectors;
static struct tandem_stream *streams[CASE_OBJECTS];
static struct tandem_device *devices[CASE_OBJECTS];
static uint32_t stream_count, device_count;

void contract_case_end(struct suite *suite)
{
    while (stream_count > 0)
        suite->api.stream_destroy(streams[--stream_count]);
    while (vectors != NULL)
        vector_free(suite, vectors);
    while (device_count > 0)
        device_close(suite, devices[device_count - 1]);
    case_end(suite);
}

void contract_cases_run(struct suite *suite, const char *group,
                        const struct contract_case *cases, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (case_begin(suite, group, "%s", cases[i].name)) {
            if (!cases[i].adds || require_add(suite, NULL))
                cases[i].run(suite);
            contract_case_end(suite);
        }
}

struct vector *vector_new(struct suite *suite, struct tandem_device *device,
                          struct tandem_stream *stream, int64_t elements,
                          float first, float step)
{
    uint64_t bytes = (uint64_t)elements * sizeof(float);
    struct vector *vector = must_allocate(sizeof(*vector));

    vector->elements = elements;
    vector->values = must_allocate(bytes);
    for (int64_t i = 0; i < elements; i++)
        vector->values[i] = first + step * (float)i;
    vector->device = device == NULL ? suite->device : device;
    vector->next = vectors;
    vectors = vector;
    if (stream == NULL)
        stream = suite->stream;
    if (CALL_OK(alloc, vector->device, TANDEM_BYTES(bytes), &vector->buffer) &&
        CALL_OK(upload, stream, vector->buffer, 0, vector->values, bytes, 0))
        return vector;
    return NULL;
}

void vector_free(struct suite *suite, struct vector *vector)
{
    struct vector **link = &vectors;

    while (*link != vector)
        link = &(*link)->next;
    *link = vector->next;
    suite->api.free(vector->buffer);
    free(vector->values);
    free(vector);
}

struct tandem_device *device_new(struct suite *suite, const char *key,
                                 const char *value)
{
    struct tandem_device *device = NULL;

    if (EXPECT(suite, device_count < CASE_OBJECTS) &&
        EXPECT_OK(suite, suite_open(suite, key, value, &device)))
        devices[device_count++] = device;
    return device;
}

void device_close(struct suite *suite, struct tandem_device *device)
{
    uint32_t i = 0;

    while (devices[i] != device)
        i++;
    devices[i] = devices[--device_count];
    for (struct vector *v = vectors; v != NULL; v = v->next)
        if (v->device == device)
            v->buffer = NULL;
    suite->api.close(device);
}

struct tandem_stream *stream_new(struct suite *suite,
                                 struct tandem_device *device, uint32_t flags)
{
    struct tandem_stream *stream = NULL;

    if (EXPECT(suite, stream_count < CASE_OBJECTS) &&
        CALL_OK(stream_create, device == NULL ? suite->device : device, flags,
                &stream) &&
        device == NULL)
        streams[stream_count++] = stream;
    return stream;
}

struct tandem_tensor_desc flat_desc(struct tandem_buffer *buffer,
                                    uint32_t dtype, int64_t elements)
{
    struct tandem_tensor_desc desc = {.buffer = buffer,
                                      .dtype = dtype,
                                      .rank = 1,
                                      .shape = {elements},
                                      .strides = {1}};

    return desc;
}

static struct tandem_tensor_desc vector_desc(const struct vector *vector)
{
    return flat_desc(vector->buffer, TANDEM_F32, vector->elements);
}

enum tandem_status vector_download(struct suite *suite,
                                   struct tandem_stream *stream,
                                   struct vector *vector)
{
    uint64_t bytes = (uint64_t)vector->elements * sizeof(float);

    memset(vector->values, 0xa5, bytes);
    return suite->api.download(stream == NULL ? suite->stream : stream,
                               vector->buffer, 0, vector->values, bytes, 0,
                               SUITE_TIMEOUT_NS);
}

bool expect_vector(struct suite *suite, struct tandem_stream *stream,
                   struct vector *vector, float first, float step,
                   const char *what)
{
    enum tandem_status status = vector_download(suite, stream, vector);

    if (!expect(suite, status, TANDEM_OK, "download of %s", what))
        return false;
    for (int64_t i = 0; i < vector->elements; i++) {
        float want = first + step * (float)i;

        if (vector->values[i] != want) {
            case_fail(suite, "%s: element %lld is %.9g, expected %.9g", what,
                      (long long)i, (double)vector->values[i], (double)want);
            return false;
        }
    }
    return true;
}

static struct tandem_op add_op(const double *value)
{
    return (struct tandem_op){.struct_size = sizeof(struct tandem_op),
                              .id = TANDEM_OP_ADD,
                              .float_count = 1,
                              .floats = value};
}

enum tandem_status launch_add(struct suite *suite, struct tandem_stream *stream,
                              const struct vector *target,
                              const struct vector *source, double value)
{
    struct tandem_tensor_desc in = vector_desc(source);
    struct tandem_tensor_desc out = vector_desc(target);
    const struct tandem_tensor_desc *ins[] = {&in, NULL}, *outs[] = {&out};
    struct tandem_op op = add_op(&value);
    enum tandem_status status;

    status = tensors_launch(
        &suite->api, target->device != NULL ? target->device : suite->device,
        stream == NULL ? suite->stream : stream, &op, ins, 2, outs, 1, 0);
    /* The caller may change all three as soon as launch has returned. */
    memset(&in, 0x5a, sizeof(in));
    memset(&out, 0x5a, sizeof(out));
    memset(&op, 0x5a, sizeof(op));
    value = 12345.0;
    return status;
}

/* Returns the status of a query for launch_add over this many elements. */
static enum tandem_status
add_query(struct suite *suite, struct tandem_device *device, int64_t elements)
{
    struct tandem_tensor_desc desc = flat_desc(NULL, TANDEM_F32, elements);
    const struct tandem_tensor_desc *ins[] = {&desc, NULL}, *outs[] = {&desc};
    double value = 1.0;
    struct tandem_op op = add_op(&value);

    return tensors_supported(&suite->api,
                             device == NULL ? suite->device : device, &op, ins,
                             2, outs, 1);
}

bool require_add(struct suite *suite, struct tandem_device *device)
{
    static const int64_t lengths[] = {1, 64, 777, 1000, 4096, 300000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        enum tandem_status status = add_query(suite, device, lengths[i]);

        if (status == TANDEM_UNSUPPORTED)
            case_skip(suite, "needs the operator add, of any length");
        else if (!expect(suite, status, TANDEM_OK,
                         "a query of add with a scalar"))
            return false;
        if (status != TANDEM_OK)
            return false;
    }
    return true;
}

bool needs_cap(struct suite *suite, uint32_t cap, const char *name)
{
    if (suite_has_capability(suite, cap))
        return true;
    case_skip(suite, "needs %s", name);
    return false;
}

bool has_function(struct suite *suite, bool is_there, const char *name)
{
    if (!is_there)
        case_skip(suite, "%s is left to the loader", name);
    return is_there;
}

const void *suite_extension(const struct suite *suite, const char *name)
{
    return suite->api.extension == NULL ? NULL : suite->api.extension(name);
}

bool needs_test_key(struct suite *suite, const char *key)
{
    const struct tandem_test_extension *extension =
        suite_extension(suite, TANDEM_EXTENSION_TEST);
    const char *const *known = extension == NULL ? NULL : extension->open_keys;

    while (known != NULL && *known != NULL)
        if (strcmp(*known++, key) == 0)
            return true;
    case_skip(suite, "needs the key %s of the extension test.1", key);
    return false;
}

bool pair_open(struct suite *suite, struct device_pair *pair)
{
    const struct tandem_backend *api = &suite->api;

    pair->buffer = pair->other_buffer = pair->freed = NULL;
    pair->other = device_new(suite, NULL, NULL);
    if (pair->other == NULL)
        return false;
    pair->other_stream = stream_new(suite, pair->other, 0);
    if (pair->other_stream == NULL ||
        !CALL_OK(alloc, pair->other, TANDEM_BYTES(PAIR_BYTES),
                 &pair->other_buffer) ||
        !CALL_OK(alloc, suite->device, TANDEM_BYTES(PAIR_BYTES),
                 &pair->freed) ||
        !CALL_OK(alloc, suite->device, TANDEM_BYTES(PAIR_BYTES), &pair->buffer))
        return false;
    api->free(pair->freed);
    return CALL_OK(upload, suite->stream, pair->buffer, 0, pair->contents,
                   PAIR_BYTES, 0);
}

void pair_check(struct suite *suite, const struct device_pair *pair)
{
    unsigned char now[PAIR_BYTES];

    if (CALL_OK(download, suite->stream, pair->buffer, 0, now, PAIR_BYTES, 0,
                SUITE_TIMEOUT_NS) &&
        memcmp(now, pair->contents, PAIR_BYTES) != 0)
        case_fail(suite, "the rejected call wrote the buffer");
}

bool stream_finish(struct suite *suite, struct tandem_stream *stream)
{
    return CALL_OK(stream_synchronize, stream == NULL ? suite->stream : stream,
                   SUITE_TIMEOUT_NS);
}

struct tandem_memory_stats stats_read(struct suite *suite,
                                      struct tandem_device *device)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    CALL_OK(memory_stats, device == NULL ? suite->device : device, &stats);
    return stats;
}

void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000u,
                            .tv_nsec = (long)(ms % 1000u) * 1000000L};

    nanosleep(&time, NULL);
}

bool expect_error(struct suite *suite, enum tandem_status got,
                  enum tandem_status want, const char *what)
{
    const char *message = plugin_message(suite);

    if (got != want) {
        case_fail(suite, "%s: %s, expected %s (%s)", what, status_text(got),
                  status_text(want), got != TANDEM_OK ? message : "");
        return false;
    }
    if (message[0] == '\0') {
        case_fail(suite, "%s: failed without a message", what);
        return false;
    }
    return true;
}
