/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upload staging: uploads copy their source data to host memory of the stream,
 * so that the caller need not wait for earlier commands.  Only the thread that
 * uses the stream may call these functions, except for staging_trim.
 *
 * The memory is a ring of segments.  If the oldest segment is in use, the ring
 * grows, up to a size of 4 MiB.  After that, an upload waits until the data of
 * the oldest segment was written to the device.  A long upload fills one
 * segment while the previous segment is transferred.
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
    cl_mem mem; /* NULL if `memory` is from aligned_alloc */
    unsigned char *memory;
    uint64_t used;  /* number of used bytes */
    uint64_t seqno; /* number of the last command that reads the segment */
    cl_event event; /* event of command `seqno` or a later command; or NULL */
};

struct staging {
    pthread_mutex_t mutex; /* held during an upload */
    struct staging_segment segments[MAX_STAGING_SEGMENTS];
    uint32_t count, current; /* the oldest segment follows the current one */
};

/* Staging memory that is reserved for a part of an upload. */
struct staging_range {
    unsigned char *memory; /* NULL if the stream has no staging memory */
    uint64_t bytes;
    cl_event *event; /* receives the event of the write; or NULL */
};

void staging_start(struct staging *staging);
/* Frees all segments.  No command may use them. */
void staging_finish(struct tandem_stream *stream);
/* Frees all segments, unless a command or an upload is using one of them.  Any
 * thread may call this between stream_acquire and stream_release. */
void staging_trim(struct tandem_stream *stream);

/* Reserves staging memory for `bytes` bytes.  A range cannot exceed a segment,
 * so out_range->bytes can be smaller than `bytes`.  The caller must hold
 * staging.mutex until it has called staging_commit. */
enum tandem_status staging_reserve(struct tandem_stream *stream, uint64_t bytes,
                                   struct staging_range *out_range);
/* Call this after enqueuing the write command that reads `range`. */
void staging_commit(struct tandem_stream *stream,
                    const struct staging_range *range);

#endif
