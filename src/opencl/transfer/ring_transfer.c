/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers through the ring of pinned memory; see ring_transfer.h. */
#include "opencl/transfer/ring_transfer.h"

#include <sched.h>
#include <string.h>

#include "opencl/device/event_poll.h"
#include "opencl/queue/pinned_ring.h"
#include "opencl/transfer/copy_threads.h"
#include "opencl/transfer/transfer_path.h"

/* Sizes of the commands of a pipelined transfer.  The first commands of an
 * upload and the last commands of a download are small, because no copy
 * overlaps with them.  Other commands are larger, because the device is idle
 * between commands. */
#define MIN_COMMAND_BYTES ((uint64_t)128 << 10)
#define MAX_COMMAND_BYTES CHUNK_BYTES
#define MAX_COMMANDS MAX_COPIES
/* After this many idle iterations, the thread waits for an event. */
#define IDLE_ITERATIONS 2000u
/* Stores of the first bytes of an upload bypass the CPU caches, because a
 * device reads more slowly from the caches than from memory.  Later bytes of
 * long uploads are evicted from the caches before the device reads them. */
#define NON_TEMPORAL_BYTES ((uint64_t)8 << 20)

/* A device command that transfers a part of the caller's memory. */
struct command {
    struct ring_range range;
    uint64_t offset; /* in the caller's memory */
    cl_event event;  /* of a download; NULL when it has completed */
    uint64_t seqno;
};

/* Commands pass three stages in order.  In an upload, a command is started when
 * its copy to the ring is posted, and done when it is enqueued.  In a download,
 * a command is started when it is enqueued, arrived when it has completed and
 * its copy is posted, and done when its data is copied.  `started`, `arrived`
 * and `done` are the numbers of the next commands that reach the stage. */
struct ring_transfer {
    const struct transfer *request;
    struct copy_threads *threads; /* NULL if the calling thread copies */
    bool pipelined;
    uint64_t deadline_ns; /* TANDEM_TIMEOUT_INFINITE means none */
    uint64_t started_bytes;
    uint64_t started, arrived, done;
    uint32_t idle; /* iterations without progress */
    struct command commands[MAX_COMMANDS];
};

/* Leaves `commands` uninitialized, because small transfers are frequent. */
static void ring_transfer_init(struct ring_transfer *transfer,
                               const struct transfer *request,
                               uint64_t deadline_ns)
{
    transfer->request = request;
    transfer->threads = NULL;
    transfer->pipelined = transfer_is_pipelined(request);
    transfer->deadline_ns = deadline_ns;
    transfer->started_bytes = 0;
    transfer->started = transfer->arrived = transfer->done = 0;
    transfer->idle = 0;
}

static struct command *command_at(struct ring_transfer *transfer, uint64_t i)
{
    return &transfer->commands[i % MAX_COMMANDS];
}

static uint64_t next_bytes(const struct ring_transfer *transfer)
{
    const uint64_t left = transfer->request->bytes - transfer->started_bytes;
    uint64_t bytes =
        transfer->request->upload ? transfer->started_bytes : left / 2;
    if (!transfer->pipelined)
        return left;
    bytes = bytes / MIN_COMMAND_BYTES * MIN_COMMAND_BYTES;
    if (bytes < MIN_COMMAND_BYTES)
        bytes = MIN_COMMAND_BYTES;
    if (bytes > MAX_COMMAND_BYTES)
        bytes = MAX_COMMAND_BYTES;
    return bytes < left ? bytes : left;
}

/* Reserves memory for the next command. Sets *out_command to NULL if there is
 * no further command or if the ring is full. */
static enum tandem_status command_reserve(struct ring_transfer *transfer,
                                          struct command **out_command)
{
    struct command *command = command_at(transfer, transfer->started);
    *out_command = NULL;
    if (transfer->started_bytes == transfer->request->bytes ||
        transfer->started == transfer->done + MAX_COMMANDS)
        return TANDEM_OK;
    enum tandem_status status = ring_reserve(
        transfer->request->stream, next_bytes(transfer), &command->range);
    if (status != TANDEM_OK || command->range.memory == NULL)
        return status;
    command->offset = transfer->started_bytes;
    command->event = NULL;
    *out_command = command;
    return TANDEM_OK;
}

