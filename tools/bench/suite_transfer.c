/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suite "transfer": uploads and downloads of pageable memory, pinned memory and
 * mapped buffers through the plugin, compared with OpenCL.
 */
#include <config.h>

#include "raw_opencl.h"

#include <stdlib.h>
#include <string.h>

/* An implementation with its device buffer and host memory. */
struct transfer_case {
    struct bench *bench;
    struct raw_opencl *raw_opencl; /* NULL for Tandem */
    size_t bytes;
    bool up;
    void *memory;
    void *pageable; /* `memory` is this, or is mapped from `pinned` */
    cl_mem pinned;
    struct tandem_buffer *buffer;
    cl_mem target;
};

void transfer_list(struct list *list)
{
    static const char *const memories[] = {"pageable", "pinned", "mapped"};
    static const int sizes[] = {12, 16, 20, 22, 24, 28}; /* log2 of bytes */

    for (size_t i = 0; i < COUNT(memories); i++)
        for (size_t j = 0; j < COUNT(sizes); j++) {
            const int64_t bytes = INT64_C(1) << sizes[j];

            list_add_shape(list, "transfer", 1, &bytes, memories[i], "upload");
            list_add_shape(list, "transfer", 1, &bytes, memories[i],
                           "download");
        }
}

/* ---- sides ---- */

/* Waits after an upload, so the time contains the arrival of the data. */
static bool our_copy(void *transfer_case)
{
    struct transfer_case *c = transfer_case;
    struct device_session *session = &c->bench->session;

    if (!c->up)
        return session->backend->download(session->stream, c->buffer, 0,
                                          c->memory, c->bytes, 0,
                                          TANDEM_TIMEOUT_INFINITE) == TANDEM_OK;
    return session->backend->upload(session->stream, c->buffer, 0, c->memory,
                                    c->bytes, 0) == TANDEM_OK &&
           device_session_synchronize(session) == TANDEM_OK;
}
static BENCH_FN(our_copies, our_copy, NULL);

static bool raw_copy(void *transfer_case)
{
    struct transfer_case *c = transfer_case;
    cl_command_queue queue = c->raw_opencl->queue;

    if (c->up)
        return clEnqueueWriteBuffer(queue, c->target, CL_TRUE, 0, c->bytes,
                                    c->memory, 0, NULL, NULL) == CL_SUCCESS;
    return clEnqueueReadBuffer(queue, c->target, CL_TRUE, 0, c->bytes,
                               c->memory, 0, NULL, NULL) == CL_SUCCESS;
}
static BENCH_FN(raw_copies, raw_copy, NULL);

/* Copies between the caller's memory and the mapped buffer. */
static void mapped_copy(struct transfer_case *c, void *mapped)
{
    memcpy(c->up ? mapped : c->memory, c->up ? c->memory : mapped, c->bytes);
}

static bool our_map(void *transfer_case)
{
    struct transfer_case *c = transfer_case;
    struct device_session *session = &c->bench->session;
    void *mapped;

    if (session->backend->map(session->stream, c->buffer, 0, c->bytes,
                              c->up ? TANDEM_MAP_WRITE : TANDEM_MAP_READ,
                              TANDEM_TIMEOUT_INFINITE, &mapped) != TANDEM_OK)
        return false;
    mapped_copy(c, mapped);
    return session->backend->unmap(session->stream, c->buffer, mapped) ==
               TANDEM_OK &&
           device_session_synchronize(session) == TANDEM_OK;
}
static BENCH_FN(our_maps, our_map, NULL);

static bool raw_map(void *transfer_case)
{
    struct transfer_case *c = transfer_case;
    cl_command_queue queue = c->raw_opencl->queue;
    cl_int error;
    void *mapped =
        clEnqueueMapBuffer(queue, c->target, CL_TRUE,
                           c->up ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ,
                           0, c->bytes, 0, NULL, NULL, &error);

    if (error != CL_SUCCESS)
        return false;
    mapped_copy(c, mapped);
    return clEnqueueUnmapMemObject(queue, c->target, mapped, 0, NULL, NULL) ==
               CL_SUCCESS &&
           clFinish(queue) == CL_SUCCESS;
}
static BENCH_FN(raw_maps, raw_map, NULL);

/* ---- memory ---- */

static void *raw_pinned(struct transfer_case *c)
{
    cl_int error;

    c->pinned = clCreateBuffer(c->raw_opencl->context,
                               CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                               c->bytes, NULL, &error);
    if (c->pinned == NULL)
        return NULL;
    return clEnqueueMapBuffer(c->raw_opencl->queue, c->pinned, CL_TRUE,
                              CL_MAP_READ | CL_MAP_WRITE, 0, c->bytes, 0, NULL,
                              NULL, &error);
}

static void *our_pinned(struct transfer_case *c)
{
    struct device_session *session = &c->bench->session;
    void *memory = NULL;

    session->backend->host_alloc(session->device, c->bytes, &memory);
    return memory;
}

