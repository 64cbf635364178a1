/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: in-order command queues that keep an error until it is reported
 * (sticky error).  The commands of a stream are numbered from 1 (seqno).  One
 * thread at a time uses a stream.  Other threads only read its id, queue and
 * atomic members, while they hold device.mutex or have acquired the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_STREAM_H
#define TANDEM_OPENCL_QUEUE_STREAM_H

#include "opencl/device/device.h"
#include "opencl/memory/buffer.h"

extern struct handle_pool stream_handles;

bool stream_is_live(const struct tandem_stream *stream);
/* Returns TANDEM_OK if the stream is live and has no sticky error, and its
 * device is not lost. */
enum tandem_status stream_check(struct tandem_stream *stream);
enum tandem_status stream_query(struct tandem_stream *stream);
enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns);
/* Like stream_synchronize, but any thread may call it on acquired streams. */
enum tandem_status stream_synchronize_live(struct tandem_stream *stream,
                                           uint64_t timeout_ns);

/* Assigns the next number (seqno) to an enqueued command and returns it. */
uint64_t stream_next_seqno(struct tandem_stream *stream);
/* Records that all commands up to number `seqno` have completed. */
void stream_mark_completed(struct tandem_stream *stream, uint64_t seqno);
/* Call this with the `code` that an enqueue function has returned.  If `code`
 * may mean a lack of memory and *retried is false, releases unused memory, sets
 * *retried and returns true; the caller then enqueues the command again.  Some
 * drivers allocate device memory when a command first uses it. */
bool stream_trim_for_retry(struct tandem_stream *stream, cl_int code,
                           bool *retried);
/* Enqueues a marker command without a seqno.  The caller owns its event. */
enum tandem_status stream_enqueue_marker(struct tandem_stream *stream,
                                         cl_event *out_event);
enum tandem_status stream_flush(struct tandem_stream *stream);

/* Makes `status` and the last error message of the calling thread the sticky
 * error.  Poisons buffers that unfinished commands write.  Returns `status`.
 * Any thread may call this. */
enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status);
/* Returns `status` and sets the error message to "WHAT failed: MESSAGE", where
 * MESSAGE is that of the sticky error.  Any thread may call this. */
enum tandem_status stream_report_error(struct tandem_stream *stream,
                                       enum tandem_status status,
                                       const char *what);

/* Waits for an event of the stream, or returns NOT_READY after timeout_ns.  If
 * the event's command failed, makes this failure the sticky error, waits until
 * no command runs and returns the error. */
enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns);
/* Like stream_wait, but waits for all commands of the stream. */
enum tandem_status stream_drain(struct tandem_stream *stream,
                                uint64_t timeout_ns);

/* Number of bytes that a GPU reads or writes in less than 100 us. */
#define SHORT_WAIT_BYTES ((uint64_t)8 << 20)
/* Cost of a command, as a number of bytes: it takes 1 to 2 us even if empty. */
#define COMMAND_BYTES ((uint64_t)64 << 10)

/* Returns true if the stream's unfinished commands probably end soon. */
static inline bool stream_wait_is_short(const struct tandem_stream *stream)
{
    return atomic_load(&stream->pending_bytes) < SHORT_WAIT_BYTES;
}

/* Counts a command with buffers of `bytes` bytes as unfinished work. */
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
