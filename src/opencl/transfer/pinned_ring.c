/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through pinned memory; see pinned_ring.h. */
#include "opencl/transfer/pinned_ring.h"

#include <sched.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/event_poll.h"
#include "opencl/memory/pinned_memory.h"
#include "opencl/queue/buffer_commands.h"

/* Copy threads copy slots. A device command transfers one or more slots. The
 * first command of an upload and the last command of a download are small,
 * because no copy overlaps with them. Other commands are larger, because the
 * device is idle between commands. */
#define SLOT_BYTES ((uint64_t)128 << 10)
#define MAX_COMMAND_BYTES ((uint64_t)4 << 20)
#define RING_BYTES ((uint64_t)16 << 20)
#define MAX_COMMANDS 32u
/* The ring is allocated after this many transferred bytes, because pinning
 * memory takes time. */
#define MIN_BYTES_FOR_RING ((uint64_t)32 << 20)
/* After this many idle iterations, the thread waits for an event. */
#define IDLE_ITERATIONS 2000u
/* Stores of the first bytes of an upload bypass the CPU caches, because a
 * device reads more slowly from the caches than from memory.  Later bytes of
 * long uploads are evicted from the caches before the device reads them. */
#define NON_TEMPORAL_BYTES ((uint64_t)8 << 20)
/* Commands that are not complete at a deadline get this additional time.  If
 * they exceed it, the ring is not used again. */
#define GRACE_NS 1000000000u

/* A device command that transfers one or more slots of the ring. */
struct command {
    uint64_t offset, bytes;
    cl_event event;
};

/* Commands pass three stages in order.  In an upload, a command is started when
 * its slots are posted to the copy threads, midway when it is enqueued, and
 * done when it has completed.  In a download, a command is started when it is
 * enqueued, midway when it has completed and its slots are posted, and done
 * when the slots are copied.  Each of `started`, `midway` and `done` is the
 * number of the next command that reaches the stage. */
struct ring_transfer {
    const struct transfer *request;
    unsigned char *ring; /* the memory of the ring */
    struct copy_threads *threads;
    uint64_t deadline_ns; /* TANDEM_TIMEOUT_INFINITE means none */
    uint64_t started, midway, done;
    uint64_t started_bytes, done_bytes;
    struct command commands[MAX_COMMANDS];
};

static struct command *command_at(struct ring_transfer *transfer, uint64_t i)
{
    return &transfer->commands[i % MAX_COMMANDS];
}

/* Returns the size of the next command, which must not cross the ring's end. */
static uint64_t next_bytes(const struct ring_transfer *transfer)
{
    uint64_t started = transfer->started_bytes;
    uint64_t left = transfer->request->bytes - started;
    uint64_t bytes = transfer->request->upload ? started : left / 2;
    uint64_t until_wrap = RING_BYTES - started % RING_BYTES;
    bytes = bytes / SLOT_BYTES * SLOT_BYTES;
    if (bytes < SLOT_BYTES)
        bytes = SLOT_BYTES;
    if (bytes > MAX_COMMAND_BYTES)
        bytes = MAX_COMMAND_BYTES;
    if (bytes > until_wrap)
        bytes = until_wrap;
    return bytes < left ? bytes : left;
}

/* Returns true if there is a next command and the ring has space for it. */
static bool can_start_next(const struct ring_transfer *transfer)
{
    return transfer->started_bytes < transfer->request->bytes &&
           transfer->started < transfer->done + MAX_COMMANDS &&
           transfer->started_bytes + next_bytes(transfer) <=
               transfer->done_bytes + RING_BYTES;
}

static struct command *next_command(struct ring_transfer *transfer)
{
    struct command *command = command_at(transfer, transfer->started);
    command->offset = transfer->started_bytes;
    command->bytes = next_bytes(transfer);
    command->event = NULL;
    return command;
}

static void note_started(struct ring_transfer *transfer)
{
    transfer->started_bytes += command_at(transfer, transfer->started++)->bytes;
}

static void note_done(struct ring_transfer *transfer)
{
    transfer->done_bytes += command_at(transfer, transfer->done++)->bytes;
}

