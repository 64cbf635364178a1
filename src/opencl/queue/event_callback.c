/* SPDX-License-Identifier: Apache-2.0 */
/* Implements callbacks of events.  A thread of the plugin polls the events and
 * calls the callbacks; it runs while there are any.  The driver only wakes this
 * thread, because a driver's callback must not call the driver, and a failure
 * must be recorded like that of a wait. */
#include "opencl/queue/event_callback.h"

#include <stdlib.h>
#include <time.h>

#include "common/thread_state_guard.h"
#include "opencl/device/cl_status.h"

/* Time between two polls if the driver does not wake the thread. */
#define POLL_NS 10000000
#define STACK_BYTES (1u << 20)

struct event_callback {
    /* A copy that has no handle, with a reference to the OpenCL event. */
    struct tandem_event event;
    tandem_event_fn fn;
    void *user;
    uint64_t pass; /* the last pass of the thread that polled the event */
    struct event_callback *next;
};

/* Guards the variables below.  Not held while the driver or fn is called. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t changed; /* wake_count or current_device */
static struct event_callback *first;
static struct tandem_device *current_device; /* whose event is being polled */
static uint64_t wake_count;
static bool has_thread;

static void changed_init(void)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &clock);
    pthread_condattr_destroy(&clock);
}

/* The driver may call this at any time, also after the callback has ended. */
static void CL_CALLBACK wake(cl_event event, cl_int state, void *user)
{
    (void)event, (void)state, (void)user;
    pthread_mutex_lock(&mutex);
    wake_count++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void list_append(struct event_callback *callback)
{
    struct event_callback **place = &first;
    while (*place != NULL)
        place = &(*place)->next;
    callback->next = NULL;
    *place = callback;
}

static void list_remove(const struct event_callback *callback)
{
    struct event_callback **place = &first;
    while (*place != callback)
        place = &(*place)->next;
    *place = callback->next;
}

/* Frees the callback and calls fn. */
static void callback_end(struct event_callback *callback,
                         enum tandem_status status)
{
    tandem_event_fn fn = callback->fn;
    void *user = callback->user;
    clReleaseEvent(callback->event.event);
    free(callback);
    fn(user, status);
}

/* Returns what event_wait returns for a live event. */
static enum tandem_status status_poll(struct tandem_event *event)
{
    enum tandem_status status = device_check(event->device);
    return status == TANDEM_OK ? event_wait_live(event, 0) : status;
}

/* Returns the first callback that pass number `pass` has not polled. */
static struct event_callback *next_unpolled(uint64_t pass)
{
    struct event_callback *at = first;
    while (at != NULL && at->pass == pass)
        at = at->next;
    return at;
}

/* Polls the event of a callback, and calls it if the event has passed.  The
 * caller holds the mutex, which is released meanwhile. */
static void callback_poll(struct event_callback *callback)
{
    current_device = callback->event.device;
    pthread_mutex_unlock(&mutex);
    enum tandem_status status = status_poll(&callback->event);
    if (status != TANDEM_NOT_READY) {
        pthread_mutex_lock(&mutex);
        list_remove(callback);
        pthread_mutex_unlock(&mutex);
        callback_end(callback, status);
    }
    pthread_mutex_lock(&mutex);
    current_device = NULL;
    pthread_cond_broadcast(&changed);
}

static void *callbacks_run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (uint64_t pass = 1; first != NULL; pass++) {
        struct event_callback *callback;
        const uint64_t seen = wake_count;
        while ((callback = next_unpolled(pass)) != NULL) {
            callback->pass = pass;
            callback_poll(callback);
        }
        if (first == NULL || wake_count != seen)
            continue;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&changed, &mutex, &until);
    }
    has_thread = false;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Adds a callback, and starts the thread if it does not run. */
static bool callback_add(struct event_callback *callback)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    list_append(callback);
    wake_count++;
    pthread_cond_broadcast(&changed);
    if (!has_thread) {
        has_thread = guarded_thread_start(&thread, "tandem-event", STACK_BYTES,
                                          callbacks_run, NULL);
        if (has_thread)
            pthread_detach(thread);
        else
            list_remove(callback);
    }
    bool is_added = has_thread;
    pthread_mutex_unlock(&mutex);
    return is_added;
}

enum tandem_status event_callback(struct tandem_event *event,
                                  tandem_event_fn fn, void *user)
{
    enum tandem_status status = event_check(event);
    if (status != TANDEM_OK)
        return status;
    if (fn == NULL)
        return argument_error("event_callback: fn is NULL");
    status = event_wait_live(event, 0);
    if (status != TANDEM_NOT_READY) {
        fn(user, status);
        return TANDEM_OK;
    }
    struct event_callback *callback = calloc(1, sizeof(*callback));
    if (callback == NULL)
        return memory_error("event_callback: out of host memory");
    callback->event.device = event->device;
    callback->event.event = event->event;
    callback->event.stream = event->stream;
    callback->event.seqno = event->seqno;
    callback->fn = fn;
    callback->user = user;
    cl_int code = clRetainEvent(event->event);
    if (code != CL_SUCCESS) {
        free(callback);
        return status_from_cl(event->device, code, "clRetainEvent");
    }
    /* Without the driver's callback, the thread polls.  Once the callback is
     * added, fn may be called, and the caller may destroy the event. */
    pthread_once(&once, changed_init);
    clSetEventCallback(event->event, CL_COMPLETE, wake, NULL);
    if (callback_add(callback))
        return TANDEM_OK;
    clReleaseEvent(callback->event.event);
    free(callback);
    return memory_error("event_callback: the system starts no thread");
}

/* Removes the first callback of the device from the list. */
static struct event_callback *take_first(const struct tandem_device *device)
{
    for (struct event_callback *at = first; at != NULL; at = at->next)
        if (at->event.device == device) {
            list_remove(at);
            return at;
        }
    return NULL;
}

void event_callbacks_finish(struct tandem_device *device)
{
    struct event_callback *callback;
    pthread_mutex_lock(&mutex);
    while (current_device == device)
        pthread_cond_wait(&changed, &mutex);
    while ((callback = take_first(device)) != NULL) {
        pthread_mutex_unlock(&mutex);
        enum tandem_status status = status_poll(&callback->event);
        if (status == TANDEM_NOT_READY)
            status = TANDEM_DEVICE_LOST;
        callback_end(callback, status);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
}
