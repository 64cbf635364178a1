/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes between host and device, and within the device.  The stream's thread;
 * the stream is live and without error. */
#ifndef TANDEM_OPENCL_TRANSFER_TRANSFER_H
#define TANDEM_OPENCL_TRANSFER_TRANSFER_H

#include "opencl/queue/stream.h"

/* Enqueues a write or a read and counts it; event may be NULL. */
enum tandem_status transfer_write(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, const void *source,
                                  uint64_t bytes, cl_bool blocking,
                                  cl_event *event);
enum tandem_status transfer_read(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 void *target, uint64_t bytes,
                                 cl_bool blocking, cl_event *event);
/* A read that is waited for. */
enum tandem_status transfer_fetch(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer,
                                  uint64_t offset, void *target,
                                  uint64_t bytes, uint64_t timeout_ns);

enum tandem_status transfer_upload(struct tandem_stream *stream,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags);
enum tandem_status transfer_download(struct tandem_stream *stream,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns);
enum tandem_status transfer_copy(struct tandem_stream *stream,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes);
enum tandem_status transfer_fill(struct tandem_stream *stream,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 uint64_t bytes, const void *pattern,
                                 uint32_t pattern_bytes);
enum tandem_status transfer_map(struct tandem_stream *stream,
                                struct tandem_buffer *buffer, uint64_t offset,
                                uint64_t bytes, uint32_t flags,
                                uint64_t timeout_ns, void **out_memory);
enum tandem_status transfer_unmap(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer, void *memory);

#endif