static void command_post(struct ring_transfer *transfer,
                         const struct command *command)
{
    uint64_t end = command->offset + command->bytes;
    for (uint64_t at = command->offset; at < end; at += SLOT_BYTES)
        copy_threads_post_slot(transfer->threads, at / SLOT_BYTES);
}

static bool command_is_copied(struct ring_transfer *transfer,
                              const struct command *command)
{
    uint64_t end = command->offset + command->bytes;
    for (uint64_t at = command->offset; at < end; at += SLOT_BYTES)
        if (!copy_threads_slot_is_copied(transfer->threads, at / SLOT_BYTES))
            return false;
    return true;
}

static enum tandem_status command_enqueue(struct ring_transfer *transfer,
                                          struct command *command)
{
    struct transfer part = *transfer->request;
    part.offset += command->offset;
    part.host = transfer->ring + command->offset % RING_BYTES;
    part.bytes = command->bytes;
    enum tandem_status status =
        transfer_enqueue(&part, CL_FALSE, &command->event);
    return status == TANDEM_OK ? stream_flush(part.stream) : status;
}

/* Returns NOT_READY, with no error message, if the command is still running. */
static enum tandem_status command_query(struct ring_transfer *transfer,
                                        struct command *command)
{
    cl_int state;
    cl_int code = poll_event(command->event, 0, &state);
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return TANDEM_NOT_READY;
    clReleaseEvent(command->event);
    command->event = NULL;
    return status_from_cl(transfer->request->stream->device,
                          code != CL_SUCCESS ? code : state, "a transfer");
}

/* Runs the next step of an upload, or clears *out_progress if there is none. */
static enum tandem_status upload_step(struct ring_transfer *transfer,
                                      bool *out_progress)
{
    struct command *command = command_at(transfer, transfer->midway);
    enum tandem_status status = TANDEM_OK;
    *out_progress = true;
    if (can_start_next(transfer)) {
        command_post(transfer, next_command(transfer));
        note_started(transfer);
        return TANDEM_OK;
    }
    if (transfer->midway < transfer->started &&
        command_is_copied(transfer, command)) {
        status = command_enqueue(transfer, command);
        transfer->midway += status == TANDEM_OK;
        return status;
    }
    *out_progress = false;
    if (transfer->done == transfer->midway)
        return TANDEM_OK;
    status = command_query(transfer, command_at(transfer, transfer->done));
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_progress = true;
    note_done(transfer);
    return status;
}

static enum tandem_status download_step(struct ring_transfer *transfer,
                                        bool *out_progress)
{
    struct command *command = command_at(transfer, transfer->midway);
    enum tandem_status status = TANDEM_OK;
    *out_progress = true;
    if (can_start_next(transfer)) {
        status = command_enqueue(transfer, next_command(transfer));
        if (status == TANDEM_OK)
            note_started(transfer);
        return status;
    }
    if (transfer->done < transfer->midway &&
        command_is_copied(transfer, command_at(transfer, transfer->done))) {
        note_done(transfer);
        return TANDEM_OK;
    }
    *out_progress = false;
    if (transfer->midway == transfer->started)
        return TANDEM_OK;
    status = command_query(transfer, command);
    if (status == TANDEM_NOT_READY)
        return TANDEM_OK;
    *out_progress = true;
    if (status == TANDEM_OK)
        command_post(transfer, command);
    transfer->midway++;
    return status;
}

/* Waits for the next event after many iterations without progress. Returns
 * DEVICE_LOST if this process is a fork, which has no copy threads. */
static enum tandem_status wait_idle(struct ring_transfer *transfer)
{
    const bool upload = transfer->request->upload;
    uint64_t next = upload ? transfer->done : transfer->midway;
    cl_int state;
    if (copy_threads_are_lost(transfer->threads))
        return TANDEM_DEVICE_LOST;
    if (next == (upload ? transfer->midway : transfer->started)) {
        sched_yield();
        return TANDEM_OK;
    }
    uint64_t limit_ns = device_timeout_ns(transfer->request->stream->device);
    cl_int code =
        poll_event(command_at(transfer, next)->event,
                   remaining_ns(transfer->deadline_ns, limit_ns), &state);
    /* The next step handles a completed or failed command. */
    return code == CL_SUCCESS && state > CL_COMPLETE ? TANDEM_NOT_READY
                                                     : TANDEM_OK;
}

