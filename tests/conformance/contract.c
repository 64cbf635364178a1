/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the contract cases share; see contract.h. */
#include "contract.h"

#include "operand.h"
#include "operator_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool vector_new(struct suite *suite, struct tandem_device *device,
                struct tandem_stream *stream, struct vector *vector,
                int64_t elements, float first, float step)
{
    uint64_t bytes = (uint64_t)elements * sizeof(float);

    vector->buffer = NULL;
    vector->elements = elements;
    vector->values = must_allocate(bytes);
    for (int64_t i = 0; i < elements; i++)
        vector->values[i] = first + step * (float)i;
    if (device == NULL)
        device = suite->device;
    if (stream == NULL)
        stream = suite->stream;
    return EXPECT_OK(suite, suite->api.alloc(device, bytes, &vector->buffer)) &&
           EXPECT_OK(suite, suite->api.upload(stream, vector->buffer, 0,
                                              vector->values, bytes, 0));
}

void vector_free(struct suite *suite, struct vector *vector)
{
    suite->api.free(vector->buffer);
    free(vector->values);
    memset(vector, 0, sizeof(*vector));
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

enum tandem_status launch_add(struct suite *suite, struct tandem_stream *stream,
                              const struct vector *target,
                              const struct vector *source, double value)
{
    struct tandem_tensor_desc in = vector_desc(source);
    struct tandem_tensor_desc out = vector_desc(target);
    const struct tandem_tensor_desc *ins[] = {&in, NULL}, *outs[] = {&out};
    struct tandem_op op = {.struct_size = sizeof(op),
                           .id = TANDEM_OP_ADD,
                           .float_count = 1,
                           .floats = &value};
    enum tandem_status status;

    status = suite->api.launch(stream == NULL ? suite->stream : stream, &op,
                               ins, 2, outs, 1);
    /* The caller may change all three as soon as launch has returned. */
    memset(&in, 0x5a, sizeof(in));
    memset(&out, 0x5a, sizeof(out));
    memset(&op, 0x5a, sizeof(op));
    value = 12345.0;
    return status;
}

/* Returns the result of supports for launch_add over this many elements. */
static enum tandem_status add_supports(struct suite *suite,
                                       struct tandem_device *device,
                                       int64_t elements)
{
    struct tandem_tensor_desc desc = flat_desc(NULL, TANDEM_F32, elements);
    const struct tandem_tensor_desc *ins[] = {&desc, NULL}, *outs[] = {&desc};
    double value = 1.0;
    struct tandem_op op = {.struct_size = sizeof(op),
                           .id = TANDEM_OP_ADD,
                           .float_count = 1,
                           .floats = &value};

    return suite->api.supports(device == NULL ? suite->device : device, &op,
                               ins, 2, outs, 1);
}

bool require_add(struct suite *suite, struct tandem_device *device)
{
    static const int64_t lengths[] = {1, 64, 777, 1000, 4096, 300000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        enum tandem_status status = add_supports(suite, device, lengths[i]);

        if (status == TANDEM_UNSUPPORTED)
            case_skip(suite, "needs the operator add, of any length");
        else if (!expect(suite, status, TANDEM_OK, "supports(add, a scalar)"))
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

bool stream_finish(struct suite *suite, struct tandem_stream *stream)
{
    return EXPECT_OK(
        suite, suite->api.stream_synchronize(
                   stream == NULL ? suite->stream : stream, SUITE_TIMEOUT_NS));
}

struct tandem_memory_stats stats_read(struct suite *suite,
                                      struct tandem_device *device)
{
    struct tandem_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_OK(suite, suite->api.memory_stats(
                         device == NULL ? suite->device : device, &stats));
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