static void note_started(struct ring_transfer *transfer)
{
    transfer->started_bytes +=
        command_at(transfer, transfer->started++)->range.bytes;
}

static void command_done(struct ring_transfer *transfer)
{
    ring_release(&command_at(transfer, transfer->done++)->range);
    transfer->idle = 0;
}

/* Lets several threads copy, unless another stream's transfer uses them.  Call
 * this before the first copy; a download has then waited for earlier work. */
static void threads_acquire(struct ring_transfer *transfer)
{
    struct tandem_device *device = transfer->request->stream->device;
    if (!transfer->pipelined || pthread_mutex_trylock(&device->copy_mutex) != 0)
        return;
    if (copy_threads_begin(&device->copy_threads))
        transfer->threads = &device->copy_threads;
    else
        pthread_mutex_unlock(&device->copy_mutex);
}

/* Starts the copy of command `i` to or from the ring. */
static void command_copy(struct ring_transfer *transfer, uint64_t i)
{
    const struct command *command = command_at(transfer, i);
    unsigned char *host = transfer->request->host + command->offset;
    const bool upload = transfer->request->upload;
    const struct copy copy = {.to = upload ? command->range.memory : host,
                              .from = upload ? host : command->range.memory,
                              .bytes = command->range.bytes,
                              .non_temporal = upload && command->offset <
                                                            NON_TEMPORAL_BYTES};
    if (i == 0)
        threads_acquire(transfer);
    if (transfer->threads != NULL)
        copy_threads_post(transfer->threads, i, &copy);
    else
        memcpy(copy.to, copy.from, (size_t)copy.bytes);
}

static bool command_is_copied(struct ring_transfer *transfer, uint64_t i)
{
    return transfer->threads == NULL ||
           copy_threads_are_done(transfer->threads, i);
}

/* Copies one chunk.  If there is none, counts an idle iteration.  After many of
 * these, lets other threads run, and returns DEVICE_LOST if this process is a
 * fork, which has no copy threads. */
static enum tandem_status copy_meanwhile(struct ring_transfer *transfer)
{
    struct copy_threads *threads = transfer->threads;
    if (threads != NULL && copy_threads_run_chunk(threads))
        return TANDEM_OK;
    if (++transfer->idle < IDLE_ITERATIONS || threads == NULL)
        return TANDEM_OK;
    sched_yield();
    return copy_threads_are_lost(threads)
               ? last_error_set(TANDEM_DEVICE_LOST,
                                "a transfer was interrupted by a fork")
               : TANDEM_OK;
}

static enum tandem_status command_enqueue(struct ring_transfer *transfer,
                                          struct command *command,
                                          cl_event *event)
{
    const struct transfer *request = transfer->request;
    struct transfer part = *request;
    part.offset += command->offset;
    part.host = command->range.memory;
    part.bytes = command->range.bytes;
    enum tandem_status status = transfer_enqueue(&part, CL_FALSE, event);
    if (status != TANDEM_OK)
        return status;
    ring_commit(request->stream, &command->range);
    command->seqno = atomic_load(&request->stream->issued_seqno);
    return TANDEM_OK;
}

/* Flushes the commands of a large transfer.  A wait flushes small ones. */
static enum tandem_status commands_flush(const struct ring_transfer *transfer)
{
    return transfer->request->bytes < MIN_BULK_BYTES
               ? TANDEM_OK
               : stream_flush(transfer->request->stream);
}

/* Waits until the oldest chunk of the ring is free.  Call this only if none of
 * the transfer's commands holds memory. */
static enum tandem_status wait_for_space(const struct ring_transfer *transfer)
{
    struct tandem_stream *stream = transfer->request->stream;
    const uint64_t limit_ns = device_timeout_ns(stream->device);
    enum tandem_status status =
        ring_wait(stream, remaining_ns(transfer->deadline_ns, limit_ns));
    if (status == TANDEM_NOT_READY)
        return last_error_set(
            status,
            "%s: earlier work still uses the stream's pinned memory: try again "
            "later, or close the device",
            transfer->request->upload ? "upload" : "download");
    return status;
}

/* ---- uploads ---- */

