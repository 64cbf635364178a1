/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tandem-bench transfer: memory of the caller's, pinned memory and mapped
 * buffers, both ways, through the plugin against OpenCL's own calls.
 */
#include <config.h>

#include "bench.h"

#include "../common/clock.h"
#include "raw_opencl.h"

#include <stdlib.h>
#include <string.h>

/* One side: a device's buffer and memory of the host. */
struct carriage {
    struct bench *bench;
    struct direct *direct; /* NULL: ours */
    size_t bytes;
    bool up;
    void *memory;
    void *pageable; /* memory is this, or pinned: */
    cl_mem pinned;
    struct tandem_buffer *buffer;
    cl_mem target;
};

void transfer_list(struct list *list)
{
    static const char *const memories[] = {"pageable", "pinned", "mapped"};
    static const int sizes[] = {12, 16, 20, 22, 24, 28}; /* log2 of bytes */

    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            const int64_t bytes = INT64_C(1) << sizes[j];

            list_add_shape(list, "transfer", 1, &bytes, memories[i], "upload");
            list_add_shape(list, "transfer", 1, &bytes, memories[i],
                           "download");
        }
}

/* ---- sides ---- */

static enum tandem_status our_copy(struct carriage *c)
{
    struct lane *lane = &c->bench->lane;

    return c->up ? lane->backend->upload(lane->stream, c->buffer, 0,
                                         c->memory, c->bytes, 0)
                 : lane->backend->download(lane->stream, c->buffer, 0,
                                           c->memory, c->bytes, 0,
                                           TANDEM_TIMEOUT_INFINITE);
}

/* Each upload is waited for: it counts when it has arrived. */
static double our_copies(void *carriage, uint64_t count)
{
    struct carriage *c = carriage;
    uint64_t start = clock_now_ns();

    for (uint64_t i = 0; i < count; i++)
        if (our_copy(c) != TANDEM_OK ||
            (c->up && lane_synchronize(&c->bench->lane) != TANDEM_OK))
            return -1;
    return (double)(clock_now_ns() - start) / (double)count;
}

static double raw_copies(void *carriage, uint64_t count)
{
    struct carriage *c = carriage;
    uint64_t start = clock_now_ns();
    cl_int error = CL_SUCCESS;

    for (uint64_t i = 0; i < count && error == CL_SUCCESS; i++)
        error = c->up ? clEnqueueWriteBuffer(c->direct->queue, c->target,
                                             CL_TRUE, 0, c->bytes, c->memory,
                                             0, NULL, NULL)
                      : clEnqueueReadBuffer(c->direct->queue, c->target,
                                            CL_TRUE, 0, c->bytes, c->memory,
                                            0, NULL, NULL);
    return error == CL_SUCCESS
               ? (double)(clock_now_ns() - start) / (double)count
               : -1;
}

