/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the CPU plugin, and the functions that its files share.  Every
 * operation completes inside the call that requests it, so a stream has no
 * queue and a recorded event is always complete. */
#ifndef TANDEM_CPU_OBJECTS_H
#define TANDEM_CPU_OBJECTS_H

#include <pthread.h>

#include "common/tensor_desc.h"

#include "common/argument_check.h"
#include "common/gemm_calls.h"
#include "common/handle_pool.h"
#include "cpu/kernels/kernel_table.h"
#include "cpu/threads/thread_pool.h"

/* First member of each stream, event and buffer; links it in a device list. */
struct owned {
    struct handle handle;
    struct tandem_device *device;
    struct owned *next, *previous;
};

/* Link in the list of free blocks of a size class, stored in the free block. */
struct free_block {
    struct free_block *next;
};
#define MEMORY_CLASSES 192u

/* Lists of free blocks, and statistics.  The device's mutex guards both. */
struct memory {
    struct free_block *free[MEMORY_CLASSES];
    struct tandem_memory_stats stats;
};

struct tandem_device {
    struct handle handle;
    uint64_t id;           /* of this opening; never used again */
    pthread_mutex_t mutex; /* guards the object lists and `memory` */
    struct owned *streams, *events, *buffers;
    struct memory memory;
    uint64_t machine_bytes;        /* physical memory of the machine in bytes */
    const struct kernels *kernels; /* kernels of the instruction set in use */
    struct pool *pool;
    struct gemm_calls gemm_calls;
};

struct tandem_stream {
    struct owned owned;
    uint32_t flags;
};

struct tandem_event {
    struct owned owned;
    struct tandem_stream *stream; /* recorded stream, if it still exists */
    bool profiling;
    uint64_t at_ns; /* time of the record call in ns, if profiling is true */
};

struct tandem_buffer {
    struct owned owned;
    unsigned char *base;
    uint64_t bytes;       /* buffer size that the caller requested */
    uint64_t block_bytes; /* size of the memory block; 0 if imported */
    uint32_t size_class;  /* MEMORY_CLASSES if the block has no size class */
    uint32_t is_mapped;   /* 0 or 1, accessed atomically */
    bool is_sealed;       /* accessed atomically */
    tandem_release_fn release; /* of imported memory; may be NULL */
    void *release_user;
};

extern struct handle_pool device_pool, stream_pool, event_pool, buffer_pool;

/* ---- objects.c ---------------------------------------------------------- */

/* These functions return TANDEM_OK for a live handle.  Otherwise they set and
 * return an error. */
enum tandem_status device_check(const struct tandem_device *device);
enum tandem_status stream_check(struct tandem_stream *stream);
enum tandem_status event_check(struct tandem_event *event);
/* Returns TANDEM_OK if the buffer is live and belongs to the device. */
enum tandem_status buffer_check(const struct tandem_device *device,
                                const struct tandem_buffer *buffer);
/* Callback of check_op: writes the memory range of a buffer to `out`.  Fails
 * unless the buffer is live, unmapped and belongs to the device `user`. */
enum tandem_status buffer_span(const void *user,
                               const struct tandem_buffer *buffer,
                               struct address_range *out);
/* The caller of owned_link and owned_unlink holds the device's mutex. */
void owned_link(struct owned **list, struct owned *object);
void owned_unlink(struct owned **list, struct owned *object);

/* ---- memory.c ----------------------------------------------------------- */

enum tandem_status
memory_alloc_options(struct tandem_device *device,
                     const struct tandem_alloc_options *options,
                     struct tandem_buffer **out_buffer);
enum tandem_status memory_alloc(struct tandem_device *device, uint64_t bytes,
                                struct tandem_buffer **out_buffer);
void memory_free(struct tandem_buffer *buffer);
enum tandem_status memory_import_host(struct tandem_device *device,
                                      void *memory, uint64_t bytes,
                                      tandem_release_fn release, void *user,
                                      struct tandem_buffer **out_buffer);