static bool transfer_case_open(struct transfer_case *c, bool pinned)
{
    struct device_session *session = &c->bench->session;

    if (pinned)
        c->memory = c->raw_opencl != NULL ? raw_pinned(c) : our_pinned(c);
    else
        c->memory = c->pageable = aligned_alloc(4096, c->bytes);
    if (c->memory == NULL)
        return false;
    for (size_t i = 0; i < c->bytes / 4; i++)
        ((float *)c->memory)[i] = seed_value(i);
    if (c->raw_opencl != NULL) {
        c->target = raw_opencl_buffer(c->raw_opencl, c->bytes);
        return c->target != NULL;
    }
    return device_session_buffer(session, c->bytes, 0, &c->buffer) == TANDEM_OK;
}

static void transfer_case_close(struct transfer_case *c)
{
    struct device_session *session = &c->bench->session;

    if (c->pinned != NULL) {
        if (c->memory != NULL)
            clEnqueueUnmapMemObject(c->raw_opencl->queue, c->pinned, c->memory,
                                    0, NULL, NULL);
        clFinish(c->raw_opencl->queue);
        clReleaseMemObject(c->pinned);
    } else if (c->raw_opencl == NULL) {
        device_session_synchronize(session);
        if (c->memory != NULL && c->pageable == NULL)
            session->backend->host_free(session->device, c->memory);
    }
    free(c->pageable);
    raw_opencl_free(c->target);
    session->backend->free(c->buffer);
}

/* Transfers new values and checks them at the destination. */
static bool transfer_case_is_correct(struct transfer_case *c, bench_fn run)
{
    struct device_session *session = &c->bench->session;
    uint64_t last = c->bytes / 4 - 1;
    float *host = c->memory, there = 0;
    enum tandem_status status = TANDEM_OK;

    if (c->up) {
        host[0] = host[last] = 2;
    } else {
        const float two = 2;

        status = session->backend->fill(session->stream, c->buffer, 0, c->bytes,
                                        &two, sizeof two);
    }
    if (status == TANDEM_OK && run(c, 1) >= 0 && c->up)
        status = session->backend->download(session->stream, c->buffer,
                                            4 * last, &there, sizeof there, 0,
                                            TANDEM_TIMEOUT_INFINITE);
    if (!c->up)
        there = host[0] == 2 ? host[last] : 0;
    if (status == TANDEM_OK && there == 2)
        return true;
    bench_fail(c->bench, "wrong: what arrives is %g, not 2: %s", (double)there,
               session->backend->last_error());
    return false;
}

/* Returns true if the device can map buffers. */
static bool maps(struct bench *bench, struct transfer_case *c)
{
    struct device_session *session = &bench->session;
    void *mapped;

    if (session->backend->map(session->stream, c->buffer, 0, c->bytes,
                              TANDEM_MAP_READ, TANDEM_TIMEOUT_INFINITE,
                              &mapped) == TANDEM_OK)
        return session->backend->unmap(session->stream, c->buffer, mapped) ==
               TANDEM_OK;
    bench_unavailable(bench, "%s", session->backend->last_error());
    return false;
}

void transfer_run(struct bench *bench)
{
    const struct row *row = bench->row;
    bool mapped = row_has(row, "mapped");
    bool pinned = row_has(row, "pinned");
    struct transfer_case ours = {.bench = bench,
                                 .bytes = (size_t)row->shape[0],
                                 .up = strcmp(row->mode, "upload") == 0};
    struct transfer_case raw = ours, raw_fast = ours;
    struct comparison comparison = {.unit = "GB/s",
                                    .work_amount = (double)ours.bytes};
    bench_fn run = mapped ? our_maps : our_copies;

    raw.raw_opencl = raw_fast.raw_opencl = raw_opencl_of(bench);
    if (raw.raw_opencl == NULL)
        return;
    comparison_add(&comparison, "Tandem", run, &ours);
    comparison_add(&comparison, mapped ? "OpenCL, mapped" : "OpenCL",
                   mapped ? raw_maps : raw_copies, &raw);
    comparison.upper_bound = comparison.implementations[1].name;
    if (!pinned) {
        comparison.upper_bound = "OpenCL, pinned";
        comparison_add(&comparison, comparison.upper_bound, raw_copies,
                       &raw_fast);
    }
    if (!transfer_case_open(&ours, pinned) ||
        !transfer_case_open(&raw, pinned) ||
        !transfer_case_open(&raw_fast, true))
        bench_unavailable(bench, "no memory for it: %s",
                          bench->session.backend->last_error());
    else if ((!mapped || maps(bench, &ours)) &&
             transfer_case_is_correct(&ours, run))
        bench_compare(bench, &comparison);
    transfer_case_close(&raw_fast);
    transfer_case_close(&raw);
    transfer_case_close(&ours);
}
