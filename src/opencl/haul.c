/* SPDX-License-Identifier: Apache-2.0 */
/* Large transfers; see haul.h. */
#include "opencl/haul.h"

#include <sched.h>
#include <string.h>

#include "common/shelter.h"
#include "opencl/mapped.h"
#include "opencl/pinned.h"
#include "opencl/status.h"
#include "opencl/transfer.h"

/* A ring of a few MiB is out of the processor's caches again when the device
 * writes there. */
#define SMALLEST_SLOT_BYTES ((uint64_t)512 << 10)
#define SLOT_BYTES ((uint64_t)1 << 20)
#define LARGEST_SLOT_BYTES ((uint64_t)4 << 20)
#define RING_BYTES ((uint64_t)16 << 20)
/* To pin the ring takes as long as the driver's own way loses over so much. */
#define PAYING_BYTES ((uint64_t)32 << 20)
/* What is larger has a contest of its own. */
#define LARGE_BYTES ((uint64_t)2 << 20)
#define TURNS 3u
/* What is hardly quicker than the driver may have had luck. */
#define MARGIN 1.1
/* Without anything to do for so long, the thread waits in the usual way. */
#define IDLE_TURNS 2000u

/* ---- through the ring ---- */

/* A transfer under way.  Its slots are, in this order, begun (copying to the
 * ring is posted, or the read from the device is enqueued), sent or arrived,
 * and over. */
struct run {
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    uint64_t offset;
    struct copier *copier;
    const struct copier_job *job;
    uint64_t count; /* slots in all */
    uint64_t begun, middle, over;
    cl_event events[COPIER_SLOTS];
};

static uint64_t slot_size(const struct run *run, uint64_t s)
{
    uint64_t left = run->job->bytes - s * run->job->slot_bytes;
    return left < run->job->slot_bytes ? left : run->job->slot_bytes;
}

static unsigned char *slot_memory(const struct run *run, uint64_t s)
{
    return run->job->ring + s % run->job->slots * run->job->slot_bytes;
}

static cl_event *slot_event(struct run *run, uint64_t s)
{
    return &run->events[s % run->job->slots];
}

/* Enqueues the slot's transfer, which begins at once. */
static enum tandem_status slot_transfer(struct run *run, uint64_t s)
{
    uint64_t offset = run->offset + s * run->job->slot_bytes;
    enum tandem_status status =
        run->job->to_ring
            ? transfer_write(run->stream, run->buffer, offset,
                             slot_memory(run, s), slot_size(run, s), CL_FALSE,
                             slot_event(run, s))
            : transfer_read(run->stream, run->buffer, offset,
                            slot_memory(run, s), slot_size(run, s), CL_FALSE,
                            slot_event(run, s));
    return status == TANDEM_OK ? stream_flush(run->stream) : status;
}

/* NOT_READY, without a message: the slot's transfer has not ended within the
 * limit. */
static enum tandem_status slot_await(struct run *run, uint64_t s,
                                     uint64_t limit_ns)
{
    struct tandem_device *device = run->stream->device;
    cl_event *event = slot_event(run, s);
    cl_int state;
    cl_int code = wait_ended(*event, limit_ns, &state);
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return TANDEM_NOT_READY;
    clReleaseEvent(*event);
    *event = NULL;
    return status_from_cl(device, code != CL_SUCCESS ? code : state,
                          "a transfer");
}

/* One round over what may be done; *out_moved: whether anything was. */
static enum tandem_status upload_step(struct run *run, bool *out_moved)
{
    enum tandem_status status = TANDEM_OK;
    *out_moved = true;
    if (run->begun < run->count &&
        run->begun < run->over + run->job->slots) {
        copier_post(run->copier, run->begun++);
        return TANDEM_OK;
    }
    if (run->middle < run->begun && copier_done(run->copier, run->middle)) {
        status = slot_transfer(run, run->middle);
        run->middle += status == TANDEM_OK;
        return status;
    }
    *out_moved = false;
    if (run->over == run->middle)
        return TANDEM_OK;
    status = slot_await(run, run->over, 0);
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_moved = true;
    run->over++;
    return status;
}

