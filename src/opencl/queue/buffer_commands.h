/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enqueues commands that read, write, copy, fill and map buffers.  Called on
 * the thread that uses the stream, which must be live and have no sticky error.
 */
#ifndef TANDEM_OPENCL_QUEUE_BUFFER_COMMANDS_H
#define TANDEM_OPENCL_QUEUE_BUFFER_COMMANDS_H

#include "opencl/queue/stream.h"

/* Checks the buffer and the range.  Makes the stream wait for other streams
 * that use the buffer's memory.  Error messages name the operation `what`. */
enum tandem_status buffer_begin_command(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const char *what);
/* Enqueue a write or read of a buffer.  Call buffer_begin_command first.
 * Unless `event` is NULL, *event receives an event that the caller owns. */
enum tandem_status buffer_enqueue_write(struct tandem_stream *stream,
                                        struct tandem_buffer *buffer,
                                        uint64_t offset, const void *source,
                                        uint64_t bytes, cl_bool blocking,
                                        cl_event *event);
enum tandem_status buffer_enqueue_read(struct tandem_stream *stream,
                                       struct tandem_buffer *buffer,
                                       uint64_t offset, void *target,
                                       uint64_t bytes, cl_bool blocking,
                                       cl_event *event);
/* Enqueues a read of the buffer and waits until it has completed. */
enum tandem_status buffer_read(struct tandem_stream *stream,
                               struct tandem_buffer *buffer, uint64_t offset,
                               void *target, uint64_t bytes,
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
