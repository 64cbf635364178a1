/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of the simulated GPU. Its handles wrap those of the CPU plugin
 * ("inner"). Each device has one mutex that protects all its objects. "Locked"
 * means that the caller holds the mutex of the device.
 */
#ifndef TANDEM_TESTS_SIM_INTERNAL_H
#define TANDEM_TESTS_SIM_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include <tandem/backend.h>

#include "common/argument_check.h"
#include "common/gemm_calls.h"
#include "common/handle_pool.h"
#include "common/prepared_call.h"
#include "simulated_device.h"

#define SIM_MAX_DEVICES 16u
#define SIM_READY_ALWAYS 0u
#define SIM_READY_NEVER UINT32_MAX

/* CPU plugin memory that lives while its buffer or a command uses it. */
struct sim_memory {
    struct tandem_buffer *inner;
    uint64_t bytes;
    uint64_t base; /* The address in a separate address space of the device. */
    uint32_t references;
    enum tandem_status poison; /* TANDEM_OK means that the content is valid. */
};

struct sim_buffer {
    struct handle handle;
    struct sim_device *device;
    struct sim_memory *memory;
    bool is_sealed;
    LIST_ENTRY(sim_buffer) link;
};

enum command_kind {
    COMMAND_UPLOAD,
    COMMAND_DOWNLOAD,
    COMMAND_COPY,
    COMMAND_FILL,
    COMMAND_LAUNCH,
    COMMAND_WAIT
};

#define SIM_COMMAND_MEMORIES (2u * TANDEM_MAX_OPERANDS)

/* A queued command with copies of all its arguments. */
struct command {
    struct command *next;
    enum command_kind kind;
    enum tandem_status fault; /* The scripted error of the command. */
    /* The script says that the command never completes. */
    bool hangs;
    /* Memory that the command reads, then memory that it writes. */
    struct sim_memory *memories[SIM_COMMAND_MEMORIES];
    uint32_t read_count, memory_count;
    uint64_t offset, source_offset, bytes;
    void *data;         /* Upload: an owned copy, or NULL. */
    const void *source; /* Upload: data, or the caller's memory. */
    void *target;       /* Download. */
    uint8_t pattern[8];
    uint32_t pattern_bytes;
    /* Launch. */
    struct sim_prepared *prepared;
    struct tandem_memory operands[SIM_COMMAND_MEMORIES];
    uint32_t operand_count;
    double *scalars;
    uint32_t scalar_count;
    /* Wait: NULL if that stream was destroyed. */
    struct sim_stream *stream;
    uint64_t position;
};

struct sim_prepared {
    struct prepared_base base;
    struct tandem_prepared *inner;
    uint32_t references; /* Queued commands, and 1 until it is released. */
};

struct sim_stream {
    struct handle handle;
    struct sim_device *device;
    uint32_t flags;
    struct command *first, *last;
    uint64_t enqueued, executed; /* The number of commands so far. */
    enum tandem_status error;
    /* The value of executed after the command that failed. */
    uint64_t error_position;
    char error_message[256];
    LIST_ENTRY(sim_stream) link;
};

struct sim_event {
    struct handle handle;
    struct sim_device *device;
    /* NULL means that the stream was destroyed, so the event is complete. */
    struct sim_stream *stream;
    uint64_t position;
    uint32_t flags; /* The flags of the stream. */
    LIST_ENTRY(sim_event) link;
};

struct sim_script {
    uint32_t ready; /* A number of polls, or one of SIM_READY. */
    uint64_t elapsed_ns;
    /* The number of the call that fails, from 1; 0 stands for none. */
    uint64_t fault_launch, fault_wait;
    uint64_t hang_launch;
    enum tandem_status fault_status;
    bool decline[TANDEM_OP_ID_END];
};

struct sim_device {
    struct handle handle;
    uint64_t id; /* Of this opening. */
    uint32_t index;
    pthread_mutex_t mutex;
    struct tandem_device *inner;
    struct tandem_stream *inner_stream;
    struct sim_script script;
    bool lost;
    uint64_t launch_count, wait_count;
    uint64_t next_base;
    /* The bytes of all blocks, including freed ones that work still uses. */
    uint64_t used_bytes;
    struct tandem_memory_stats stats;
    bool prepared[TANDEM_OP_ID_END];
    uint32_t polls[TANDEM_OP_ID_END];
    LIST_HEAD(, sim_buffer) buffers;
    LIST_HEAD(, sim_stream) streams;
    LIST_HEAD(, sim_event) events;
    struct gemm_calls gemm_calls;
};

/* Declares the function of a member of struct tandem_backend. */
#define ENTRY(function, member)                                                \
    __typeof__(*((const struct tandem_backend *)NULL)->member) function

extern struct handle_pool device_pool, buffer_pool, stream_pool, event_pool;

/* ---- cpu_delegate.c: the CPU plugin ---- */

/*
 * Loads the CPU plugin from this plugin's directory. Returns NULL with a
 * message if there is no such plugin. Any thread may call it.
 */
const struct tandem_backend *inner_backend(void);
/* Copies the CPU plugin's message to this plugin's and returns status. */
enum tandem_status inner_failed(enum tandem_status status);

/* ---- script.c ---- */