static enum tandem_status download_step(struct run *run, bool *out_moved)
{
    enum tandem_status status = TANDEM_OK;
    *out_moved = true;
    if (run->begun < run->count &&
        run->begun < run->over + run->job->slots) {
        status = slot_transfer(run, run->begun);
        run->begun += status == TANDEM_OK;
        return status;
    }
    if (run->over < run->middle && copier_done(run->copier, run->over)) {
        run->over++;
        return TANDEM_OK;
    }
    *out_moved = false;
    if (run->middle == run->begun)
        return TANDEM_OK;
    status = slot_await(run, run->middle, 0);
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_moved = true;
    if (status == TANDEM_OK)
        copier_post(run->copier, run->middle);
    run->middle++;
    return status;
}

/* Nothing was to be done for a while: the device is busy for others, or the
 * processors are. */
static enum tandem_status run_rest(struct run *run)
{
    uint64_t next = run->job->to_ring ? run->over : run->middle;
    cl_int state;
    if (next == (run->job->to_ring ? run->middle : run->begun)) {
        sched_yield();
        return TANDEM_OK;
    }
    cl_int code = wait_ended(*slot_event(run, next),
                             device_limit(run->stream->device), &state);
    /* Its end, good or bad, is for the next step. */
    return code == CL_SUCCESS && state > CL_COMPLETE ? TANDEM_NOT_READY
                                                     : TANDEM_OK;
}

static enum tandem_status run_slots(struct run *run)
{
    enum tandem_status status = TANDEM_OK;
    uint32_t idle = 0;
    bool moved;
    while (status == TANDEM_OK && run->over < run->count) {
        status = run->job->to_ring ? upload_step(run, &moved)
                                   : download_step(run, &moved);
        if (moved || copier_help(run->copier))
            idle = 0;
        else if (status == TANDEM_OK && ++idle > IDLE_TURNS)
            status = run_rest(run);
    }
    return status;
}

/* After a failure: waits for what is under way.  false: it does not end, and
 * the ring is the driver's. */
static bool run_end(struct run *run)
{
    bool ended = true;
    copier_drain(run->copier);
    for (uint32_t i = 0; i < run->job->slots; i++) {
        cl_event event = run->events[i];
        cl_int state = CL_QUEUED;
        if (event == NULL)
            continue;
        ended = wait_ended(event, ended ? device_limit(run->stream->device) : 0,
                           &state) == CL_SUCCESS &&
                state <= CL_COMPLETE && ended;
        clReleaseEvent(event);
    }
    return ended;
}

/* A slot costs the thread some microseconds; the first one's copy, and the
 * last one's transfer, have nothing beside them. */
static uint64_t slot_bytes_of(uint64_t bytes)
{
    uint64_t slot = SMALLEST_SLOT_BYTES;
    while (slot < SLOT_BYTES && slot * 8 < bytes)
        slot *= 2;
    while (slot < LARGEST_SLOT_BYTES && slot * 32 < bytes)
        slot *= 2;
    return slot;
}

static enum tandem_status by_ring(struct haul *haul,
                                  struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, unsigned char *host,
                                  uint64_t bytes, bool up)
{
    const uint64_t slot_bytes = slot_bytes_of(bytes);
    const uint64_t slots = RING_BYTES / slot_bytes;
    const struct copier_job job = {
        .host = host,
        .ring = haul->ring,
        .bytes = bytes,
        .slot_bytes = slot_bytes,
        .slots = slots < COPIER_SLOTS ? (uint32_t)slots : COPIER_SLOTS,
        .to_ring = up};
    struct run run = {.stream = stream,
                      .buffer = buffer,
                      .offset = offset,
                      .copier = &haul->copier,
                      .job = &job,
                      .count = (bytes + slot_bytes - 1) / slot_bytes};
    copier_begin(&haul->copier, &job);
    enum tandem_status status = run_slots(&run);
    if (status != TANDEM_OK && !run_end(&run)) {
        /* The device's pinned memory, and so given back with it. */
        haul->ring = NULL;
        haul->ringless = true;
    }
    return status == TANDEM_NOT_READY
               ? message_set(status, "a transfer of %llu bytes does not end: "
                                     "close the device",
                             (unsigned long long)bytes)
               : status;
}

