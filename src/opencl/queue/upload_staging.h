/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upload staging: host memory of a stream to which uploads copy their source,
 * so that they do not wait for earlier commands.  The thread of the stream,
 * except for staging_trim.
 *
 * The memory is a ring of segments.  It grows up to 4 MiB while the oldest
 * segment is in use; after that an upload waits until the oldest segment was
 * written to the device.  A long upload fills one segment while the previous
 * one is transferred.
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
    uint64_t seqno; /* of the last write from the segment */
    cl_event event; /* of that write or a later command; may be NULL */
};

struct staging {
    pthread_mutex_t mutex; /* held during an upload */
    struct staging_segment segments[MAX_STAGING_SEGMENTS];
    uint32_t count, current; /* the oldest segment follows the current one */
};

/* Reserved memory for a part of an upload. */
struct staging_range {
    unsigned char *memory; /* NULL if there is no memory for staging */
    uint64_t bytes;
    cl_event *event; /* receives the event of the write; may be NULL */
};

void staging_start(struct staging *staging);
/* The stream's commands must have completed, or the device must be lost. */
void staging_finish(struct tandem_stream *stream);
/* Frees the memory, unless a command or an upload uses it.  Any thread; the
 * caller has acquired the stream. */
void staging_trim(struct tandem_stream *stream);

/* Reserves memory for the first of `bytes` bytes.  The caller holds
 * staging.mutex for this and for staging_commit. */
enum tandem_status staging_reserve(struct tandem_stream *stream, uint64_t bytes,
                                   struct staging_range *out_range);
/* Call this when the write from the range was enqueued. */
void staging_commit(struct tandem_stream *stream,
                    const struct staging_range *range);

#endif
