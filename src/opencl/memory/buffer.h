/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory as callers have it: buffers.  Any thread; their list is under
 * the pool's mutex, a buffer's marks are atomics.
 */
#ifndef TANDEM_OPENCL_MEMORY_BUFFER_H
#define TANDEM_OPENCL_MEMORY_BUFFER_H

#include <stdatomic.h>
#include <tandem/backend.h>

#include "common/handle_pool.h"
#include "opencl/device/cl_api.h"
#include "opencl/memory/block_pool.h"

/* Work of more than one stream may still use the block. */
#define STREAM_SEVERAL UINT64_MAX

struct tandem_buffer {
    struct handle handle;
    struct tandem_device *device;
    cl_mem mem;
    struct block *block; /* NULL: the caller's memory, imported */
    uint64_t bytes;
    /* Where it lies in an address space of ours, in which host memory has its
     * own addresses; for judging overlaps. */
    uint64_t address;
    uint32_t skew;  /* bytes past an alignment of 64 at which it starts */
    bool internal;  /* a temporary of ours: not in the statistics' counts */
    struct tandem_buffer *previous, *next;
    /* The last use, and the last write: which stream, and how far in it. */
    _Atomic uint64_t used_stream, used_serial;
    _Atomic uint64_t written_stream, written_seqno;
    /* What the block's former owner left under way, and the stream that has
     * been told to wait for it. */
    _Atomic uint64_t former_stream, former_serial, synced_stream;
    _Atomic uint32_t poison; /* enum tandem_status */
    _Atomic uint32_t maps;
    struct kept *kept; /* what is kept of it; the pool's mutex */
};

void pool_start(struct pool *pool, uint64_t cap_bytes);
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
void pool_stats(struct tandem_device *device, struct tandem_memory_stats *out);

/* 0, too, without a buffer: what is asked about before there is one. */
static inline uint32_t buffer_misalignment(const struct tandem_buffer *buffer)
{
    return buffer != NULL ? buffer->skew : 0;
}

bool buffer_live(const struct tandem_buffer *buffer);
/* INVALID_ARGUMENT for a freed, foreign or mapped buffer. */
enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer,
                                const char *what);
/* The status that poisons it, with a message; or TANDEM_OK. */
enum tandem_status buffer_poisoned(const struct tandem_buffer *buffer);
/* Poisons what stream wrote after serial. */
void pool_poison(struct tandem_device *device, uint64_t stream,
                 uint64_t serial, enum tandem_status status);

#endif
