/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: in-order command queues with a sticky error.  The commands of a
 * stream are numbered from 1 (seqno).  One thread at a time uses a stream.
 * Other threads only read the stream's id, queue and atomic members, while they
 * hold device.mutex or after stream_acquire.
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
/* Synchronizes a live or acquired stream.  Any thread may call this. */
enum tandem_status stream_synchronize_live(struct tandem_stream *stream,
                                           uint64_t timeout_ns);

/* Numbers a command that was enqueued and returns its seqno. */
uint64_t stream_next_seqno(struct tandem_stream *stream);
/* Records that all commands up to `seqno` have completed. */
void stream_mark_completed(struct tandem_stream *stream, uint64_t seqno);
/* Call this with the `code` that an enqueue has returned.  If it can mean a
 * lack of memory and *retried is false, returns freed blocks to the driver,
 * sets *retried and returns true; the caller then enqueues the command again.
 * Some drivers allocate device memory at the first use. */
bool stream_trim_for_retry(struct tandem_stream *stream, cl_int code,
                           bool *retried);
/* Enqueues a marker that gets no seqno.  The caller owns the marker's event. */
enum tandem_status stream_enqueue_marker(struct tandem_stream *stream,
                                         cl_event *out_event);
enum tandem_status stream_flush(struct tandem_stream *stream);

/* Makes `status` and the thread's last message the sticky error, poisons
 * buffers that unfinished commands write, and returns `status`.  Callable from
 * any thread. */
enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status);
/* Returns `status` and sets the error message to "WHAT failed: MESSAGE", with
 * the message of the sticky error.  Callable from any thread. */
enum tandem_status stream_report_error(struct tandem_stream *stream,
                                       enum tandem_status status,
                                       const char *what);

/* Waits for an event of the stream.  Returns NOT_READY after timeout_ns.  A
 * failure becomes the sticky error, and is returned when all unfinished
 * commands have completed. */
enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns);
/* Like stream_wait, but waits for all commands that were enqueued. */
enum tandem_status stream_drain(struct tandem_stream *stream,
                                uint64_t timeout_ns);

/* A GPU moves this many bytes in less than 100 us. */
#define SHORT_WAIT_BYTES ((uint64_t)8 << 20)
/* Bytes counted per command, which takes 1 to 2 us even without data. */
#define COMMAND_BYTES ((uint64_t)64 << 10)

/* Returns true if the unfinished commands will probably complete soon. */
static inline bool stream_wait_is_short(const struct tandem_stream *stream)
{
    return atomic_load(&stream->pending_bytes) < SHORT_WAIT_BYTES;
}

/* Counts a command that uses buffers of `bytes` bytes as unfinished work. */
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
