/* SPDX-License-Identifier: Apache-2.0 */
/* Large transfers; see bulk_transfer.h. */
#include "opencl/transfer/bulk_transfer.h"

#include <sched.h>
#include <string.h>

#include "common/thread_state_guard.h"
#include "opencl/transfer/mapped_transfer.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/event_wait.h"
#include "opencl/queue/buffer_commands.h"

/* What threads copy from or to the ring is noted by slots; the device is given
 * as many at a time as are good for it: few at the end where there is nothing
 * beside, as before the first copies, more between, as it rests after each. */
#define SLOT_BYTES ((uint64_t)128 << 10)
#define LARGEST_BYTES ((uint64_t)4 << 20)
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
/* So much of an upload goes past the caches: the device waits for lines that
 * are in one, but where there is more, they are out again when it comes. */
#define PAST_BYTES ((uint64_t)8 << 20)
/* So long a transfer that ran out of time is waited for before it counts as one
 * that does not end. */
#define GRACE_NS 1000000000u
#define COMMANDS 32u

/* ---- through the ring ---- */

/* A part of a transfer, of whole slots. */
struct command {
    uint64_t offset, bytes;
    cl_event event;
};

/* A transfer under way.  Its commands are, in this order, begun (copying to the
 * ring is posted, or the read from the device is enqueued), sent or arrived,
 * and over. */
struct run {
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    uint64_t offset;
    struct copier *copier;
    const struct copier_job *job;
    uint64_t deadline_ns; /* TANDEM_TIMEOUT_INFINITE: none */
    uint64_t begun, middle, over;
    uint64_t begun_bytes, over_bytes;
    struct command commands[COMMANDS];
};

static struct command *command_at(struct run *run, uint64_t number)
{
    return &run->commands[number % COMMANDS];
}

/* Of the next command, which does not go around the ring's end. */
static uint64_t next_bytes(const struct run *run)
{
    uint64_t begun = run->begun_bytes, left = run->job->bytes - begun;
    uint64_t bytes = run->job->to_ring ? begun : left / 2;
    uint64_t turn = RING_BYTES - begun % RING_BYTES;
    bytes = bytes / SLOT_BYTES * SLOT_BYTES;
    if (bytes < SLOT_BYTES)
        bytes = SLOT_BYTES;
    if (bytes > LARGEST_BYTES)
        bytes = LARGEST_BYTES;
    if (bytes > turn)
        bytes = turn;
    return bytes < left ? bytes : left;
}

/* Whether there is a next command, and room for it. */
static bool next_fits(const struct run *run)
{
    return run->begun_bytes < run->job->bytes &&
           run->begun < run->over + COMMANDS &&
           run->begun_bytes + next_bytes(run) <= run->over_bytes + RING_BYTES;
}

static struct command *next_take(struct run *run)
{
    struct command *command = command_at(run, run->begun);
    command->offset = run->begun_bytes;
    command->bytes = next_bytes(run);
    command->event = NULL;
    return command;
}

static void next_begun(struct run *run)
{
    run->begun_bytes += command_at(run, run->begun++)->bytes;
}

static void command_over(struct run *run)
{
    run->over_bytes += command_at(run, run->over++)->bytes;
}

static void command_post(struct run *run, const struct command *command)
{
    uint64_t end = command->offset + command->bytes;
    for (uint64_t at = command->offset; at < end; at += SLOT_BYTES)
        copier_post(run->copier, at / SLOT_BYTES);
}

static bool command_copied(struct run *run, const struct command *command)
{
    uint64_t end = command->offset + command->bytes;
    for (uint64_t at = command->offset; at < end; at += SLOT_BYTES)
        if (!copier_done(run->copier, at / SLOT_BYTES))
            return false;
    return true;
}

/* Enqueues the command, which begins at once. */
static enum tandem_status command_transfer(struct run *run,
                                           struct command *command)
{
    uint64_t offset = run->offset + command->offset;
    unsigned char *memory = run->job->ring + command->offset % RING_BYTES;
    enum tandem_status status =
        run->job->to_ring
            ? buffer_enqueue_write(run->stream, run->buffer, offset, memory,
                                   command->bytes, CL_FALSE, &command->event)
            : buffer_enqueue_read(run->stream, run->buffer, offset, memory,
                                  command->bytes, CL_FALSE, &command->event);
    return status == TANDEM_OK ? stream_flush(run->stream) : status;
}