/* ---- which way ---- */

static void ring_make(struct tandem_device *device)
{
    struct shelter host;
    void *memory;
    shelter_enter(&host);
    enum tandem_status status = pinned_alloc(
        device, RING_BYTES, device_limit(device), &memory);
    device->haul.ring = memory;
    device->haul.ringless = status != TANDEM_OK;
    shelter_leave(&host);
}

/* Whether there is a ring, which is made once it pays. */
static bool ring_there(struct tandem_device *device, uint64_t bytes)
{
    struct haul *haul = &device->haul;
    if (haul->ring != NULL || haul->ringless)
        return haul->ring != NULL;
    haul->moved += bytes;
    if (haul->moved >= PAYING_BYTES || haul->forced >= 0)
        ring_make(device);
    return haul->ring != NULL;
}

static bool way_open(struct tandem_stream *stream, enum haul_way way,
                     uint64_t bytes)
{
    struct tandem_device *device = stream->device;
    const struct platform_device *hardware = device->hardware;
    bool forced = device->haul.forced == (int)way;
    switch (way) {
    case HAUL_RING:
        return ring_there(device, bytes);
    case HAUL_MAPPED:
        return (forced || hardware->unified) &&
               mapped_right(stream, &device->haul.maps);
    default:
        return true;
    }
}

/* Each way in turn, until each has had its turns; then the best. */
static enum haul_way way_choose(struct tandem_stream *stream,
                                struct haul_contest *contest, uint64_t bytes)
{
    int forced = stream->device->haul.forced;
    enum haul_way least = HAUL_DIRECT;
    if (forced >= 0)
        return way_open(stream, (enum haul_way)forced, bytes)
                   ? (enum haul_way)forced
                   : HAUL_DIRECT;
    /* The ring may have been trimmed. */
    if (contest->decided)
        return way_open(stream, (enum haul_way)contest->way, bytes)
                   ? (enum haul_way)contest->way
                   : HAUL_DIRECT;
    for (uint32_t way = HAUL_WAYS; way-- > 0;)
        if (contest->turns[way] < contest->turns[least] &&
            way_open(stream, (enum haul_way)way, bytes))
            least = (enum haul_way)way;
    return least;
}

/* Whether the way may yet have turns. */
static bool way_hopeful(const struct tandem_device *device, enum haul_way way)
{
    switch (way) {
    case HAUL_RING:
        return !device->haul.ringless;
    case HAUL_MAPPED:
        return device->hardware->unified && mapped_hopeful(device->haul.maps);
    default:
        return true;
    }
}

static void contest_note(struct tandem_device *device,
                         struct haul_contest *contest, enum haul_way way,
                         uint64_t bytes, uint64_t ns)
{
    static const char *const names[HAUL_WAYS] = {"the driver", "pinned memory",
                                                 "a map"};
    if (contest->decided)
        return;
    double rate = (double)bytes / (double)(ns + 1);
    if (rate > contest->rate[way])
        contest->rate[way] = rate;
    contest->turns[way]++;
    contest->decided = true;
    for (uint32_t i = 0; i < HAUL_WAYS; i++) {
        if (contest->rate[i] > contest->rate[contest->way] * MARGIN)
            contest->way = i;
        contest->decided &= contest->turns[i] >= TURNS ||
                            !way_hopeful(device, (enum haul_way)i);
    }
    if (!contest->decided)
        return;
    device_log(device, TANDEM_LOG_DEBUG,
               "%s go by %s: %.1f GB/s; by the driver %.1f",
               contest >= device->haul.contests[1] ? "uploads" : "downloads",
               names[contest->way], contest->rate[contest->way],
               contest->rate[HAUL_DIRECT]);
}

