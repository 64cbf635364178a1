/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a device, and calls that most tests make; see opencl_workload.h. */
#include "opencl_workload.h"

#include "../../tools/common/tensor_call.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct tandem_backend *workload_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    tandem_backend_query_fn query;
    void *symbol;

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    symbol = dlsym(library, TANDEM_BACKEND_QUERY_SYMBOL);
    memcpy(&query, &symbol, sizeof query);
    return symbol ? query(TANDEM_ABI_MAJOR) : NULL;
}

bool record_violation(struct workload *work, const char *what)
{
    if (!work->wrong[0])
        snprintf(work->wrong, sizeof work->wrong, "%s: %s", work->section,
                 what);
    return false;
}

bool call_succeeded(struct workload *work, enum tandem_status status,
                    const char *call)
{
    const char *message;
    char text[256];

    if (status == TANDEM_OK && !work->lost)
        return true;
    message = work->api->last_error();
    if (status == TANDEM_OK) {
        snprintf(text, sizeof text, "%s is OK on a lost device", call);
        record_violation(work, text);
    } else if (status > TANDEM_FAILED || message[0] == '\0') {
        snprintf(text, sizeof text, "%s: status %d, message \"%s\"", call,
                 (int)status, message);
        record_violation(work, text);
    } else if (work->lost && status != TANDEM_DEVICE_LOST) {
        snprintf(text, sizeof text, "%s on a lost device: %d", call,
                 (int)status);
        record_violation(work, text);
    }
    if (work->status == TANDEM_OK)
        work->status = status;
    if (!work->failed[0])
        snprintf(work->failed, sizeof work->failed, "%s: %s: %d: %s",
                 work->section, call, (int)status, message);
    work->lost |= status == TANDEM_DEVICE_LOST;
    return false;
}

bool workload_open(struct workload *work, const char *const *pairs)
{
    const char *keys[8], *values[8];
    struct tandem_open_options options = {
        .struct_size = sizeof options, .keys = keys, .values = values};
    enum tandem_status status;

    for (; pairs && pairs[2 * options.count]; options.count++) {
        keys[options.count] = pairs[2 * options.count];
        values[options.count] = pairs[2 * options.count + 1];
    }
    work->opened++;
    work->section = "open";
    work->lost = false;
    work->device = NULL;
    status = work->api->open(0, &options, &work->device);
    if (status != TANDEM_OK && work->device)
        record_violation(work, "open failed and gave a device");
    call_succeeded(work, status, "open");
    work->lost = false; /* The loss concerned another device. */
    return status == TANDEM_OK;
}

void workload_close(struct workload *work)
{
    work->section = "close";
    work->api->close(work->device);
    work->device = NULL;
}

/* ---- common calls ---- */

bool stream_new(struct workload *work, uint32_t flags,
                struct tandem_stream **out_stream)
{
    const enum tandem_status status =
        work->api->stream_create(work->device, flags, out_stream);

    if (status != TANDEM_OK && *out_stream)
        record_violation(work, "stream_create failed and gave a stream");
    return call_succeeded(work, status, "stream_create");
}

bool buffer_new(struct workload *work, uint64_t bytes,
                struct tandem_buffer **out_buffer)
{
    const enum tandem_status status =
        work->api->alloc(work->device, TANDEM_BYTES(bytes), out_buffer);

    if (status != TANDEM_OK && *out_buffer)
        record_violation(work, "alloc failed and gave a buffer");
    return call_succeeded(work, status, "alloc");
}

void fill_ramp(float *out, uint32_t count, float first, float by)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = first + (float)i * by;
}

bool stream_wait(struct workload *work, struct tandem_stream *stream)
{
    return CALL(work, stream_synchronize, stream, TANDEM_TIMEOUT_INFINITE);
}

bool upload(struct workload *work, struct tandem_buffer *buffer,
            const void *source, uint64_t bytes)
{
    return CALL(work, upload, work->stream, buffer, 0, source, bytes, 0);
}

static bool near(float got, float want)
{
    return got == want || fabsf(got - want) <= 1e-4f * fmaxf(1.0f, fabsf(want));
}

bool range_matches(struct workload *work, struct tandem_buffer *buffer,
                   uint32_t first, const float *want, uint32_t count,
                   const char *what)
{
    /* A lost device may still write to its target later, while another device
     * is tested. */
    static float targets[2][LARGEST];
    float *got = targets[work->opened % 2];
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    char text[256];
    uint32_t i = 0;

    memset(got, 0xff, bytes);
    if (!CALL(work, download, work->stream, buffer, first * sizeof(float), got,
              bytes, 0, TANDEM_TIMEOUT_INFINITE))
        return false;
    while (i < count && near(got[i], want[i]))
        i++;
    if (i == count)
        return true;
    snprintf(text, sizeof text, "%s: element %u is %g, not %g", what, first + i,
             (double)got[i], (double)want[i]);
    return record_violation(work, text);
}

bool content_matches(struct workload *work, struct tandem_buffer *buffer,
                     const float *want, uint32_t count, const char *what)
{
    return range_matches(work, buffer, 0, want, count, what);
}

struct tandem_tensor_desc vector(struct tandem_buffer *buffer, int64_t count)
{
    return (struct tandem_tensor_desc){buffer, 0, TANDEM_F32, 1, {count}, {1}};
}

bool launch(struct workload *work, uint32_t id, const double *floats,
            uint32_t float_count, const int64_t *ints, uint32_t int_count,
            const struct tandem_tensor_desc *const *operands, uint32_t inputs,
            const struct tandem_tensor_desc *output)
{
    const struct tandem_op op = {.struct_size = sizeof op,
                                 .id = id,
                                 .int_count = int_count,
                                 .float_count = float_count,
                                 .ints = ints,
                                 .floats = floats};

    return call_succeeded(work,
                          tensors_launch(work->api, work->device, work->stream,
                                         &op, operands, inputs, &output, 1, 64),
                          "launch");
}

bool launch_add(struct workload *work, struct tandem_buffer *out,
                struct tandem_buffer *a, double by, int64_t count)
{
    const struct tandem_tensor_desc from = vector(a, count),
                                    to = vector(out, count);
    const struct tandem_tensor_desc *operands[2] = {&from, NULL};

    return launch(work, TANDEM_OP_ADD, &by, 1, NULL, 0, operands, 2, &to);
}