enum tandem_status memory_host_alloc(struct tandem_device *device,
                                     uint64_t bytes, void **out_memory);
void memory_host_free(struct tandem_device *device, void *memory);
enum tandem_status memory_stats(struct tandem_device *device,
                                struct tandem_memory_stats *out_stats);
enum tandem_status memory_trim(struct tandem_device *device,
                               uint64_t keep_bytes);
/* Returns the physical memory of this machine in bytes, or 0 if unknown. */
uint64_t memory_of_machine(void);

/* ---- transfer.c --------------------------------------------------------- */

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
enum tandem_status buffer_seal(struct tandem_buffer *buffer);
enum tandem_status transfer_unmap(struct tandem_stream *stream,
                                  struct tandem_buffer *buffer, void *memory);

/* ---- stream.c ----------------------------------------------------------- */

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream);
void stream_destroy(struct tandem_stream *stream);
enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns);
enum tandem_status stream_wait_event(struct tandem_stream *stream,
                                     struct tandem_event *event);
enum tandem_status event_record(struct tandem_stream *stream,
                                struct tandem_event **out_event);
void event_destroy(struct tandem_event *event);
enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns);
enum tandem_status event_callback(struct tandem_event *event,
                                  tandem_event_fn fn, void *user);
enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                    struct tandem_event *end, uint64_t *out_ns);

/* ---- prepared.c --------------------------------------------------------- */

prepare_fn prepared_create;
enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns);
void prepared_release(struct tandem_prepared *prepared);
launch_fn prepared_launch;

extern const struct gemm_call_functions gemm_functions;
enum tandem_status gemm_run(struct tandem_stream *stream,
                            const struct tandem_gemm *gemm);

/* ---- operators: called with checked arguments, from the caller's thread - */

/* A call of an operator. */
struct work {
    struct tandem_device *device;
    const struct tandem_op *op;
    const struct tandem_tensor_desc *const *inputs, *const *outputs;
    uint32_t input_count, output_count;
};

/* Implementation of an operator class. */
struct cpu_class {
    enum tandem_status (*run)(const struct work *work);
    /* For a call that is prepared: computes once what does not depend on
     * memory, plan_bytes bytes, and computes the operator with a plan and the
     * addresses of the elements (0, ..., 0) of inputs and outputs.  The tensors
     * of `work` have no memory in either function.  0: `run` does both. */
    size_t plan_bytes;
    enum tandem_status (*plan)(void *plan, const struct work *work);
    enum tandem_status (*run_plan)(const void *plan, const struct work *work,
                                   unsigned char *const *addresses);
    /* Dtype of the output of calls on launch.c's fast path; 0 means that the
     * operators do not use the fast path. */
    uint32_t small_output_dtype; /* enum tandem_dtype */
};

/* Returns the implementation of an operator's class. */
const struct cpu_class *cpu_class_of(uint32_t op);

#define CPU_CLASS_DECLARE(ID, number, name)                                    \
    extern const struct cpu_class cpu_class_##name;
TANDEM_CLASSES(CPU_CLASS_DECLARE)
#undef CPU_CLASS_DECLARE

/* Returns the address of the tensor's element (0, ..., 0). */
static inline void *tensor_data(const struct tandem_tensor_desc *tensor)
{
    return tensor->buffer->base + tensor->byte_offset;
}

/* Sets out[i] to the address of input or output i, or to NULL for a scalar. */
static inline void work_addresses(unsigned char **out, const struct work *work)
{
    for (uint32_t i = 0; i < work->input_count; i++)
        out[i] = work->inputs[i] != NULL ? tensor_data(work->inputs[i]) : NULL;
    for (uint32_t i = 0; i < work->output_count; i++)
        out[work->input_count + i] = tensor_data(work->outputs[i]);
}

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns n / divisor, rounded up. */
static inline int64_t ceil_div(int64_t n, int64_t divisor)
{
    return (n + divisor - 1) / divisor;
}

#endif
