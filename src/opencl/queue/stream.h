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
#include "opencl/memory/buffer.h"

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
