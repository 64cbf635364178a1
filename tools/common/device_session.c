/* SPDX-License-Identifier: Apache-2.0 */
/* Device sessions; see device_session.h. */
#include <config.h>

#include "device_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are uploaded; copies on the device fill the rest of a buffer. */
#define SEED_BYTES (UINT64_C(1) << 20)

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

static void seed_fill(void *memory, uint64_t bytes, int64_t limit)
{
    uint32_t state = 12345;

    for (uint64_t i = 0; i < bytes / 4; i++) {
        state = state * 1664525u + 1013904223u;
        if (limit > 0)
            ((int32_t *)memory)[i] = (int32_t)((state >> 8) % (uint64_t)limit);
        else
            ((float *)memory)[i] = 0.5f + (float)(state >> 8) / 16777216.0f;
    }
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
    uint64_t known = bytes < SEED_BYTES ? bytes : SEED_BYTES;
    void *seed = calloc(1, known + 4);
    enum tandem_status status;

    *out = NULL;
    if (seed == NULL)
        return TANDEM_OUT_OF_MEMORY;
    seed_fill(seed, known, limit);
    status = session->backend->alloc(session->device, bytes, out);
    if (status == TANDEM_OK && bytes > 0)
        status =
            session->backend->upload(session->stream, *out, 0, seed, known, 0);
    if (status == TANDEM_OK)
        status = spread_seed(session, *out, known, bytes);
    if (status != TANDEM_OK) {
        session->backend->free(*out);
        *out = NULL;
    }
    free(seed);
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
