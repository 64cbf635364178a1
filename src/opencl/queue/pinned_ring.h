/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream's ring of chunks of pinned memory.  Transfers copy their data
 * through the ring, so that the driver never accesses the caller's memory.  An
 * upload need not wait for earlier commands, and a download that times out
 * leaves nothing behind that writes to the caller's memory.  The chunks of a
 * CPU device are ordinary host memory.
 *
 * If the oldest chunk is in use, the ring grows, up to MAX_RING_CHUNKS chunks.
 * After that, a transfer waits until the oldest chunk is free.  A chunk is free
 * if the commands that use it have completed and its data was copied.
 *
 * The thread that uses the stream calls these functions and holds ring.mutex
 * during a transfer.  Other threads may only call ring_trim.
 */
#ifndef TANDEM_OPENCL_QUEUE_PINNED_RING_H
#define TANDEM_OPENCL_QUEUE_PINNED_RING_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* The first chunk is small, because pinning memory takes time: 0.5 ms per MiB
 * on an H200.  The other chunks are larger, because the device is idle between
 * two commands, and a command does not exceed a chunk. */
#define FIRST_CHUNK_BYTES ((uint64_t)512 << 10)
#define CHUNK_BYTES ((uint64_t)4 << 20)
#define MAX_RING_CHUNKS 5u

struct ring_chunk {
    unsigned char *memory;
    uint64_t bytes, used; /* size, and reserved bytes */
    uint64_t seqno;       /* number of the last command that uses the chunk */
    cl_event event;       /* event of command `seqno` or a later one; or NULL */
    /* Number of ranges that wait for their command (upload) or whose data was
     * not copied yet (download). */
    uint32_t held;
    struct ring_chunk *next; /* the oldest chunk follows the current one */
};

struct pinned_ring {
    pthread_mutex_t mutex; /* held during a transfer */
    struct ring_chunk chunks[MAX_RING_CHUNKS];
    uint32_t count;
    struct ring_chunk *current; /* NULL if there are no chunks */
    bool exhausted;             /* no memory for another chunk */
};

/* A part of a chunk that is reserved for one command of a transfer. */
struct ring_range {
    unsigned char *memory; /* NULL if the oldest chunk is in use */
    uint64_t bytes;
    struct ring_chunk *chunk;
};

void ring_start(struct pinned_ring *ring);
/* Frees all chunks.  No command may use them. */
void ring_finish(struct tandem_stream *stream);
/* Frees all chunks, unless a command or a transfer is using one of them.  Any
 * thread may call this between stream_acquire and stream_release. */
void ring_trim(struct tandem_stream *stream);

/* Prepares a transfer and locks ring.mutex until ring_end.  Returns UNSUPPORTED
 * and does not lock the mutex if there is no memory for the ring, or NOT_READY
 * if the driver does not provide the memory in time. */
enum tandem_status ring_begin(struct tandem_stream *stream);
/* Ends a transfer.  Ranges that are still held become free when the commands
 * that were committed have completed.  No thread may copy data any more. */
void ring_end(struct tandem_stream *stream);

/* Reserves and holds memory for a command of up to `bytes` bytes.  A range
 * cannot exceed a chunk, so out_range->bytes can be smaller than `bytes`.  Does
 * not wait for commands: out_range->memory is NULL if the ring is full. */
enum tandem_status ring_reserve(struct tandem_stream *stream, uint64_t bytes,
                                struct ring_range *out_range);
/* Returns where the write command of an upload must store its event, or NULL if
 * the ring needs no event. */
cl_event *ring_write_event(struct tandem_stream *stream,
                           const struct ring_range *range);
/* Call this after enqueuing the command that uses `range`. */
void ring_commit(struct tandem_stream *stream, const struct ring_range *range);
/* Ends the hold of ring_reserve.  Call this for an upload after ring_commit,
 * and for a download when the data was copied. */
void ring_release(const struct ring_range *range);
/* Waits until the commands that use the oldest chunk have completed.  The chunk
 * must not be held. */
enum tandem_status ring_wait(struct tandem_stream *stream, uint64_t timeout_ns);

#endif