static enum tandem_status by_driver(struct tandem_stream *stream,
                                    struct tandem_buffer *buffer,
                                    uint64_t offset, void *host,
                                    uint64_t bytes, bool up)
{
    return up ? transfer_write(stream, buffer, offset, host, bytes, CL_TRUE,
                               NULL)
              : transfer_read(stream, buffer, offset, host, bytes, CL_TRUE,
                              NULL);
}

static enum tandem_status haul(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               void *host, uint64_t bytes, bool up)
{
    struct tandem_device *device = stream->device;
    struct haul *haul = &device->haul;
    struct haul_contest *contest =
        &haul->contests[up][bytes >= LARGE_BYTES];
    enum tandem_status status;
    /* Pinned by us, it needs no copying. */
    if (pinned_holds(device, host, bytes) ||
        pthread_mutex_trylock(&haul->busy) != 0)
        return by_driver(stream, buffer, offset, host, bytes, up);
    enum haul_way way = way_choose(stream, contest, bytes);
    const uint64_t start_ns = wait_clock();
    if (way == HAUL_RING)
        status = by_ring(haul, stream, buffer, offset, host, bytes, up);
    else if (way == HAUL_MAPPED)
        status = mapped_haul(stream, buffer, offset, host, bytes, up);
    else
        status = by_driver(stream, buffer, offset, host, bytes, up);
    if (status == TANDEM_OK)
        contest_note(device, contest, way, bytes, wait_clock() - start_ns);
    pthread_mutex_unlock(&haul->busy);
    return status;
}

bool haul_serves(const struct tandem_device *device, uint64_t bytes)
{
    return bytes >= HAUL_BYTES &&
           (device->hardware->info.kind != TANDEM_DEVICE_CPU ||
            device->haul.forced >= 0 || device->haul.staged);
}

bool haul_stages(struct tandem_device *device, const void *source,
                 uint64_t bytes)
{
    const struct haul *haul = &device->haul;
    bool apart = haul->staged ||
                 (haul->forced < 0 && !device->hardware->unified);
    return haul_serves(device, bytes) && apart &&
           !pinned_holds(device, source, bytes);
}

void haul_fill(struct tandem_device *device, void *target, const void *source,
               uint64_t bytes)
{
    struct haul *haul = &device->haul;
    if (!haul_serves(device, bytes) ||
        pthread_mutex_trylock(&haul->busy) != 0) {
        memcpy(target, source, (size_t)bytes);
        return;
    }
    copier_copy(&haul->copier, (void *)(uintptr_t)source, target, bytes, true);
    pthread_mutex_unlock(&haul->busy);
}

enum tandem_status haul_upload(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               const void *source, uint64_t bytes)
{
    return haul(stream, buffer, offset, (void *)(uintptr_t)source, bytes,
                true);
}

enum tandem_status haul_download(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes)
{
    return haul(stream, buffer, offset, target, bytes, false);
}

/* ---- its life ---- */

void haul_start(struct haul *haul, uint64_t most_threads)
{
    pthread_mutex_init(&haul->busy, NULL);
    copier_start(&haul->copier, most_threads);
}

bool haul_force(struct haul *haul, const char *text)
{
    static const char *const names[HAUL_WAYS] = {"direct", "ring", "mapped"};
    haul->staged = strcmp(text, "staged") == 0;
    for (int way = 0; way < HAUL_WAYS; way++)
        if (strcmp(text, names[way]) == 0) {
            haul->forced = way;
            return true;
        }
    return haul->staged;
}

void haul_finish(struct haul *haul)
{
    copier_finish(&haul->copier);
    pthread_mutex_destroy(&haul->busy);
}

void haul_trim(struct tandem_device *device)
{
    struct haul *haul = &device->haul;
    if (pthread_mutex_trylock(&haul->busy) != 0)
        return;
    if (haul->ring != NULL)
        pinned_free(device, haul->ring);
    haul->ring = NULL;
    pthread_mutex_unlock(&haul->busy);
}
