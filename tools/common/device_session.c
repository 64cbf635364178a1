/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device with a stream; see device_session.h.
 */
#include <config.h>

#include "device_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is written once from the host; the rest is copied on the device. */
#define SEED_BYTES (UINT64_C(1) << 20)

enum tandem_status lane_open(struct lane *lane, struct tandem_context *context,
                             uint32_t device)
{
    enum tandem_status status;

    memset(lane, 0, sizeof *lane);
    lane->index = device;
    lane->info.struct_size = sizeof lane->info;
    status = tandem_device_describe(context, device, &lane->info);
    if (status == TANDEM_OK)
        status = tandem_device_backend(context, device, &lane->backend,
                                       &lane->device);
    if (status == TANDEM_OK)
        status = lane->backend->stream_create(lane->device, 0, &lane->stream);
    return status;
}

void lane_close(struct lane *lane)
{
    if (lane->stream != NULL)
        lane->backend->stream_destroy(lane->stream);
    lane->stream = NULL;
}

enum tandem_status lane_synchronize(struct lane *lane)
{
    return lane->backend->stream_synchronize(lane->stream,
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

/* Doubles what is known until the buffer is full. */
static enum tandem_status spread_seed(struct lane *lane,
                                      struct tandem_buffer *buffer,
                                      uint64_t known, uint64_t bytes)
{
    enum tandem_status status = TANDEM_OK;

    while (known < bytes && status == TANDEM_OK) {
        uint64_t part = known < bytes - known ? known : bytes - known;

        status = lane->backend->copy(lane->stream, buffer, known, buffer, 0,
                                     part);
        known += part;
    }
    return status;
}

enum tandem_status lane_buffer(struct lane *lane, uint64_t bytes,
                               int64_t limit, struct tandem_buffer **out)
{
    uint64_t known = bytes < SEED_BYTES ? bytes : SEED_BYTES;
    void *seed = calloc(1, known + 4);
    enum tandem_status status;

    *out = NULL;
    if (seed == NULL)
        return TANDEM_OUT_OF_MEMORY;
    seed_fill(seed, known, limit);
    status = lane->backend->alloc(lane->device, bytes, out);
    if (status == TANDEM_OK && bytes > 0)
        status = lane->backend->upload(lane->stream, *out, 0, seed, known, 0);
    if (status == TANDEM_OK)
        status = spread_seed(lane, *out, known, bytes);
    if (status != TANDEM_OK) {
        lane->backend->free(*out);
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