uint32_t script_device_count(void);
/* Returns the earlier device that this one duplicates, or -1. */
int32_t script_duplicate(uint32_t device);
/* Returns the version of the driver. */
const char *script_driver(void);
/* Returns the scripted status of open. */
enum tandem_status script_open(uint32_t device);
/* Reads the script from the environment, then from the options of open. */
enum tandem_status script_read(struct sim_script *out, uint32_t device,
                               const struct tandem_open_options *options);
/* Returns NULL if the options do not contain the key. */
const char *option_get(const struct tandem_open_options *options,
                       const char *key);

/* ---- counters.c ---- */

/* Returns the counters of a device. Only COUNT may change them. */
struct sim_counters *counters_of(uint32_t device);
#define COUNT(device, field, n)                                                \
    __atomic_fetch_add(&counters_of((device)->index)->field, (n),              \
                       __ATOMIC_RELAXED)

/* ---- device.c ---- */

/*
 * Returns a live device that is not lost. Locks it if the status is TANDEM_OK.
 */
enum tandem_status device_lock(struct tandem_device *handle,
                               struct sim_device **out_device);
/* Unlocks the device and returns status. */
enum tandem_status device_unlock(struct sim_device *device,
                                 enum tandem_status status);
ENTRY(device_count, device_count);
ENTRY(device_describe, device_describe);
ENTRY(device_open, open);
ENTRY(device_close, close);
ENTRY(device_memory_stats, memory_stats);

/* ---- memory.c ---- */

ENTRY(buffer_alloc, alloc);
ENTRY(buffer_free, free);
/* Locked. */
void buffer_release(struct sim_buffer *buffer);
ENTRY(buffer_import, import_host);
ENTRY(buffer_seal, buffer_seal);
/* Locked. Returns a live buffer of this device. */
enum tandem_status buffer_check(const struct sim_device *device,
                                const char *what,
                                const struct tandem_buffer *handle,
                                struct sim_buffer **out_buffer);
/*
 * Locked. Runs all work, so that memory is freed which only queued work uses.
 */
void device_drain(struct sim_device *device);
/* Locked.  Drops one reference. */
void memory_release(struct sim_device *device, struct sim_memory *memory);
ENTRY(transfer_upload, upload);
ENTRY(transfer_download, download);
ENTRY(transfer_copy, copy);
ENTRY(transfer_fill, fill);

/* ---- operators.c ---- */

/* An address_range_fn; user is the locked device. */
enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out);
/* Locked. */
enum tandem_status operator_is_supported(const struct sim_device *device,
                                         uint32_t id);
/* Locked. Returns TANDEM_OK, or NOT_READY without a message. */
enum tandem_status readiness(const struct sim_device *device, uint32_t id);
/* Locked. Compiles an operator that is not ready, which makes it ready. */
void launch_compile(struct sim_device *device, uint32_t id);
/* Locked. Sets the scripted fault if the script selects this launch. */
void launch_fault(struct sim_device *device, struct command *command);

/* ---- prepared.c ---- */

ENTRY(sim_prepare, prepare);
ENTRY(sim_prepared_wait, prepared_wait);
ENTRY(sim_prepared_release, prepared_release);
ENTRY(sim_prepared_launch, launch);
ENTRY(operator_gemm, gemm);
extern const struct gemm_call_functions gemm_functions;
/* Drops one reference. */
void prepared_put(struct sim_prepared *prepared);

/* ---- command.c ---- */

/* Returns NULL with a message if memory runs out. */
struct command *command_new(enum command_kind kind);
/* Locked.  Takes a reference of memory for the command. */
void command_use(struct command *command, struct sim_memory *memory);
/* Locked. */
void command_destroy(struct sim_device *device, struct command *command);
/* Locked.  Does the work; on failure the message is set. */
enum tandem_status command_run(struct sim_device *device,
                               struct command *command);
/* Locked. Reading the outputs of the command returns status from now on. */
void command_poison(struct command *command, enum tandem_status status);

/* ---- stream.c ---- */

/*
 * Returns a live stream without a sticky error, of a device that is not lost.
 * Locks the device if the status is TANDEM_OK.
 */
enum tandem_status stream_lock(struct tandem_stream *handle,
                               struct sim_stream **out_stream);
/* Locked. Takes ownership of the command. */
void stream_enqueue(struct sim_stream *stream, struct command *command);
/* Locked. Waits until position was executed, or until the timeout. */
enum tandem_status stream_reach(struct sim_stream *stream, uint64_t position,
                                uint64_t timeout_ns);
/* Locked. Runs all commands, and waits for hanging ones. */
void stream_drain(struct sim_stream *stream);
/* Locked. Drains the stream and frees it. */
void stream_release(struct sim_stream *stream);
/*
 * Locked. Each wait calls this function once. Returns TANDEM_OK, or the result
 * of a scripted fault.
 */
enum tandem_status wait_begin(struct sim_device *device, uint64_t timeout_ns);

ENTRY(stream_create, stream_create);
ENTRY(stream_destroy, stream_destroy);
ENTRY(stream_synchronize, stream_synchronize);
ENTRY(stream_wait_event, stream_wait_event);

/* ---- event.c ---- */

ENTRY(event_record, event_record);
ENTRY(event_destroy, event_destroy);
/* Locked. */
void event_release(struct sim_event *event);
ENTRY(event_wait, event_wait);
ENTRY(event_elapsed_ns, event_elapsed_ns);

#endif
