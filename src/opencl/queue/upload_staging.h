/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upload staging: host memory of a stream.  Uploads copy their source data to
 * it, so that they do not wait for earlier commands.  Called on the thread that
 * uses the stream, except for staging_trim.
 *
 * The memory is a ring of segments.  The ring grows up to 4 MiB while its
 * oldest segment is in use.  After that, an upload waits until the oldest
 * segment was written to the device.  A long upload fills one segment while the
 * previous segment is transferred.
 */
#ifndef TANDEM_OPENCL_QUEUE_UPLOAD_STAGING_H
#define TANDEM_OPENCL_QUEUE_UPLOAD_STAGING_H

#include <pthread.h>
#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

#define STAGING_SEGMENT_BYTES ((uint64_t)512 << 10)
#define MAX_STAGING_SEGMENTS 8u
#define STAGING_BYTES (MAX_STAGING_SEGMENTS * STAGING_SEGMENT_BYTES)

struct staging_segment {
    cl_mem mem; /* NULL if the memory is from aligned_alloc */
    unsigned char *memory;
    uint64_t used;  /* bytes */
    uint64_t seqno; /* seqno of the last write that reads the segment */
    cl_event event; /* event of the last write or a later command, or NULL */
};

struct staging {
    pthread_mutex_t mutex; /* held during an upload */
    struct staging_segment segments[MAX_STAGING_SEGMENTS];
    uint32_t count, current; /* the oldest segment follows the current one */
};

/* Staging memory that is reserved for a part of an upload. */
struct staging_range {
    unsigned char *memory; /* NULL if there is no memory for staging */
    uint64_t bytes;
    cl_event *event; /* receives the event of the write; may be NULL */
};

void staging_start(struct staging *staging);
/* Frees all segments.  No command may use them, unless the device is lost. */
void staging_finish(struct tandem_stream *stream);
/* Frees the segments, unless a command or an upload uses them.  Any thread may
 * call this after stream_acquire. */
void staging_trim(struct tandem_stream *stream);

/* Reserves staging memory for up to `bytes` bytes, at most one segment.  The
 * caller holds staging.mutex until it has called staging_commit. */
enum tandem_status staging_reserve(struct tandem_stream *stream, uint64_t bytes,
                                   struct staging_range *out_range);
/* Call this after enqueuing the write that reads the range. */
void staging_commit(struct tandem_stream *stream,
                    const struct staging_range *range);

#endif
