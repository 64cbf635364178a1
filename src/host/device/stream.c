/* SPDX-License-Identifier: Apache-2.0 */
/* Acquires streams, and waits for devices with deadlines; see stream.h. */
#include <config.h>

#include "host/device/stream.h"
#include "common/last_error.h"

/* Timeout of stream_recover for the work that is still on the stream. */
#define RECOVERY_TIMEOUT_NS UINT64_C(10000000000)
/* The hang timeout is extended by this factor times the predicted time of the
 * pending work, because work can take longer than predicted. */
#define BACKLOG_FACTOR 10

/* Converts HANG_DEADLINE to the clock_ns time at which a wait that starts now
 * ends.  Returns any other deadline unchanged. */
static uint64_t deadline_resolve(const struct device *device,
                                 uint64_t deadline_ns)
{
    const struct tandem_context *context = device->context;
    double backlog;

    if (deadline_ns != HANG_DEADLINE)
        return deadline_ns;
    if (context->hang_timeout_ns == TANDEM_TIMEOUT_INFINITE)
        return TANDEM_TIMEOUT_INFINITE;
    backlog = BACKLOG_FACTOR *
              (device->predicted_busy_until_ns - context->predicted_now_ns);
    if (!(backlog > 0))
        backlog = 0;
    return backlog < 1e18
               ? clock_deadline(context->hang_timeout_ns + (uint64_t)backlog)
               : TANDEM_TIMEOUT_INFINITE;
}

/* Sets the error message for a wait that reached its deadline and returns the
 * error.  If the deadline was HANG_DEADLINE, marks the device as hung. */
static enum tandem_status wait_timed_out(struct device *device,
                                         uint64_t deadline_ns)
{
    if (deadline_ns == HANG_DEADLINE)
        return device_mark_hung(device);
    return last_error_set(TANDEM_NOT_READY, "%s: work is still running",
                          device->label);
}

/* ---- acquisition ---- */

struct device_stream *stream_try_acquire(struct device *device)
{
    const uint32_t last = device->stream_count - 1; /* 0 or all bits set */
    const uint32_t first = thread_number();

    for (uint32_t i = 0; i <= last; i++) {
        struct device_stream *stream = &device->streams[(first + i) & last];

        if (!stream->is_used && !atomic_exchange(&stream->is_used, true))
            return stream;
    }
    return NULL;
}

void stream_release(struct device *device, struct device_stream *stream)
{
    atomic_exchange(&stream->is_used, false);
    if (device->waiting_threads == 0)
        return;
    pthread_mutex_lock(&device->mutex);
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->mutex);
}

/* Waits until a thread releases a stream or the device is lost.  The mutex must
 * be held.  Returns false if deadline_ns passes first. */
static bool change_wait(struct device *device, uint64_t deadline_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u)};

    if (deadline_ns == TANDEM_TIMEOUT_INFINITE)
        return pthread_cond_wait(&device->changed, &device->mutex) == 0;
    return pthread_cond_timedwait(&device->changed, &device->mutex, &until) ==
           0;
}

static struct device_stream *stream_wait(struct device *device,
                                         uint64_t deadline_ns)
{
    struct device_stream *stream;
    bool in_time = true;

    pthread_mutex_lock(&device->mutex);
    device->waiting_threads++;
    while ((stream = stream_try_acquire(device)) == NULL && in_time &&
           device->state == DEVICE_OPEN)
        in_time = change_wait(device, deadline_ns);
    device->waiting_threads--;
    pthread_mutex_unlock(&device->mutex);
    return stream;
}

enum tandem_status stream_acquire(struct device *device, uint64_t deadline_ns,
                                  struct device_stream **out_stream)
{
    struct device_stream *stream = stream_try_acquire(device);
    enum tandem_status status = TANDEM_OK;

    if (stream == NULL)
        stream = stream_wait(device, deadline_resolve(device, deadline_ns));
    if (device->state != DEVICE_OPEN)
        status = device_lost_error(device);
    else if (stream == NULL)
        status = wait_timed_out(device, deadline_ns);
    else if (stream->handle == NULL)
        status = device_stream_create(device, &stream->handle);
    if (status != TANDEM_OK && stream != NULL)
        stream_release(device, stream);
    *out_stream = status == TANDEM_OK ? stream : NULL;
    return status;
}

/* ---- waits ---- */

enum tandem_status wait_enqueued(struct device *device, uint64_t deadline_ns)
{
    struct tandem_context *context = device->context;
    struct tandem_event *event = NULL;
    struct device_stream *stream;
    uint64_t deadline;
    enum tandem_status status;

    /* If no other thread uses the context, skip the wait, because the caller's
     * next operation on the stream is allowed to block.  With HANG_DEADLINE,
     * wait anyway, so that no operation is enqueued on a hung stream. */
    if (!device->busy || !(context->is_shared || deadline_ns == HANG_DEADLINE))
        return TANDEM_OK;
    status = stream_acquire(device, deadline_ns, &stream);
    if (status != TANDEM_OK)
        return status;
    status = device->vtable->event_record(stream->handle, &event);
    stream_release(device, stream);
    if (status != TANDEM_OK)
        return TANDEM_OK;
    deadline = deadline_resolve(device, deadline_ns);
    status = device->vtable->event_wait(event, clock_left(deadline));
    device->vtable->event_destroy(event);
    return status == TANDEM_NOT_READY ? wait_timed_out(device, deadline_ns)
                                      : TANDEM_OK;
}

