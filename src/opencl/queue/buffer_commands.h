/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enqueues commands that read, write, copy, fill and map buffers.  Called on
 * the thread that uses the stream.
 */
#ifndef TANDEM_OPENCL_QUEUE_BUFFER_COMMANDS_H
#define TANDEM_OPENCL_QUEUE_BUFFER_COMMANDS_H

#include "opencl/queue/stream.h"

/* A transfer between host memory and a part of a buffer. */
struct transfer {
    struct tandem_stream *stream;
    struct tandem_buffer *buffer;
    uint64_t offset; /* start of the part in the buffer, in bytes */
    unsigned char *host;
    uint64_t bytes;
    bool upload; /* true means a write to the buffer, false means a read */
};

/* Checks the stream, the buffer and the range.  Makes the stream wait for other
 * streams that use the buffer's memory.  Error messages name the operation
 * `what`. */
enum tandem_status buffer_begin_command(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const char *what);
/* Enqueues the transfer.  Call buffer_begin_command first.  Unless `event` is
 * NULL, *event receives an event that the caller owns. */
enum tandem_status transfer_enqueue(const struct transfer *transfer,
                                    cl_bool blocking, cl_event *event);
/* Enqueues the transfer and waits until it has completed. */
enum tandem_status transfer_wait(const struct transfer *transfer,
                                 uint64_t timeout_ns);

/* The functions of backend.h. */
enum tandem_status buffer_copy(struct tandem_stream *stream,
                               struct tandem_buffer *target,
                               uint64_t target_offset,
                               struct tandem_buffer *source,
                               uint64_t source_offset, uint64_t bytes);
enum tandem_status buffer_fill(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               uint64_t bytes, const void *pattern,
                               uint32_t pattern_bytes);
enum tandem_status buffer_map(struct tandem_stream *stream,
                              struct tandem_buffer *buffer, uint64_t offset,
                              uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, void **out_memory);
enum tandem_status buffer_unmap(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, void *memory);

#endif
