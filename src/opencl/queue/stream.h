/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are in-order command queues. Their commands are numbered from 1
 * (seqno). The error of a command is kept until stream_synchronize reports it
 * (sticky error). Only one thread at a time uses a stream. Other threads must
 * hold device.mutex or have acquired the stream, and may only access its id,
 * its queue and its atomic members. */
#ifndef TANDEM_OPENCL_QUEUE_STREAM_H
#define TANDEM_OPENCL_QUEUE_STREAM_H

#include "opencl/device/device.h"
#include "opencl/memory/buffer.h"

extern struct handle_pool stream_handles;

bool stream_is_live(const struct tandem_stream *stream);
/* Returns an error if the stream is not live, if it has a sticky error, or if
 * its device is lost. */
enum tandem_status stream_check(struct tandem_stream *stream);
enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns);

/* Assigns the next command number (seqno) to an enqueued command. */
uint64_t stream_next_seqno(struct tandem_stream *stream);
/* Records that all commands up to number `seqno` have completed. */
void stream_mark_completed(struct tandem_stream *stream, uint64_t seqno);
/* Some drivers allocate memory when a command first uses it, so an enqueue
 * function can fail for lack of memory. Call this with the `code` that the
 * function returned. If `code` can mean a lack of memory and *retried is false,
 * releases cached memory, sets *retried and returns true. The caller must then
 * enqueue the command again. */
bool stream_trim_for_retry(struct tandem_stream *stream, cl_int code,
                           bool *retried);
/* Enqueues a marker command without a number.  The caller owns *out_event. */
enum tandem_status stream_enqueue_marker(struct tandem_stream *stream,
                                         cl_event *out_event);
enum tandem_status stream_flush(struct tandem_stream *stream);

/* Makes `status` the sticky error, with the last error message of the calling
 * thread.  Poisons the buffers to which unfinished commands write.  Returns
 * `status`.  Any thread may call this. */
enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status);
/* Returns the sticky error, or TANDEM_OK.  The error message names the failed
 * work `what`.  Any thread may call this. */
enum tandem_status stream_sticky_error(struct tandem_stream *stream,
                                       const char *what);

/* Returns the sticky error after the waits of other threads have ended (see
 * pending_waits.h). Call this when the driver has reported that the last
 * command completed, before its results are used. */
enum tandem_status stream_confirm(struct tandem_stream *stream);
/* Waits for an event of the stream. Returns NOT_READY if timeout_ns passes
 * first. If the event's command failed, makes the failure the sticky error,
 * waits until the other commands have completed, and returns the failure. */
enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns);
/* Like stream_wait, for all commands of the stream. */
enum tandem_status stream_drain(struct tandem_stream *stream,
                                uint64_t timeout_ns);

/* A GPU needs less than 100 us to read or write this number of bytes. */
#define SHORT_WAIT_BYTES ((uint64_t)8 << 20)
/* Time of an empty command (1 to 2 us) as a number of bytes. */
#define COMMAND_BYTES ((uint64_t)64 << 10)

/* Returns true if the unfinished commands are estimated to end soon. */
static inline bool stream_wait_is_short(const struct tandem_stream *stream)
{
    return atomic_load(&stream->pending_bytes) < SHORT_WAIT_BYTES;
}

/* Increases pending_bytes for a command that uses `bytes` bytes of buffers. */
static inline void stream_add_pending(struct tandem_stream *stream,
                                      uint64_t bytes)
{
    uint64_t pending = atomic_load(&stream->pending_bytes);
    if (pending < SHORT_WAIT_BYTES)
        atomic_store_explicit(&stream->pending_bytes,
                              pending + bytes + COMMAND_BYTES,
                              memory_order_relaxed);
}

#endif