/* NOT_READY, without a message: it is under way. */
static enum tandem_status command_ended(struct run *run,
                                        struct command *command)
{
    cl_int state;
    cl_int code = poll_event(command->event, 0, &state);
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return TANDEM_NOT_READY;
    clReleaseEvent(command->event);
    command->event = NULL;
    return status_from_cl(run->stream->device,
                          code != CL_SUCCESS ? code : state, "a transfer");
}

/* One round over what may be done; *out_moved: whether anything was. */
static enum tandem_status upload_step(struct run *run, bool *out_moved)
{
    struct command *command = command_at(run, run->middle);
    enum tandem_status status = TANDEM_OK;
    *out_moved = true;
    if (next_fits(run)) {
        command_post(run, next_take(run));
        next_begun(run);
        return TANDEM_OK;
    }
    if (run->middle < run->begun && command_copied(run, command)) {
        status = command_transfer(run, command);
        run->middle += status == TANDEM_OK;
        return status;
    }
    *out_moved = false;
    if (run->over == run->middle)
        return TANDEM_OK;
    status = command_ended(run, command_at(run, run->over));
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_moved = true;
    command_over(run);
    return status;
}

static enum tandem_status download_step(struct run *run, bool *out_moved)
{
    struct command *command = command_at(run, run->middle);
    enum tandem_status status = TANDEM_OK;
    *out_moved = true;
    if (next_fits(run)) {
        status = command_transfer(run, next_take(run));
        if (status == TANDEM_OK)
            next_begun(run);
        return status;
    }
    if (run->over < run->middle &&
        command_copied(run, command_at(run, run->over))) {
        command_over(run);
        return TANDEM_OK;
    }
    *out_moved = false;
    if (run->middle == run->begun)
        return TANDEM_OK;
    status = command_ended(run, command);
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_moved = true;
    if (status == TANDEM_OK)
        command_post(run, command);
    run->middle++;
    return status;
}

/* What is left of limit_ns until the deadline. */
static uint64_t left_of(uint64_t deadline_ns, uint64_t limit_ns)
{
    if (deadline_ns == TANDEM_TIMEOUT_INFINITE)
        return limit_ns;
    const uint64_t now = monotonic_ns();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    return left < limit_ns ? left : limit_ns;
}

/* Nothing was to be done for a while: the device is busy for others, or the
 * processors are; or the threads are another process's. */
static enum tandem_status run_rest(struct run *run)
{
    uint64_t next = run->job->to_ring ? run->over : run->middle;
    cl_int state;
    if (copier_orphaned(run->copier))
        return TANDEM_DEVICE_LOST;
    if (next == (run->job->to_ring ? run->middle : run->begun)) {
        sched_yield();
        return TANDEM_OK;
    }
    cl_int code = poll_event(
        command_at(run, next)->event,
        left_of(run->deadline_ns, device_timeout_ns(run->stream->device)),
        &state);
    /* Its end, good or bad, is for the next step. */
    return code == CL_SUCCESS && state > CL_COMPLETE ? TANDEM_NOT_READY
                                                     : TANDEM_OK;
}

static enum tandem_status run_commands(struct run *run)
{
    enum tandem_status status = TANDEM_OK;
    uint32_t idle = 0;
    bool moved;
    while (status == TANDEM_OK && run->over_bytes < run->job->bytes) {
        status = run->job->to_ring ? upload_step(run, &moved)
                                   : download_step(run, &moved);
        if (moved || copy_threads_run_chunk(run->copier))
            idle = 0;
        else if (status == TANDEM_OK && ++idle > IDLE_TURNS)
            status = run_rest(run);
        if (status == TANDEM_OK && run->over_bytes < run->job->bytes &&
            left_of(run->deadline_ns, 1) == 0)
            status = TANDEM_NOT_READY;
    }
    return status;
}

/* After a failure: waits for what is under way.  false: it does not end, and
 * the ring is the driver's. */
static bool run_end(struct run *run)
{
    const uint64_t limit_ns = device_timeout_ns(run->stream->device);
    bool ended = copier_drain(run->copier);
    if (!ended)
        return false;
    for (uint32_t i = 0; i < COMMANDS; i++) {
        cl_event event = run->commands[i].event;
        cl_int state = CL_QUEUED;
        if (event == NULL)
            continue;
        ended = poll_event(event,
                           !ended ? 0
                           : run->deadline_ns != TANDEM_TIMEOUT_INFINITE &&
                                   GRACE_NS < limit_ns
                               ? GRACE_NS
                               : limit_ns,
                           &state) == CL_SUCCESS &&
                state <= CL_COMPLETE && ended;
        clReleaseEvent(event);
    }
    return ended;
}

