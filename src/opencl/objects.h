/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of the plugin's handles: devices, buffers, streams and events. */
#ifndef TANDEM_OPENCL_OBJECTS_H
#define TANDEM_OPENCL_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <tandem/backend.h>

#include "common/gemm_calls.h"
#include "common/handle_pool.h"
#include "opencl/compile_process/compile_pool.h"
#include "opencl/device/cl_api.h"
#include "opencl/plan/gemm_selector.h"
#include "opencl/memory/block_pool.h"
#include "opencl/plan/plan.h"
#include "opencl/program/programs.h"
#include "opencl/program/nvidia/sm90a_self_test_result.h"
#include "opencl/program/program_cache.h"
#include "opencl/queue/pinned_ring.h"
#include "opencl/transfer/copy_threads.h"

struct platform_device;

struct tandem_device {
    struct handle handle;
    uint64_t id; /* of this opening; never used again */
    const struct platform_device *hardware;
    cl_context context;       /* shared by all open handles of the hardware */
    cl_command_queue utility; /* queue for commands without a stream */
    tandem_log_fn log;
    void *log_user;
    struct program_cache cache;
    struct compile_pool compile_pool;
    atomic_bool lost;
    bool is_abandoned;          /* closed while commands were unfinished */
    struct tandem_device *next; /* in the list of abandoned devices */
    /* Time limit for builds, and for waits in calls that have no timeout
     * parameter.  0 means no limit. */
    uint64_t blocking_timeout_ns;
    atomic_int shares_memory; /* result of the import test (host_import.c) */
    bool has_device_scope_visibility; /* see op_request in plan/plan.h */
    pthread_mutex_t mutex;            /* guards the next three members */
    struct tandem_stream *streams;
    uint64_t next_stream_id;
    struct deferred_release *deferred; /* see deferred_release.c */
    struct pool pool;
    pthread_mutex_t copy_mutex; /* held while a transfer uses copy_threads */
    struct copy_threads copy_threads;
    uint32_t forced_transfer_path; /* enum transfer_path */
    struct programs programs;
    struct gemm_selector gemm_selector;
    struct gemm_calls gemm_calls;
    atomic_bool attention_mma_failed; /* the driver cannot run the kernel */
    enum sm90a_self_test_result sm90a_self_test; /* from the profile */
    bool self_test_only; /* tuning runs only the self-test */
};

/* A buffer.  pool.mutex guards the list of buffers (next, link) and the list
 * packed_copies. */
struct tandem_buffer {
    struct handle handle;
    struct tandem_device *device;
    cl_mem mem;
    struct block *block;   /* memory block; NULL if memory is imported */
    cl_mem root;           /* wrapped memory: the object that contains mem */
    uint64_t root_address; /* wrapped memory: the address of root */
    uint64_t bytes;
    /* Start address of the buffer for overlap checks: the unique virtual
     * address of the block, or the host address of imported memory. */
    uint64_t address;
    uint32_t skew; /* imported address modulo 64; 0 for blocks */
    bool internal; /* not counted in buffer_count */
    struct import_release *release; /* callback of imported memory, or NULL */
    struct tandem_buffer *next, **link; /* *link points to this buffer */
    /* Stream id and command number of the buffer's last use and last write. */
    _Atomic uint64_t used_stream, used_seqno;
    _Atomic uint64_t written_stream, written_seqno;
    /* Last use of the memory block by an earlier buffer. synced_stream is the
     * id of the stream that already waits for this use. */
    _Atomic uint64_t prior_stream, prior_seqno, synced_stream;
    _Atomic uint32_t poison; /* status of the failed write, or TANDEM_OK */
    _Atomic uint32_t is_mapped;
    atomic_bool is_exposed; /* the caller has `mem` and may write to it */
    atomic_bool is_sealed;  /* never written again; see buffer_seal */
    struct packed_copy *packed_copies; /* see packed_copy.h */
};

/* Returns `skew` of the buffer, or 0 if `buffer` is NULL. */
static inline uint32_t buffer_misalignment(const struct tandem_buffer *buffer)
{
    return buffer != NULL ? buffer->skew : 0;
}

/* The cl_kernel that a stream uses for a variant, and its current arguments. */
struct stream_kernel {
    struct kernel_key key; /* key.kernel is NULL in an empty slot */
    cl_kernel kernel;
    /* Addresses of the memory blocks that are set as kernel arguments. 0 means
     * imported memory or no argument.  Block addresses are never reused. */
    uint64_t bound_addresses[MAX_STEP_BUFFERS];
    uint32_t param_bytes; /* bytes in `params`; 0 before the first launch */
    unsigned char *params;
};

/* Size of the temporary buffer that CLBlast needs for a GEMM shape. */
struct clblast_temp_size_entry {
    uint64_t shape[8];
    size_t temp_bytes;
};
#define CLBLAST_TEMP_SIZE_COUNT 16u

/* A stream: an in-order command queue.  Only one thread at a time uses a
 * stream.  Other threads may read the id, the queue and the command numbers
 * (seqno) if they hold device.mutex. */
struct tandem_stream {
    struct handle handle;
    struct tandem_device *device;
    cl_command_queue queue;
    uint64_t id; /* unique within the device; 0 is not used */
    uint32_t flags;
    uint32_t references; /* guarded by device.mutex */
    /* Last issued, completed and flushed command number; 0 means none. */
    _Atomic uint64_t issued_seqno, completed_seqno, flushed_seqno;
    _Atomic uint64_t pending_bytes; /* memory that unfinished commands use */
    _Atomic uint32_t status;        /* the sticky error, or TANDEM_OK */
    char message[256];              /* message of the sticky error */
    struct stream_kernel *kernels;  /* hash table of the stream's kernels */
    uint32_t kernel_slots, kernel_count;
    struct clblast_temp_size_entry clblast_temp_sizes[CLBLAST_TEMP_SIZE_COUNT];
    struct pinned_ring ring; /* memory for transfers */
    void *host_memory;       /* freed with the stream; NULL except in a test */
    struct tandem_buffer *arrival_counters; /* NULL before first use */
    atomic_bool arrival_counters_are_zero;
    struct tandem_stream *next, **link; /* guarded by device.mutex */
};

struct tandem_event {
    struct handle handle;
    struct tandem_device *device;
    cl_event event;
    uint64_t stream, seqno; /* id of the stream, number of the marker command */
    bool profiling;         /* set if the stream has profiling enabled */
    _Atomic bool completed; /* the event is known to have completed */
    struct tandem_event *next, **link;
};

#endif
