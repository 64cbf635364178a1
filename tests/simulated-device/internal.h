/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of the simulated device. Its handles wrap those of another plugin
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
#include "common/last_error.h"
#include "common/prepared_call.h"
#include "simulated_device.h"

#define SIM_MAX_DEVICES 16u

enum kind { DEVICE, BUFFER, STREAM, EVENT, PREPARED };

/* The first member of the objects behind all handles. */
struct object {
    struct handle handle;
    enum kind kind;
    struct sim_device *device;
    LIST_ENTRY(object) link;
};

/* Memory of the inner plugin that lives while its buffer or a command uses it.
 */
struct sim_memory {
    struct tandem_buffer *inner;
    uint64_t bytes;
    uint64_t base; /* The address in a separate address space of the device. */
    uint32_t references;
    enum tandem_status poison; /* TANDEM_OK means that the content is valid. */
};

struct sim_buffer {
    struct object object;
    struct sim_memory *memory;
    bool is_sealed;
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
    bool stalls;              /* The command does not complete, as scripted. */
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
    struct object object;
    struct tandem_prepared *inner;
    struct prepared_call *call;
    uint32_t references; /* Queued commands, and 1 until it is released. */
};

struct sim_stream {
    struct object object;
    struct command *first, *last;
    uint64_t enqueued, executed; /* The number of commands so far. */
    enum tandem_status error;
    /* The value of executed after the command that failed. */
    uint64_t error_position;
    char error_message[256];
};

struct sim_event {
    struct object object;
    /* NULL means that the stream was destroyed, so the event is complete. */
    struct sim_stream *stream;
    uint64_t position;
};

struct sim_device {
    struct object object;
    uint32_t index;
    pthread_mutex_t mutex;
    struct tandem_device *inner;
    struct tandem_stream *inner_stream;
    bool lost, is_for_self_test;
    /* The option test.fault: the number of the call that fails, from 1, or 0.
     */
    uint64_t fault_launch, fault_wait;
    enum tandem_status fault_status;
    uint64_t launch_count, wait_count;
    uint64_t next_base;
    uint32_t polls[TANDEM_OP_ID_END]; /* Of prepared operators. */
    LIST_HEAD(, object) objects;
    struct gemm_calls gemm_calls;
};

/* Declares the function of a member of struct tandem_backend. */
#define ENTRY(function, member)                                                \
    __typeof__(*((const struct tandem_backend *)NULL)->member) function

/* ---- inner.c: the inner plugin ---- */

extern const char inner_name[]; /* The usual name of the simulated device. */
/* Returns NULL with a message if the inner plugin cannot be loaded. */
const struct tandem_backend *inner_backend(void);
/* Copies the inner plugin's message to this plugin's and returns status. */
enum tandem_status inner_failed(enum tandem_status status);
/* Describes a device with the usual properties. */
enum tandem_status inner_describe(uint32_t index,
                                  struct tandem_device_info *out_info);

/* ---- script.c ---- */

/* Returns the value of a word of the script, "" if it has no value, or NULL if
 * the script does not contain it. The value ends with a comma or NUL. */
const char *setting(const char *word);
uint64_t setting_number(const char *word, uint64_t otherwise);
/* Returns the value of a word "STATUS" or "STATUS:DEVICE", or TANDEM_OK. */
enum tandem_status setting_status(const char *word, uint32_t device);
/* Copies the value without its comma, if the script contains the word. */
void setting_copy(const char *word, char *out, size_t bytes);
/* Returns true if the list of names after a word contains the name. */
bool setting_lists(const char *word, const char *name);
/* Returns the earlier device that this one duplicates, or -1. */
int32_t setting_duplicate(uint32_t device);
/* Returns true after tandem_sim_release. */
bool stalls_are_released(void);
/* Waits for tandem_sim_release if the script says so and the handle, which may
 * be NULL, belongs to device 0. */
void block_in(const char *entry, const void *handle);
/* Crashes or hangs if the script says so. */
void misbehave(const char *place);
/* Does what the script says about launches of the operator. Locked. */
enum tandem_status launch_misbehave(struct sim_device *device, const char *op);
/* Returns TANDEM_UNSUPPORTED for a call that the script excludes. */
enum tandem_status call_restrict(const struct prepared_call *call);
/* Returns the status unless the script replaces it. */
enum tandem_status answer(enum tandem_status status);
/* Ends a wait with the status, or never returns. The device is not locked. */
enum tandem_status wait_end(enum tandem_status status);
/* Reads the option test.fault. */
enum tandem_status fault_parse(struct sim_device *device, const char *text);