static enum tandem_status run_commands(struct ring_transfer *transfer)
{
    const uint64_t bytes = transfer->request->bytes;
    enum tandem_status status = TANDEM_OK;
    uint32_t idle = 0;
    bool progress;
    while (status == TANDEM_OK && transfer->done_bytes < bytes) {
        status = transfer->request->upload ? upload_step(transfer, &progress)
                                           : download_step(transfer, &progress);
        if (progress || copy_threads_run_chunk(transfer->threads))
            idle = 0;
        else if (status == TANDEM_OK && ++idle > IDLE_ITERATIONS)
            status = wait_idle(transfer);
        if (status == TANDEM_OK && transfer->done_bytes < bytes &&
            remaining_ns(transfer->deadline_ns, 1) == 0)
            status = TANDEM_NOT_READY;
    }
    return status;
}

/* Waits for all commands after a failure. Returns false if a command does not
 * complete, in which case the driver can still be using the ring. */
static bool drain_commands(struct ring_transfer *transfer)
{
    uint64_t limit_ns = device_timeout_ns(transfer->request->stream->device);
    if (transfer->deadline_ns != TANDEM_TIMEOUT_INFINITE && GRACE_NS < limit_ns)
        limit_ns = GRACE_NS;
    bool completed = copy_threads_drain(transfer->threads);
    if (!completed)
        return false;
    for (uint32_t i = 0; i < MAX_COMMANDS; i++) {
        cl_event event = transfer->commands[i].event;
        cl_int state = CL_QUEUED;
        if (event == NULL)
            continue;
        completed =
            poll_event(event, completed ? limit_ns : 0, &state) == CL_SUCCESS &&
            state <= CL_COMPLETE && completed;
        clReleaseEvent(event);
    }
    return completed;
}

static enum tandem_status report_failure(const struct ring_transfer *transfer,
                                         enum tandem_status status)
{
    if (status == TANDEM_DEVICE_LOST &&
        copy_threads_are_lost(transfer->threads))
        return last_error_set(status, "a transfer was interrupted by a fork");
    if (status != TANDEM_NOT_READY)
        return status;
    return last_error_set(
        status,
        transfer->deadline_ns != TANDEM_TIMEOUT_INFINITE
            ? "a transfer of %llu bytes has not completed in time"
            : "a transfer of %llu bytes does not complete: close the device",
        (unsigned long long)transfer->request->bytes);
}

enum tandem_status pinned_ring_transfer(const struct transfer *request,
                                        uint64_t deadline_ns)
{
    struct bulk_transfer *bulk = &request->stream->device->bulk_transfer;
    const struct copy_job job = {.host = request->host,
                                 .ring = bulk->ring.memory,
                                 .bytes = request->bytes,
                                 .slot_bytes = SLOT_BYTES,
                                 .slots = RING_BYTES / SLOT_BYTES,
                                 .to_ring = request->upload,
                                 .non_temporal_bytes = NON_TEMPORAL_BYTES};
    struct ring_transfer transfer = {.request = request,
                                     .ring = bulk->ring.memory,
                                     .threads = &bulk->threads,
                                     .deadline_ns = deadline_ns};
    copy_threads_begin(&bulk->threads, &job);
    enum tandem_status status = run_commands(&transfer);
    if (status == TANDEM_OK)
        return TANDEM_OK;
    if (!drain_commands(&transfer)) {
        /* Stop using the ring.  The list of pinned memory still owns it. */
        bulk->ring.memory = NULL;
        bulk->ring.unavailable = true;
    }
    return report_failure(&transfer, status);
}

bool pinned_ring_is_available(struct tandem_device *device, uint64_t bytes,
                              bool force)
{
    struct pinned_ring *ring = &device->bulk_transfer.ring;
    if (ring->memory != NULL || ring->unavailable)
        return ring->memory != NULL;
    ring->bytes_before += bytes;
    if (ring->bytes_before >= MIN_BYTES_FOR_RING || force)
        ring->unavailable =
            pinned_alloc(device, RING_BYTES, device_timeout_ns(device),
                         &ring->memory) != TANDEM_OK;
    return ring->memory != NULL;
}
