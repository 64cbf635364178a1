/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory as callers have it: buffers.  Any thread; their list is under
 * the pool's mutex, a buffer's marks are atomics.
 */
#ifndef TANDEM_OPENCL_MEMORY_BUFFER_H
#define TANDEM_OPENCL_MEMORY_BUFFER_H

#include <tandem/backend.h>

#include "opencl/objects.h"

/* Work of more than one stream may still use the block. */
#define MULTIPLE_STREAMS UINT64_MAX

void pool_start(struct pool *pool, uint64_t limit_bytes);
/* Releases everything, live buffers included.  The device's work is done. */
void pool_finish(struct tandem_device *device);

/* The entries of backend.h, arguments checked by the caller. */
enum tandem_status buffer_create(struct tandem_device *device, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer);
enum tandem_status buffer_import(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);
void buffer_destroy(struct tandem_buffer *buffer);
/* Fills all members but cached_kernel_count. */
void pool_stats(struct tandem_device *device, struct tandem_memory_stats *out);

bool buffer_is_live(const struct tandem_buffer *buffer);
/* INVALID_ARGUMENT for a freed, foreign or mapped buffer. */
enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer,
                                const char *what);
/* The status that poisons it, with a message; or TANDEM_OK. */
enum tandem_status buffer_check_poison(const struct tandem_buffer *buffer);
/* Poisons a buffer of which a failed command wrote a part. */
void buffer_poison(struct tandem_buffer *buffer, enum tandem_status status);
/* Call this after a command wrote `written_bytes` bytes.  Clears the poison if
 * these are all bytes of the buffer. */
void buffer_clear_poison(struct tandem_buffer *buffer, uint64_t written_bytes);
/* Poisons the buffers that the stream wrote after `seqno`. */
void pool_poison_writes(struct tandem_device *device, uint64_t stream,
                        uint64_t seqno, enum tandem_status status);

#endif