static enum tandem_status run_failed(const struct run *run,
                                     enum tandem_status status)
{
    if (status == TANDEM_DEVICE_LOST && copier_orphaned(run->copier))
        return last_error_set(status, "a transfer was cut short by a fork");
    if (status != TANDEM_NOT_READY)
        return status;
    return last_error_set(status,
                          run->deadline_ns != TANDEM_TIMEOUT_INFINITE
                              ? "a transfer of %llu bytes was not over in time"
                              : "a transfer of %llu bytes does not end: close "
                                "the device",
                          (unsigned long long)run->job->bytes);
}

static enum tandem_status by_ring(struct haul *haul,
                                  struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, unsigned char *host,
                                  uint64_t bytes, bool up,
                                  uint64_t deadline_ns)
{
    const struct copier_job job = {.host = host,
                                   .ring = haul->ring,
                                   .bytes = bytes,
                                   .slot_bytes = SLOT_BYTES,
                                   .slots = RING_BYTES / SLOT_BYTES,
                                   .to_ring = up,
                                   .past_bytes = PAST_BYTES};
    struct run run = {.stream = stream,
                      .buffer = buffer,
                      .offset = offset,
                      .copier = &haul->copier,
                      .job = &job,
                      .deadline_ns = deadline_ns};
    copier_begin(&haul->copier, &job);
    enum tandem_status status = run_commands(&run);
    if (status == TANDEM_OK)
        return TANDEM_OK;
    if (!run_end(&run)) {
        /* The device's pinned memory, and so given back with it. */
        haul->ring = NULL;
        haul->ringless = true;
    }
    return run_failed(&run, status);
}

/* ---- which way ---- */

static void ring_make(struct tandem_device *device)
{
    struct thread_state host;
    void *memory;
    thread_state_guard_enter(&host);
    enum tandem_status status =
        pinned_alloc(device, RING_BYTES, device_timeout_ns(device), &memory);
    device->haul.ring = memory;
    device->haul.ringless = status != TANDEM_OK;
    thread_state_guard_leave(&host);
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
static bool path_may_still_be_timed(const struct tandem_device *device,
                                    enum haul_way way)
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
                            !path_may_still_be_timed(device, (enum haul_way)i);
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
                                    uint64_t bytes, bool up,
                                    uint64_t deadline_ns)
{
    if (up)
        return buffer_enqueue_write(stream, buffer, offset, host, bytes,
                                    CL_TRUE, NULL);
    if (deadline_ns == TANDEM_TIMEOUT_INFINITE)
        return buffer_enqueue_read(stream, buffer, offset, host, bytes, CL_TRUE,
                                   NULL);
    return buffer_read(stream, buffer, offset, host, bytes,
                       left_of(deadline_ns, UINT64_MAX - 1));
}

static enum tandem_status haul(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               void *host, uint64_t bytes, bool up,
                               uint64_t deadline_ns)
{
    struct tandem_device *device = stream->device;
    struct haul *haul = &device->haul;
    struct haul_contest *contest =
        &haul->contests[up][bytes >= LARGE_BYTES];
    enum tandem_status status;
    /* Pinned by us, it needs no copying. */
    if (pinned_contains(device, host, bytes) ||
        pthread_mutex_trylock(&haul->busy) != 0)
        return by_driver(stream, buffer, offset, host, bytes, up,
                         deadline_ns);
    enum haul_way way = way_choose(stream, contest, bytes);
    const uint64_t start_ns = monotonic_ns();
    if (way == HAUL_RING)
        status = by_ring(haul, stream, buffer, offset, host, bytes, up,
                         deadline_ns);
    else if (way == HAUL_MAPPED)
        status = mapped_haul(stream, buffer, offset, host, bytes, up,
                             left_of(deadline_ns, device_timeout_ns(device)));
    else
        status = by_driver(stream, buffer, offset, host, bytes, up,
                           deadline_ns);
    if (status == TANDEM_OK)
        contest_note(device, contest, way, bytes, monotonic_ns() - start_ns);
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
           !pinned_contains(device, source, bytes);
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

enum tandem_status bulk_upload(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               const void *source, uint64_t bytes)
{
    return haul(stream, buffer, offset, (void *)(uintptr_t)source, bytes, true,
                TANDEM_TIMEOUT_INFINITE);
}

enum tandem_status haul_download(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 uint64_t deadline_ns)
{
    return haul(stream, buffer, offset, target, bytes, false, deadline_ns);
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
    void *ring = haul->ring;
    haul->ring = NULL;
    pthread_mutex_unlock(&haul->busy);
    if (ring != NULL)
        pinned_free(device, ring);
}
