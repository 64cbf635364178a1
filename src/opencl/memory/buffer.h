/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that callers or the plugin itself created. Any thread may call these
 * functions. pool.mutex guards the list of buffers. The members of a buffer
 * that commands change are atomic. */
#ifndef TANDEM_OPENCL_MEMORY_BUFFER_H
#define TANDEM_OPENCL_MEMORY_BUFFER_H

#include <tandem/backend.h>

#include "opencl/objects.h"

/* Value of used_stream and prior_stream if several streams used the memory. */
#define MULTIPLE_STREAMS UINT64_MAX

void pool_start(struct pool *pool, uint64_t limit_bytes);
/* Releases all device memory, even the memory of live buffers, to the driver.
 * If the device's work has ended, calls the callbacks of imported memory;
 * otherwise, call this function again when it has. */
void pool_finish(struct tandem_device *device, bool work_ended);

/* Creates a buffer. buffer_count and alloc_count omit `internal` buffers. */
enum tandem_status buffer_create(struct tandem_device *device, uint64_t bytes,
                                 bool internal,
                                 struct tandem_buffer **out_buffer);
/* Creates a buffer in host memory that must stay valid until buffer_destroy. */
enum tandem_status buffer_import(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);
/* Like buffer_import. `call`(user) is called when the last reference to the
 * buffer's import_release is dropped; buffer_destroy drops one. */
enum tandem_status
buffer_import_with_release(struct tandem_device *device, void *memory,
                           uint64_t bytes, tandem_release_fn call, void *user,
                           struct tandem_buffer **out_buffer);
/* A memory object of the caller. */
struct wrapped_memory {
    cl_mem mem, root; /* root contains mem, or is mem */
    uint64_t bytes, root_bytes;
    uint64_t root_offset; /* of mem in root, in bytes */
    void *host;           /* its host memory, or NULL */
};
/* Creates a buffer in memory of the caller, and retains the memory.  `call` may
 * be NULL, and is as in buffer_import_with_release. */
enum tandem_status buffer_wrap(struct tandem_device *device,
                               const struct wrapped_memory *from,
                               tandem_release_fn call, void *user,
                               struct tandem_buffer **out_buffer);
/* Records that the caller may write the buffer's memory at any time. */
void buffer_expose(struct tandem_buffer *buffer);
void buffer_destroy(struct tandem_buffer *buffer);

/* References to the callback of imported memory, which outlives the device. */
void import_release_retain(struct import_release *release);
void import_release_drop(struct import_release *release);
/* Keeps a reference until pool_finish, after the device's work has ended. */
void import_release_keep(struct tandem_device *device,
                         struct import_release *release);
/* Fills all members of `out` except cached_kernel_count and free_bytes. */
void pool_stats(struct tandem_device *device, struct tandem_memory_stats *out);

bool buffer_is_live(const struct tandem_buffer *buffer);
enum tandem_status buffer_check_live(const struct tandem_buffer *buffer);
/* Returns INVALID_ARGUMENT if the buffer is NULL, freed, or of another device.
 * The error message does not name the operation. */
enum tandem_status buffer_check_owner(const struct tandem_device *device,
                                      const struct tandem_buffer *buffer);
/* Like buffer_check_owner, but a mapped buffer is an error, too. */
enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer);
/* Implements the entry of backend.h. */
enum tandem_status buffer_seal(struct tandem_buffer *buffer);
/* Returns an error if the buffer is poisoned, that is, a write to it failed. */
enum tandem_status buffer_check_poison(const struct tandem_buffer *buffer);
/* Poisons the buffer, because a command that should write to it has failed. */
void buffer_poison(struct tandem_buffer *buffer, enum tandem_status status);
/* Removes the poison if written_bytes is the size of the whole buffer. */
void buffer_clear_poison(struct tandem_buffer *buffer, uint64_t written_bytes);
/* Poisons the buffers whose last write is a command of `stream` with a number
 * above `seqno`. */
void pool_poison_writes(struct tandem_device *device, uint64_t stream,
                        uint64_t seqno, enum tandem_status status);

#endif
