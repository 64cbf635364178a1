/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of the simulated GPU.  Its handles wrap those of the CPU plugin
 * ("inner"); each device has one mutex, which guards all that belongs to it.
 * Functions say "locked" where the device's mutex is held by the caller.
 */
#ifndef TANDEM_TESTS_SIM_INTERNAL_H
#define TANDEM_TESTS_SIM_INTERNAL_H

#include <pthread.h>

#include <tandem/backend.h>

#include "common/handle_pool.h"
#include "simulated_device.h"

#define SIM_MAX_DEVICES 16u
#define SIM_READY_ALWAYS 0u
#define SIM_READY_NEVER UINT32_MAX

/* A block of inner memory: lives as long as its buffer or a command uses it. */
struct sim_memory {
    struct tandem_buffer *inner;
    uint64_t bytes;
    uint64_t base; /* in an address space of the device's own */
    uint32_t references;
    enum tandem_status poison; /* TANDEM_OK: readable */
};

struct sim_buffer {
    struct handle handle;
    struct sim_device *device;
    struct sim_memory *memory;
    struct sim_buffer *next, *previous;
};

enum command_kind {
    COMMAND_UPLOAD,
    COMMAND_DOWNLOAD,
    COMMAND_COPY,
    COMMAND_FILL,
    COMMAND_LAUNCH,
    COMMAND_GEMM,
    COMMAND_WAIT
};

#define SIM_COMMAND_MEMORIES (2u * TANDEM_MAX_OPERANDS)

/* One piece of queued work with copies of all its arguments. */
struct command {
    struct command *next;
    enum command_kind kind;
    enum tandem_status fault; /* scripted: fails with this when it runs */
    bool hangs;               /* scripted: never ends */
    /* reads first, then writes */
    struct sim_memory *memories[SIM_COMMAND_MEMORIES];
    uint32_t read_count, memory_count;
    uint64_t offset, source_offset, bytes;
    void *data;       /* upload: own copy, or NULL */
    const void *source; /* upload: data, or the caller's */
    void *target;     /* download */
    uint8_t pattern[8];
    uint32_t pattern_bytes;
    /* launch */
    struct tandem_op op;
    struct tandem_gemm gemm;
    int64_t *ints;
    double *floats;
    struct tandem_tensor_desc operands[SIM_COMMAND_MEMORIES];
    bool present[SIM_COMMAND_MEMORIES];
    uint32_t input_count, output_count;
    /* wait: NULL once that stream is gone */
    struct sim_stream *stream;
    uint64_t position;
};

struct sim_stream {
    struct handle handle;
    struct sim_device *device;
    uint32_t flags;
    struct command *first, *last;
    uint64_t enqueued, executed; /* commands ever */
    enum tandem_status error;
    uint64_t error_position; /* executed, after the command that failed */
    char error_message[256];
    struct sim_stream *next, *previous;
};

struct sim_event {
    struct handle handle;
    struct sim_device *device;
    struct sim_stream *stream; /* NULL: destroyed, and so passed */
    uint64_t position;
    uint32_t flags; /* of the stream */
    struct sim_event *next, *previous;
};

struct sim_script {
    uint32_t ready; /* polls, or one of SIM_READY */
    uint64_t elapsed_ns;
    uint64_t fault_launch, fault_wait; /* ordinal from 1, 0: none */
    uint64_t hang_launch;
    enum tandem_status fault_status;
    bool decline[TANDEM_OP_ID_END];
};

struct sim_device {
    struct handle handle;
    uint32_t index;
    pthread_mutex_t mutex;
    struct tandem_device *inner;
    struct tandem_stream *inner_stream;
    struct sim_script script;
    bool lost;
    uint64_t launch_count, wait_count;
    uint64_t next_base;
    uint64_t held_bytes; /* of memory blocks, also those that work keeps */
    struct tandem_memory_stats stats;
    bool prepared[TANDEM_OP_ID_END];
    uint32_t polls[TANDEM_OP_ID_END];
    struct sim_buffer *buffers;
    struct sim_stream *streams;
    struct sim_event *events;
};

extern struct handle_pool device_pool, buffer_pool, stream_pool, event_pool;

/* ---- cpu_delegate.c: the CPU plugin ---- */

/* Loads the CPU plugin that lies beside this one; NULL with the message set
 * where there is none.  Any thread. */
const struct tandem_backend *inner_backend(void);
/* Copies the CPU plugin's message to this plugin's and returns status. */
enum tandem_status inner_failed(enum tandem_status status);

/* ---- script.c ---- */

uint32_t script_device_count(void);
/* Which device before it this one is once more, or -1. */
int32_t script_duplicate(uint32_t device);
/* The version of the driver. */
const char *script_driver(void);
/* The status that open is told to return. */
enum tandem_status script_open(uint32_t device);
/* From the environment, then from the options of open. */
enum tandem_status script_read(struct sim_script *out, uint32_t device,
                               const struct tandem_open_options *options);
/* NULL where options do not have the key. */
const char *option_get(const struct tandem_open_options *options,
                       const char *key);

/* ---- counters.c ---- */

/* The counters of a device, to be changed by COUNT alone. */
struct sim_counters *counters_of(uint32_t device);
#define COUNT(device, field, n)                                              \
    __atomic_fetch_add(&counters_of((device)->index)->field, (n),            \
                       __ATOMIC_RELAXED)

/* ---- device.c ---- */

/* A live device that is not lost, locked on TANDEM_OK. */
enum tandem_status device_lock(struct tandem_device *handle,
                               struct sim_device **out_device);
/* Unlocks and passes status through. */
enum tandem_status device_unlock(struct sim_device *device,
                                 enum tandem_status status);