static enum tandem_status upload_step(struct ring_transfer *transfer)
{
    struct command *command;
    enum tandem_status status = command_reserve(transfer, &command);
    if (status != TANDEM_OK)
        return status;
    if (command != NULL) {
        command_copy(transfer, transfer->started);
        note_started(transfer);
        return TANDEM_OK;
    }
    if (transfer->done == transfer->started)
        return wait_for_space(transfer);
    if (!command_is_copied(transfer, transfer->done))
        return copy_meanwhile(transfer);
    command = command_at(transfer, transfer->done);
    status = command_enqueue(
        transfer, command,
        ring_write_event(transfer->request->stream, &command->range));
    if (status != TANDEM_OK)
        return status;
    command_done(transfer);
    return commands_flush(transfer);
}

/* ---- downloads ---- */

/* Returns true if the next command has completed.  The thread waits for the
 * first command, and for the others after many idle iterations.  On failure,
 * returns false and sets *out_status. */
static bool command_has_arrived(struct ring_transfer *transfer,
                                enum tandem_status *out_status)
{
    struct tandem_stream *stream = transfer->request->stream;
    struct command *command = command_at(transfer, transfer->arrived);
    const bool waits =
        transfer->arrived == 0 || transfer->idle >= IDLE_ITERATIONS;
    cl_int state = CL_QUEUED;
    if (!waits && event_get_state(command->event, &state) == CL_SUCCESS &&
        state > CL_COMPLETE)
        return false;
    /* stream_wait also records a failure. */
    *out_status = state == CL_COMPLETE
                      ? stream_confirm(stream)
                      : stream_wait(stream, command->event,
                                    remaining_ns(transfer->deadline_ns,
                                                 TANDEM_TIMEOUT_INFINITE));
    if (*out_status != TANDEM_OK)
        return false;
    clReleaseEvent(command->event);
    command->event = NULL;
    stream_mark_completed(stream, command->seqno);
    return true;
}

static enum tandem_status download_step(struct ring_transfer *transfer)
{
    struct command *command;
    enum tandem_status status = command_reserve(transfer, &command);
    if (status != TANDEM_OK)
        return status;
    if (command != NULL) {
        status = command_enqueue(transfer, command, &command->event);
        if (status != TANDEM_OK)
            return status;
        note_started(transfer);
        return commands_flush(transfer);
    }
    if (transfer->done == transfer->started)
        return wait_for_space(transfer);
    if (transfer->done < transfer->arrived &&
        command_is_copied(transfer, transfer->done)) {
        command_done(transfer);
        return TANDEM_OK;
    }
    if (transfer->arrived < transfer->started &&
        command_has_arrived(transfer, &status)) {
        command_copy(transfer, transfer->arrived++);
        transfer->idle = 0;
        return TANDEM_OK;
    }
    return status == TANDEM_OK ? copy_meanwhile(transfer) : status;
}

/* ---- both ---- */

static enum tandem_status transfer_run(struct ring_transfer *transfer)
{
    const struct transfer *request = transfer->request;
    struct tandem_stream *stream = request->stream;
    enum tandem_status status = ring_begin(stream);
    if (status != TANDEM_OK)
        return status;
    while (status == TANDEM_OK && (transfer->started_bytes < request->bytes ||
                                   transfer->done < transfer->started))
        status =
            request->upload ? upload_step(transfer) : download_step(transfer);
    if (transfer->threads != NULL) {
        copy_threads_drain(transfer->threads);
        pthread_mutex_unlock(&stream->device->copy_mutex);
    }
    ring_end(stream);
    return status;
}

enum tandem_status ring_upload(const struct transfer *request)
{
    struct ring_transfer transfer;
    ring_transfer_init(&transfer, request, TANDEM_TIMEOUT_INFINITE);
    enum tandem_status status = transfer_run(&transfer);
    if (status != TANDEM_OK && transfer.done != 0)
        buffer_poison(request->buffer, status);
    return status;
}

enum tandem_status ring_download(const struct transfer *request,
                                 uint64_t timeout_ns)
{
    const uint64_t now_ns = monotonic_ns();
    struct ring_transfer transfer;
    ring_transfer_init(&transfer, request,
                       timeout_ns < TANDEM_TIMEOUT_INFINITE - now_ns
                           ? now_ns + timeout_ns
                           : TANDEM_TIMEOUT_INFINITE);
    enum tandem_status status = transfer_run(&transfer);
    while (transfer.arrived < transfer.started)
        clReleaseEvent(command_at(&transfer, transfer.arrived++)->event);
    return status;
}