static double our_maps(void *carriage, uint64_t count)
{
    struct carriage *c = carriage;
    struct lane *lane = &c->bench->lane;
    uint32_t flags = c->up ? TANDEM_MAP_WRITE : TANDEM_MAP_READ;
    uint64_t start = clock_now_ns();
    void *mapped;

    for (uint64_t i = 0; i < count; i++) {
        if (lane->backend->map(lane->stream, c->buffer, 0, c->bytes, flags,
                               TANDEM_TIMEOUT_INFINITE, &mapped) != TANDEM_OK)
            return -1;
        memcpy(c->up ? mapped : c->memory, c->up ? c->memory : mapped,
               c->bytes);
        if (lane->backend->unmap(lane->stream, c->buffer, mapped) !=
                TANDEM_OK ||
            lane_synchronize(lane) != TANDEM_OK)
            return -1;
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

static double raw_maps(void *carriage, uint64_t count)
{
    struct carriage *c = carriage;
    cl_map_flags flags = c->up ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ;
    uint64_t start = clock_now_ns();
    cl_int error;

    for (uint64_t i = 0; i < count; i++) {
        void *mapped =
            clEnqueueMapBuffer(c->direct->queue, c->target, CL_TRUE, flags, 0,
                               c->bytes, 0, NULL, NULL, &error);

        if (error != CL_SUCCESS)
            return -1;
        memcpy(c->up ? mapped : c->memory, c->up ? c->memory : mapped,
               c->bytes);
        error = clEnqueueUnmapMemObject(c->direct->queue, c->target, mapped,
                                        0, NULL, NULL);
        if (error != CL_SUCCESS || clFinish(c->direct->queue) != CL_SUCCESS)
            return -1;
    }
    return (double)(clock_now_ns() - start) / (double)count;
}

/* ---- memory ---- */

static void *raw_pinned(struct carriage *c)
{
    cl_int error;

    c->pinned = clCreateBuffer(c->direct->context,
                               CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                               c->bytes, NULL, &error);
    if (c->pinned == NULL)
        return NULL;
    return clEnqueueMapBuffer(c->direct->queue, c->pinned, CL_TRUE,
                              CL_MAP_READ | CL_MAP_WRITE, 0, c->bytes, 0,
                              NULL, NULL, &error);
}

static void *our_pinned(struct carriage *c)
{
    struct lane *lane = &c->bench->lane;
    void *memory = NULL;

    lane->backend->host_alloc(lane->device, c->bytes, &memory);
    return memory;
}

static bool carriage_open(struct carriage *c, bool pinned)
{
    struct lane *lane = &c->bench->lane;

    if (pinned)
        c->memory = c->direct != NULL ? raw_pinned(c) : our_pinned(c);
    else
        c->memory = c->pageable = aligned_alloc(4096, c->bytes);
    if (c->memory == NULL)
        return false;
    for (size_t i = 0; i < c->bytes / 4; i++)
        ((float *)c->memory)[i] = seed_value(i);
    if (c->direct != NULL) {
        c->target = direct_buffer(c->direct, c->bytes);
        return c->target != NULL;
    }
    return lane_buffer(lane, c->bytes, 0, &c->buffer) == TANDEM_OK;
}

static void carriage_close(struct carriage *c)
{
    struct lane *lane = &c->bench->lane;

    if (c->pinned != NULL) {
        if (c->memory != NULL)
            clEnqueueUnmapMemObject(c->direct->queue, c->pinned, c->memory, 0,
                                    NULL, NULL);
        clFinish(c->direct->queue);
        clReleaseMemObject(c->pinned);
    } else if (c->direct == NULL) {
        lane_synchronize(lane);
        if (c->memory != NULL && c->pageable == NULL)
            lane->backend->host_free(lane->device, c->memory);
    }
    free(c->pageable);
    direct_free(c->target);
    lane->backend->free(c->buffer);
}

/* Carries what nothing else put there, and looks at it at the far end. */
static bool carriage_right(struct carriage *c, bench_fn run)
{
    struct lane *lane = &c->bench->lane;
    uint64_t last = c->bytes / 4 - 1;
    float *host = c->memory, there = 0;
    enum tandem_status status = TANDEM_OK;

    if (c->up) {
        host[0] = host[last] = 2;
    } else {
        const float two = 2;

        status = lane->backend->fill(lane->stream, c->buffer, 0, c->bytes,
                                     &two, sizeof two);
    }
    if (status == TANDEM_OK && run(c, 1) >= 0 && c->up)
        status = lane->backend->download(lane->stream, c->buffer, 4 * last,
                                         &there, sizeof there, 0,
                                         TANDEM_TIMEOUT_INFINITE);
    if (!c->up)
        there = host[0] == 2 ? host[last] : 0;
    if (status == TANDEM_OK && there == 2)
        return true;
    bench_fail(c->bench, "wrong: what arrives is %g, not 2: %s", (double)there,
               lane->backend->last_error());
    return false;
}

/* Asked of the plugin: not each device maps. */
static bool maps(struct bench *bench, struct carriage *c)
{
    struct lane *lane = &bench->lane;
    void *mapped;

    if (lane->backend->map(lane->stream, c->buffer, 0, c->bytes,
                           TANDEM_MAP_READ, TANDEM_TIMEOUT_INFINITE,
                           &mapped) == TANDEM_OK)
        return lane->backend->unmap(lane->stream, c->buffer, mapped) ==
               TANDEM_OK;
    bench_absent(bench, "%s", lane->backend->last_error());
    return false;
}

void transfer_run(struct bench *bench)
{
    const struct row *row = bench->row;
    bool mapped = row_has(row, "mapped");
    bool pinned = row_has(row, "pinned");
    struct carriage ours = {.bench = bench,
                            .bytes = (size_t)row->shape[0],
                            .up = strcmp(row->mode, "upload") == 0};
    struct carriage raw = ours, raw_fast = ours;
    struct contest contest = {.unit = "GB/s", .work = (double)ours.bytes};
    bench_fn run = mapped ? our_maps : our_copies;

    raw.direct = raw_fast.direct = direct_of(bench);
    if (raw.direct == NULL)
        return;
    contest_add(&contest, "Tandem", run, &ours);
    contest_add(&contest, mapped ? "OpenCL, mapped" : "OpenCL",
                mapped ? raw_maps : raw_copies, &raw);
    contest.limit = contest.sides[1].name;
    if (!pinned) {
        contest.limit = "OpenCL, pinned";
        contest_add(&contest, contest.limit, raw_copies, &raw_fast);
    }
    if (!carriage_open(&ours, pinned) || !carriage_open(&raw, pinned) ||
        !carriage_open(&raw_fast, true))
        bench_absent(bench, "no memory for it: %s",
                     bench->lane.backend->last_error());
    else if ((!mapped || maps(bench, &ours)) && carriage_right(&ours, run))
        bench_compare(bench, &contest);
    carriage_close(&raw_fast);
    carriage_close(&raw);
    carriage_close(&ours);
}