enum tandem_status device_count(uint32_t *out_count);
enum tandem_status device_describe(uint32_t index,
                                   struct tandem_device_info *out_info);
enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
void device_close(struct tandem_device *device);
enum tandem_status device_memory_stats(struct tandem_device *handle,
                                       struct tandem_memory_stats *out_stats);

/* ---- memory.c ---- */

enum tandem_status buffer_alloc(struct tandem_device *handle, uint64_t bytes,
                                struct tandem_buffer **out_buffer);
void buffer_free(struct tandem_buffer *handle);
/* Locked. */
void buffer_release(struct sim_buffer *buffer);
enum tandem_status buffer_import(struct tandem_device *handle, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);
/* Locked.  A live buffer of this device. */
enum tandem_status buffer_check(const struct sim_device *device,
                                const char *what,
                                const struct tandem_buffer *handle,
                                struct sim_buffer **out_buffer);
/* Locked.  Drops one reference. */
void memory_release(struct sim_device *device, struct sim_memory *memory);
enum tandem_status transfer_upload(struct tandem_stream *handle,
                                   struct tandem_buffer *buffer,
                                   uint64_t offset, const void *source,
                                   uint64_t bytes, uint32_t flags);
enum tandem_status transfer_download(struct tandem_stream *handle,
                                     struct tandem_buffer *buffer,
                                     uint64_t offset, void *target,
                                     uint64_t bytes, uint32_t flags,
                                     uint64_t timeout_ns);
enum tandem_status transfer_copy(struct tandem_stream *handle,
                                 struct tandem_buffer *target,
                                 uint64_t target_offset,
                                 struct tandem_buffer *source,
                                 uint64_t source_offset, uint64_t bytes);
enum tandem_status transfer_fill(struct tandem_stream *handle,
                                 struct tandem_buffer *buffer, uint64_t offset,
                                 uint64_t bytes, const void *pattern,
                                 uint32_t pattern_bytes);

/* ---- operators.c ---- */

enum tandem_status
operator_supports(struct tandem_device *handle, const struct tandem_op *op,
                  const struct tandem_tensor_desc *const *inputs,
                  uint32_t input_count,
                  const struct tandem_tensor_desc *const *outputs,
                  uint32_t output_count);
enum tandem_status
operator_prepare(struct tandem_device *handle, const struct tandem_op *op,
                 const struct tandem_tensor_desc *const *inputs,
                 uint32_t input_count,
                 const struct tandem_tensor_desc *const *outputs,
                 uint32_t output_count);
enum tandem_status
operator_ready(struct tandem_device *handle, const struct tandem_op *op,
               const struct tandem_tensor_desc *const *inputs,
               uint32_t input_count,
               const struct tandem_tensor_desc *const *outputs,
               uint32_t output_count);
enum tandem_status
operator_launch(struct tandem_stream *handle, const struct tandem_op *op,
                const struct tandem_tensor_desc *const *inputs,
                uint32_t input_count,
                const struct tandem_tensor_desc *const *outputs,
                uint32_t output_count);
enum tandem_status operator_gemm(struct tandem_stream *handle,
                                 const struct tandem_gemm *gemm);

/* ---- command.c ---- */

/* NULL, with the message set, when memory is out. */
struct command *command_new(enum command_kind kind);
/* Locked.  Takes a reference of memory for the command. */
void command_use(struct command *command, struct sim_memory *memory);
/* Locked. */
void command_destroy(struct sim_device *device, struct command *command);
/* Locked.  Does the work; on failure the message is set. */
enum tandem_status command_run(struct sim_device *device,
                               struct command *command);
/* Locked.  What the command should have written gives status when read. */
void command_poison(struct command *command, enum tandem_status status);

/* ---- stream.c ---- */

/* A live stream of a device that is not lost, without a sticky error: its
 * device is locked on TANDEM_OK. */
enum tandem_status stream_lock(struct tandem_stream *handle,
                               struct sim_stream **out_stream);
/* Locked.  Owns the command from here. */
void stream_enqueue(struct sim_stream *stream, struct command *command);
/* Locked.  Waits as timeout_ns says until position has run. */
enum tandem_status stream_reach(struct sim_stream *stream, uint64_t position,
                                uint64_t timeout_ns);
/* Locked.  Runs all that is queued, faults included; waits for hangs. */
void stream_drain(struct sim_stream *stream);
/* Locked.  Drains and frees. */
void stream_release(struct sim_stream *stream);
/* Locked.  Every wait goes through here once: TANDEM_OK, or what a scripted
 * fault makes of it. */
enum tandem_status wait_begin(struct sim_device *device, uint64_t timeout_ns);

enum tandem_status stream_create(struct tandem_device *handle, uint32_t flags,
                                 struct tandem_stream **out_stream);
void stream_destroy(struct tandem_stream *handle);
enum tandem_status stream_query(struct tandem_stream *handle);
enum tandem_status stream_synchronize(struct tandem_stream *handle,
                                      uint64_t timeout_ns);
enum tandem_status stream_wait_event(struct tandem_stream *handle,
                                     struct tandem_event *event);
enum tandem_status device_synchronize(struct tandem_device *handle,
                                      uint64_t timeout_ns);

/* ---- event.c ---- */

enum tandem_status event_record(struct tandem_stream *handle,
                                struct tandem_event **out_event);
void event_destroy(struct tandem_event *handle);
/* Locked. */
void event_release(struct sim_event *event);
enum tandem_status event_query(struct tandem_event *handle);
enum tandem_status event_wait(struct tandem_event *handle, uint64_t timeout_ns);
enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                 struct tandem_event *end, uint64_t *out_ns);

#endif
