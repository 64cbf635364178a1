/* SPDX-License-Identifier: Apache-2.0 */
/* The structs behind the plugin's handles, for all folders. */
#ifndef TANDEM_OPENCL_OBJECTS_H
#define TANDEM_OPENCL_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <tandem/backend.h>

#include "common/handle_pool.h"
#include "opencl/device/cl_api.h"
#include "opencl/gemm/clblast_overrides.h"
#include "opencl/gemm/gemm_selector.h"
#include "opencl/memory/block_pool.h"
#include "opencl/plan/plan.h"
#include "opencl/program/kernel_variants.h"
#include "opencl/program/nvidia/sm90a_self_test_result.h"
#include "opencl/program/program_cache.h"
#include "opencl/queue/upload_staging.h"
#include "opencl/transfer/bulk_transfer.h"

struct platform_device;

/* How the driver's own waits behave. */
enum driver_wait_mode {
    DRIVER_WAIT_UNKNOWN,
    DRIVER_WAIT_BLOCKING,
    DRIVER_WAIT_SPINNING
};

struct tandem_device {
    struct handle handle;
    const struct platform_device *hardware;
    cl_context context;       /* shared with other opens of this hardware */
    cl_command_queue utility; /* for commands that belong to no stream */
    tandem_log_fn log;
    void *log_user;
    struct program_cache cache;
    atomic_bool lost;
    atomic_bool must_leak; /* work did not complete; objects are not released */
    /* The driver cannot report whether work has ended.  Host memory that the
     * work may use is released later; see deferred_release.h. */
    atomic_bool defers_release;
    /* Time limit for builds, and for work in calls that have no timeout
     * parameter.  0 means no limit. */
    uint64_t blocking_timeout_ns;
    atomic_int shares_memory; /* result of the test in host_import.c */
    _Atomic uint32_t driver_wait_mode; /* set by event_wait.c */
    bool has_device_scope_visibility; /* see struct op_request in plan.h */
    pthread_mutex_t mutex;            /* guards streams and next_stream_id */
    struct tandem_stream *streams;
    uint64_t next_stream_id;
    struct pool pool;
    struct bulk_transfer bulk_transfer;
    struct programs programs;
    struct gemm_selector gemm_selector; /* GEMM kernel selection */
    enum sm90a_self_test_result sm90a_self_test; /* from the profile */
    bool self_test_only;  /* open key: tune runs only the sm_90a self-test */
    struct clblast_overrides clblast_overrides; /* from the profile */
};

/* The pool's mutex guards the lists of buffers and of entries. */
struct tandem_buffer {
    struct handle handle;
    struct tandem_device *device;
    cl_mem mem;
    struct block *block; /* NULL if the memory is imported */
    uint64_t bytes;
    /* Address for overlap checks.  Blocks have unique virtual addresses;
     * imported memory has its host address. */
    uint64_t address;
    uint32_t skew; /* distance from a 64-byte boundary to the first byte */
    bool internal; /* temporary of the plugin, not counted in statistics */
    struct tandem_buffer *previous, *next;
    /* Stream id and seqno of the last use and of the last write. */
    _Atomic uint64_t used_stream, used_seqno;
    _Atomic uint64_t written_stream, written_seqno;
    /* Last use of the block by its previous owner, and the id of the stream
     * that waits for this use. */
    _Atomic uint64_t prior_stream, prior_seqno, synced_stream;
    _Atomic uint32_t poison; /* enum tandem_status */
    _Atomic uint32_t map_count;
    struct pack_cache_entry *pack_cache_entries; /* made from this buffer */
};

/* Returns 0 if `buffer` is NULL, for queries without memory. */
static inline uint32_t buffer_misalignment(const struct tandem_buffer *buffer)
{
    return buffer != NULL ? buffer->skew : 0;
}

/* A stream's own cl_kernel of a variant and the arguments that were set last.
 */
struct stream_kernel {
    uint64_t key; /* 0 marks an empty slot */
    cl_kernel kernel;
    /* Addresses of the blocks that are set as arguments, or 0.  Addresses are
     * never reused. */
    uint64_t bound_addresses[MAX_STEP_BUFFERS];
    uint32_t param_bytes; /* size of `params`; 0 before the first launch */
    unsigned char *params;
};

/* Bytes of temporary memory that CLBlast needs for a shape. */
struct clblast_temp_size_entry {
    uint64_t shape[8];
    size_t temp_bytes;
};
#define CLBLAST_TEMP_SIZE_COUNT 16u

/* See readback_buffer.h. */
struct readback {
    void *memory;      /* pinned; allocated at first use */
    bool alloc_failed; /* the allocation is not repeated */
};

/* An in-order queue.  Used by one thread at a time, except for id, seqnos and
 * queue, which other threads read under device.mutex. */
struct tandem_stream {
    struct handle handle;
    struct tandem_device *device;
    cl_command_queue queue;
    uint64_t id; /* from 1, unique within the device */
    uint32_t flags;
    uint32_t references; /* guarded by device.mutex */
    /* Commands are numbered from 1. */
    _Atomic uint64_t issued_seqno, completed_seqno, flushed_seqno;
    _Atomic uint64_t pending_bytes; /* that unfinished commands use */
    _Atomic uint32_t status;        /* the sticky error, or TANDEM_OK */
    char message[256];              /* of the sticky error */
    struct stream_kernel *kernels; /* hash table, open addressing by key */
    uint32_t kernel_slots, kernel_count;
    struct clblast_temp_size_entry clblast_temp_sizes[CLBLAST_TEMP_SIZE_COUNT];
    struct staging staging;
    struct readback readback;
    struct tandem_buffer *arrival_counters; /* NULL before first use */
    atomic_bool arrival_counters_are_zero;
    struct tandem_stream *previous, *next; /* guarded by device.mutex */
};

struct tandem_event {
    struct handle handle;
    struct tandem_device *device;
    cl_event event;
    uint64_t stream, seqno; /* id of the stream, seqno of the marker */
    bool profiling;         /* the stream records times */
    _Atomic bool completed; /* known to have completed */
    struct tandem_event *previous, *next;
};

#endif