/* ---- device.c: devices, objects, counters ---- */

/* Returns the counters of a device. Only COUNT may change them. */
struct sim_counters *counters_of(uint32_t device);
#define COUNT(device, field, n)                                                \
    __atomic_fetch_add(&counters_of((device)->index)->field, (n),              \
                       __ATOMIC_RELAXED)

bool object_is_live(const void *handle, enum kind kind);
/* Returns a live object of the kind with its device locked. */
enum tandem_status object_hold(const void *handle, enum kind kind,
                               void *out_object);
/* Like object_hold, for a device that must not be lost. */
enum tandem_status object_lock(const void *handle, enum kind kind,
                               void *out_object);
/* Unlocks the device and returns status. */
enum tandem_status device_unlock(struct sim_device *device,
                                 enum tandem_status status);
/* Locked. Returns a new object of the device, or NULL with a message. */
void *object_new(struct sim_device *device, enum kind kind);
/* Locked. Finishes and frees an object of a device. */
void object_free(struct object *object);
ENTRY(device_count, device_count);
ENTRY(device_describe, device_describe);
ENTRY(device_open, open);
ENTRY(device_close, close);
ENTRY(device_memory_stats, memory_stats);
/* Frees any object but a device. */
void handle_release(const void *handle, enum kind kind);

/* ---- memory.c ---- */

ENTRY(buffer_alloc, alloc);
ENTRY(buffer_free, free);
ENTRY(buffer_seal, buffer_seal);
/* An address_range_fn of live buffers; user is the locked device. */
enum tandem_status address_range_of(const void *user,
                                    const struct tandem_buffer *handle,
                                    struct address_range *out);
/* Locked. Drops one reference. */
void memory_release(struct sim_memory *memory);
/* Locked. Returns TANDEM_OK, or the error of the work that should have written
 * the memory. */
enum tandem_status memory_is_valid(const struct sim_memory *memory,
                                   const char *what);
ENTRY(transfer_upload, upload);
ENTRY(transfer_download, download);
ENTRY(transfer_copy, copy);
ENTRY(transfer_fill, fill);

/* ---- prepared.c ---- */

ENTRY(sim_prepare, prepare);
ENTRY(sim_prepared_wait, prepared_wait);
ENTRY(sim_prepared_release, prepared_release);
ENTRY(sim_prepared_launch, launch);
ENTRY(operator_gemm, gemm);
extern const struct gemm_call_functions gemm_functions;
/* Locked. Drops one reference. */
void prepared_put(struct sim_prepared *prepared);

/* ---- stream.c: commands, streams and events ---- */

/* Returns NULL with a message if memory runs out. */
struct command *command_new(enum command_kind kind);
/* Locked. Takes a reference of memory for the command. */
void command_use(struct command *command, struct sim_memory *memory);
/* Locked. */
void command_destroy(struct command *command);
/* Locked. Does the work; on failure the message is set. */
enum tandem_status command_run(struct sim_device *device,
                               struct command *command);

/*
 * Returns a live stream without a sticky error, of a device that is not lost.
 * Locks the device if the status is TANDEM_OK.
 */
enum tandem_status stream_lock(struct tandem_stream *handle,
                               struct sim_stream **out_stream);
/* Locked. Takes ownership of the command. */
void stream_enqueue(struct sim_stream *stream, struct command *command);
/* Locked. Waits until position was executed, or until the timeout. Counts the
 * wait, which may have a scripted fault. */
enum tandem_status stream_reach(struct sim_stream *stream, uint64_t position,
                                uint64_t timeout_ns);
/* Locked. Runs all commands of all streams, and waits for stalled ones. */
void device_drain(struct sim_device *device);
/* Locked. Drains the stream. */
void stream_finish(struct sim_stream *stream);

ENTRY(stream_create, stream_create);
ENTRY(stream_destroy, stream_destroy);
ENTRY(stream_synchronize, stream_synchronize);
ENTRY(stream_wait_event, stream_wait_event);
ENTRY(event_record, event_record);
ENTRY(event_destroy, event_destroy);
ENTRY(event_wait, event_wait);

#endif
