/* SPDX-License-Identifier: Apache-2.0 */
/* Device sessions; see device_session.h. */
#include <config.h>

#include "device_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum tandem_status device_session_open(struct device_session *session,
                                       struct tandem_context *context,
                                       uint32_t device)
{
    enum tandem_status status;

    memset(session, 0, sizeof *session);
    session->index = device;
    session->info.struct_size = sizeof session->info;
    status = tandem_device_describe(context, device, &session->info);
    if (status == TANDEM_OK)
        status = tandem_device_backend(context, device, &session->backend,
                                       &session->device);
    if (status == TANDEM_OK)
        status = session->backend->stream_create(session->device, 0,
                                                 &session->stream);
    return status;
}

void device_session_close(struct device_session *session)
{
    if (session->stream != NULL)
        session->backend->stream_destroy(session->stream);
    session->stream = NULL;
}

enum tandem_status device_session_synchronize(struct device_session *session)
{
    return session->backend->stream_synchronize(session->stream,
                                                TANDEM_TIMEOUT_INFINITE);
}

/* Returns a pseudo-random number of 24 bits. */
static uint32_t seed_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

const float *seed_floats(void)
{
    static float values[SEED_COUNT];
    uint32_t state = 12345;

    for (uint32_t i = 0; i < SEED_COUNT && values[SEED_COUNT - 1] == 0; i++)
        values[i] = 0.5f + (float)seed_next(&state) / 16777216.0f;
    return values;
}

/* Fills the buffer with copies of its first `known` bytes. */
static enum tandem_status spread_seed(struct device_session *session,
                                      struct tandem_buffer *buffer,
                                      uint64_t known, uint64_t bytes)
{
    enum tandem_status status = TANDEM_OK;

    while (known < bytes && status == TANDEM_OK) {
        uint64_t part = known < bytes - known ? known : bytes - known;

        status = session->backend->copy(session->stream, buffer, known, buffer,
                                        0, part);
        known += part;
    }
    return status;
}

enum tandem_status device_session_buffer(struct device_session *session,
                                         uint64_t bytes, int64_t limit,
                                         struct tandem_buffer **out)
{
    const uint64_t seed_bytes = SEED_COUNT * sizeof(float);
    const uint64_t known = bytes < seed_bytes ? bytes : seed_bytes;
    int32_t *integers = limit > 0 ? malloc(known + sizeof *integers) : NULL;
    uint32_t state = 12345;
    enum tandem_status status;

    *out = NULL;
    if (limit > 0 && integers == NULL)
        return TANDEM_OUT_OF_MEMORY;
    for (uint64_t i = 0; limit > 0 && i <= known / sizeof *integers; i++)
        integers[i] = (int32_t)(seed_next(&state) % (uint64_t)limit);
    status = session->backend->alloc(session->device, TANDEM_BYTES(bytes), out);
    if (status == TANDEM_OK && bytes > 0)
        status = session->backend->upload(
            session->stream, *out, 0,
            limit > 0 ? (const void *)integers : seed_floats(), known, 0);
    if (status == TANDEM_OK)
        status = spread_seed(session, *out, known, bytes);
    if (status != TANDEM_OK) {
        session->backend->free(*out);
        *out = NULL;
    }
    free(integers);
    return status;
}

enum tandem_status device_name(struct tandem_context *context, uint32_t device,
                               char out[DEVICE_NAME_BYTES])
{
    const char *backend;
    uint32_t index;
    enum tandem_status status =
        tandem_device_name(context, device, &backend, &index);

    out[0] = '\0';
    if (status != TANDEM_OK)
        return status;
    if (index == 0)
        snprintf(out, DEVICE_NAME_BYTES, "%.32s", backend);
    else
        snprintf(out, DEVICE_NAME_BYTES, "%.32s:%u", backend, index);
    return TANDEM_OK;
}
