/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of a stream from which its uploads are written, so that an
 * upload returns once it has copied its source and waits for no work.  The
 * stream's thread, but for staging_trim.
 *
 * It is a ring of chunks that grows, chunk by chunk, while the oldest is
 * under way, to 4 MiB.  Beyond that an upload waits until the oldest chunk has
 * been written, only for the sake of its memory: 4 MiB of uploads are under
 * way then.  Of a long upload the next chunk is copied while the one before is
 * transferred.
 */
#ifndef TANDEM_OPENCL_QUEUE_UPLOAD_STAGING_H
#define TANDEM_OPENCL_QUEUE_UPLOAD_STAGING_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

#define STAGING_CHUNK_BYTES ((uint64_t)512 << 10)
#define STAGING_CHUNKS 8u
#define STAGING_BYTES (STAGING_CHUNKS * STAGING_CHUNK_BYTES)

struct staging_chunk {
    cl_mem mem; /* NULL: memory is of malloc */
    unsigned char *memory;
    uint64_t used;  /* bytes */
    uint64_t seqno; /* of the last write from it */
    cl_event event;  /* of that write, or later; NULL: none was asked for */
};

struct staging {
    pthread_mutex_t mutex; /* held for an upload, tried by staging_trim */
    struct staging_chunk chunks[STAGING_CHUNKS];
    uint32_t count, at; /* after chunks[at] comes the oldest */
};

/* Where the next piece of an upload may be put. */
struct staging_room {
    unsigned char *memory; /* NULL: there is no memory for staging */
    uint64_t bytes;
    cl_event *event; /* for the write: NULL, or where its event is to go */
};

void staging_start(struct staging *staging);
/* The stream's work is done, or its device lost. */
void staging_finish(struct tandem_stream *stream);
/* Frees what no write under way uses, unless an upload is going on.  Any
 * thread; the stream stays live meanwhile. */
void staging_trim(struct tandem_stream *stream);

/* Room for the first of bytes bytes; with staging.mutex held. */
enum tandem_status staging_take(struct tandem_stream *stream, uint64_t bytes,
                                struct staging_room *out_room);
/* After the write of that room was enqueued and counted. */
void staging_written(struct tandem_stream *stream,
                     const struct staging_room *room);

#endif
