/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events.  A stream is one in-order queue with its own cl_kernel
 * of every variant that it has launched, so that a launch takes no lock.  A
 * stream is used by one thread at a time, but for its id, serials and queue,
 * which stream_use and event waits of others read under device.mutex.
 */
#ifndef TANDEM_OPENCL_QUEUE_STREAM_H
#define TANDEM_OPENCL_QUEUE_STREAM_H

#include "opencl/device/device.h"
#include "opencl/plan/plan.h"
#include "opencl/queue/upload_staging.h"

/* A stream's own kernel of a variant, with the arguments set last. */
struct stream_kernel {
    uint64_t key; /* 0: an empty slot */
    cl_kernel kernel;
    /* Blocks by their address, which is never used again; 0: another. */
    uint64_t bound[STEP_BUFFERS];
    uint32_t param_bytes; /* of what is set; 0: nothing yet */
    unsigned char *params;
};

/* CLBlast's answers on temporary memory, by shape. */
struct gemm_memo {
    uint64_t shape[8];
    size_t temp_bytes;
};
#define GEMM_MEMOS 16u

/* See readback_buffer.h. */
struct readback {
    void *memory; /* pinned; NULL: not made */
    bool refused;
};

struct tandem_stream {
    struct handle handle;
    struct tandem_device *device;
    cl_command_queue queue;
    uint64_t id; /* of the device's streams, from 1, never used again */
    uint32_t flags;
    uint32_t users; /* its owner, and who waits for it; device.mutex */
    _Atomic uint64_t issued, completed, flushed; /* serials of commands */
    _Atomic uint64_t pending; /* bytes that work under way uses; event_wait.c */
    _Atomic uint32_t status;                     /* the sticky error */
    char message[256]; /* of status: stream_fail's and stream_tell's */
    struct stream_kernel *kernels; /* open addressing by key */
    uint32_t kernel_slots, kernel_count;
    struct gemm_memo memos[GEMM_MEMOS];
    struct staging staging;
    struct readback readback;
    struct tandem_buffer *counters; /* PLAN_COUNTERS; NULL: not made */
    atomic_bool counters_clear;     /* all 0 */
    struct tandem_stream *previous, *next;
};

struct tandem_event {
    struct handle handle;
    struct tandem_device *device;
    cl_event event;
    uint64_t stream, serial;
    bool profiling;
    _Atomic bool passed;
    struct tandem_event *previous, *next;
};

enum tandem_status stream_create(struct tandem_device *device, uint32_t flags,
                                 struct tandem_stream **out_stream);
void stream_destroy(struct tandem_stream *stream);
enum tandem_status stream_query(struct tandem_stream *stream);
enum tandem_status stream_synchronize(struct tandem_stream *stream,
                                      uint64_t timeout_ns);

/* The stream of that id, NULL if it is gone; it lives until stream_leave.  Any
 * thread. */
struct tandem_stream *stream_hold(struct tandem_device *device, uint64_t id);
void stream_leave(struct tandem_stream *stream);
/* Gives back idle staging memory of every stream of the device. */
void streams_trim(struct tandem_device *device);
/* Every stream of the device; the first error found. */
enum tandem_status streams_synchronize(struct tandem_device *device,
                                       uint64_t timeout_ns);

/* For whoever enqueues: a live stream without an error, of a device that is
 * not lost. */
enum tandem_status stream_check(struct tandem_stream *stream);
/* Before a command that uses buffer: waits, on the device, for what the
 * block's former owner left on other streams. */
enum tandem_status stream_use(struct tandem_stream *stream,
                              struct tandem_buffer *buffer);
/* Whether what buffer holds is there for stream without waiting: its last write
 * is of this stream, or was seen to be done. */
bool stream_has(struct tandem_stream *stream,
                const struct tandem_buffer *buffer);
/* After it was enqueued. */
void stream_used(struct tandem_stream *stream, struct tandem_buffer *buffer,
                 bool written);
/* After a command was refused: whether the code may mean memory.  Then the
 * pool has given back what it can, and the command is to be tried once more. */
bool stream_relieve(struct tandem_stream *stream, cl_int code);
/* Enqueues a marker, uncounted; its event is the caller's. */
enum tandem_status stream_mark(struct tandem_stream *stream,
                               cl_event *out_event);
/* Counts a command and returns its serial. */
uint64_t stream_issue(struct tandem_stream *stream);
/* Makes a failure found after the fact sticky, poisons, returns status.  The
 * thread's message is kept as the stream's. */
enum tandem_status stream_fail(struct tandem_stream *stream,
                               enum tandem_status status);
/* Returns status with the message of the stream's failure.  Any thread, as
 * stream_fail. */
enum tandem_status stream_tell(struct tandem_stream *stream,
                               enum tandem_status status, const char *what);
/* Notes that all up to serial is done. */
void stream_passed(struct tandem_stream *stream, uint64_t serial);
enum tandem_status stream_flush(struct tandem_stream *stream);
/* The kernel of a plan's step, built if need be. */
enum tandem_status stream_kernel(struct tandem_stream *stream,
                                 const struct step *step,
                                 struct stream_kernel **out_kernel);
void stream_kernels_free(struct tandem_stream *stream);
bool stream_live(const struct tandem_stream *stream);

/* Waits for a cl_event of stream; NOT_READY when timeout_ns ran out.  A
 * failure is made sticky, and told once what else is under way has ended. */
enum tandem_status stream_wait(struct tandem_stream *stream, cl_event event,
                               uint64_t timeout_ns);
/* Waits for what was enqueued, before a call that would wait for it in the
 * driver. */
enum tandem_status stream_settle(struct tandem_stream *stream,
                                 uint64_t timeout_ns);

/* Of the clock of timeouts. */
uint64_t wait_clock(void);
/* Whether the driver's own waits keep a processor busy. */
bool wait_busy(struct tandem_device *device);
/* Whether the stream's work will be over before a wait for it costs much.  A
 * guess, from the bytes of the buffers that its commands use. */
bool wait_brief(const struct tandem_stream *stream);
void wait_grows(struct tandem_stream *stream, uint64_t bytes);
/* Around a wait of the driver's. */
struct wait_watch {
    uint64_t wall_ns, busy_ns;
};
void wait_watch(struct tandem_device *device, struct wait_watch *out_watch);
void wait_watched(struct tandem_device *device, const struct wait_watch *watch);
/* NOT_READY when timeout_ns ran out.  out_code: the event's status below 0. */
enum tandem_status wait_event(struct tandem_device *device, cl_event event,
                              uint64_t timeout_ns, cl_int *out_code);
/* The event's state, above CL_COMPLETE where limit_ns ran out, and the code of
 * asking for it: for who must not ask what that means. */
cl_int wait_ended(cl_event event, uint64_t limit_ns, cl_int *out_state);

enum tandem_status event_record(struct tandem_stream *stream,
                                struct tandem_event **out_event);
void event_destroy(struct tandem_event *event);
enum tandem_status event_wait(struct tandem_event *event, uint64_t timeout_ns);
enum tandem_status event_follow(struct tandem_stream *stream,
                                struct tandem_event *event);
enum tandem_status event_elapsed_ns(struct tandem_event *start,
                                 struct tandem_event *end, uint64_t *out_ns);
void events_finish(struct tandem_device *device);

#endif