/* Waits for the acquired stream of the device. */
static enum tandem_status stream_idle_wait(struct device *device,
                                           const struct device_stream *stream,
                                           uint64_t deadline_ns)
{
    const uint64_t deadline = deadline_resolve(device, deadline_ns);
    enum tandem_status status = device->vtable->stream_synchronize(
        stream->handle,
        device->async ? clock_left(deadline) : TANDEM_TIMEOUT_INFINITE);

    if (status == TANDEM_NOT_READY)
        return wait_timed_out(device, deadline_ns);
    if (device->state != DEVICE_OPEN)
        return device_lost_error(device);
    if (status == TANDEM_OK) {
        device_mark_idle(device);
        return TANDEM_OK;
    }
    device_mark_launches_unconfirmed(device);
    /* Marks a lost device, which may still run the work, while it is busy: its
     * memory is then not freed. */
    status = device_call_failed(device, status, "work");
    device->busy = false;
    return status;
}

/* The streams of a device that is not `async` are idle, but may have errors of
 * calls. */
enum tandem_status wait_idle(struct device *device, uint64_t deadline_ns)
{
    enum tandem_status result = TANDEM_OK;

    for (uint32_t i = 0;
         i < device->stream_count && device->state == DEVICE_OPEN; i++) {
        struct device_stream *stream = &device->streams[i];
        enum tandem_status status;

        if (device->async) {
            status = stream_acquire(device, deadline_ns, &stream);
            if (status != TANDEM_OK)
                return status;
        } else if (atomic_exchange(&stream->is_used, true)) {
            continue;
        }
        status = stream->handle != NULL
                     ? stream_idle_wait(device, stream, deadline_ns)
                     : TANDEM_OK;
        stream_release(device, stream);
        if (status != TANDEM_OK)
            result = status;
    }
    return result;
}

/* ---- transfers ---- */

/* Handles the result of a transfer on the acquired stream.  Returns true if the
 * transfer must be repeated. */
static bool transfer_finish(struct device *device,
                            const struct device_stream *stream,
                            enum tandem_status *status, const char *what,
                            bool *recovered)
{
    if (*status == TANDEM_OK)
        return false;
    *status = device_call_failed(device, *status, what);
    *status = stream_recover(device, stream, *status, recovered);
    return *status == TANDEM_OK;
}

enum tandem_status device_download(struct device *device,
                                   struct tandem_buffer *buffer, void *target,
                                   uint64_t bytes, uint64_t deadline_ns)
{
    uint64_t deadline;
    struct device_stream *stream;
    bool recovered = false;
    enum tandem_status status = stream_acquire(device, deadline_ns, &stream);

    if (status != TANDEM_OK)
        return status;
    deadline = deadline_resolve(device, deadline_ns);
    do {
        status = device->vtable->download(stream->handle, buffer, 0, target,
                                          bytes, 0, clock_left(deadline));
        if (status == TANDEM_NOT_READY) {
            status = wait_timed_out(device, deadline_ns);
            break;
        }
        if (device->state != DEVICE_OPEN) {
            status = device_lost_error(device);
            break;
        }
    } while (transfer_finish(device, stream, &status, "reading the tensor",
                             &recovered));
    if (status == TANDEM_OK)
        device_mark_idle(device);
    stream_release(device, stream);
    return status;
}

enum tandem_status device_upload(struct device *device,
                                 struct tandem_buffer *buffer,
                                 uint64_t byte_offset, const void *source,
                                 uint64_t bytes)
{
    struct device_stream *stream;
    bool recovered = false;
    enum tandem_status status = stream_acquire(device, HANG_DEADLINE, &stream);

    if (status != TANDEM_OK)
        return status;
    do {
        status = device->vtable->upload(stream->handle, buffer, byte_offset,
                                        source, bytes, 0);
    } while (transfer_finish(device, stream, &status, "writing the tensor",
                             &recovered));
    stream_release(device, stream);
    return status;
}

enum tandem_status stream_recover(struct device *device,
                                  const struct device_stream *stream,
                                  enum tandem_status error, bool *recovered)
{
    struct tandem_event *event = NULL;
    enum tandem_status status;

    if (*recovered || device->state != DEVICE_OPEN)
        return error;
    /* A stream with an error accepts no event, also while it has work. */
    status = device->vtable->event_record(stream->handle, &event);
    if (status == TANDEM_OK) {
        device->vtable->event_destroy(event);
        return error;
    }
    device_store_async_error(device, status);
    if (status == TANDEM_DEVICE_LOST) {
        device_mark_lost(device);
        return error;
    }
    status =
        device->vtable->stream_synchronize(stream->handle, RECOVERY_TIMEOUT_NS);
    /* The first call has cleared the error unless the device is lost. */
    if (status != TANDEM_OK && status != TANDEM_NOT_READY)
        status = device->vtable->stream_synchronize(stream->handle, 0);
    if (status == TANDEM_DEVICE_LOST)
        device_mark_lost(device);
    *recovered = device->state == DEVICE_OPEN && status == TANDEM_OK;
    return *recovered ? TANDEM_OK : error;
}
