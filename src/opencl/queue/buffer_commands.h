/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues commands that read, write, copy, fill and map buffers.  Only the
 * thread that uses the stream may call these functions. */
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

/* Call this before enqueuing a command.  Checks the stream, the buffer and the
 * range, and that the buffer is not sealed if the command `writes` it.  Makes
 * the stream wait for other streams that use the buffer's memory.  `what` names
 * the operation for error messages. */
enum tandem_status buffer_begin_command(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const char *what, bool writes);
/* Enqueues the transfer.  The caller must first call buffer_begin_command.  If
 * `event` is not NULL, the caller owns *event, the event of the command. */
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
