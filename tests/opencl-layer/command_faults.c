/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates queues whose commands fail later or never complete, events with an
 * error status, and buffers whose memory is not available. Small tables under
 * one mutex.
 *
 * A failed queue executes no further commands until a wait on it has reported
 * the error; a marker replaces each command that needs an event. A hanging
 * queue executes all commands, but reports them as running, and waits on it
 * block until layer_release.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>

#define QUEUES 32
#define EVENTS 256
#define BUFFERS 16

struct bad_queue {
    cl_command_queue queue;
    /* LAYER_FAULT_AFTER_ENQUEUE or LAYER_FAULT_ENDLESS. */
    enum layer_fault fault;
    cl_int code;
    /* The number of releases before the queue started to hang. */
    uint64_t releases;
};

struct bad_event {
    cl_event event;
    cl_int code;
};

struct lazy_buffer {
    cl_mem buffer;
    cl_int code;
    uint64_t times;
    bool later;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct bad_queue queues[QUEUES];
static struct bad_event events[EVENTS];
static struct lazy_buffer buffers[BUFFERS];
/* Nonzero if any of the tables was ever written. Most calls check only this. */
static int used;

static bool unused(void)
{
    return !__atomic_load_n(&used, __ATOMIC_RELAXED);
}

/* Call the next three functions with the mutex held. */
static struct bad_queue *queue_find(cl_command_queue queue)
{
    for (int i = 0; i < QUEUES; i++) {
        struct bad_queue *at = &queues[i];

        if (at->queue != queue)
            continue;
        if (at->fault == LAYER_FAULT_ENDLESS &&
            at->releases != fault_releases())
            at->queue = NULL;
        else
            return at;
    }
    return NULL;
}

static struct bad_queue *queue_add(cl_command_queue queue,
                                   enum layer_fault fault, cl_int code)
{
    struct bad_queue *at = queue_find(queue);

    for (int i = 0; i < QUEUES && !at; i++)
        if (!queues[i].queue)
            at = &queues[i];
    if (!at)
        return NULL;
    *at = (struct bad_queue){queue, fault, code, fault_releases()};
    __atomic_store_n(&used, 1, __ATOMIC_RELAXED);
    return at;
}

static void event_add(cl_event event, cl_int code)
{
    for (int i = 0; i < EVENTS; i++)
        if (!events[i].event) {
            events[i] = (struct bad_event){event, code};
            return;
        }
}

/* ---- buffers without memory ---- */

void buffer_created(cl_mem buffer)
{
    cl_int code;
    uint64_t times;
    bool later;

    if (!fault_buffer(&code, &times, &later))
        return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < BUFFERS; i++)
        if (!buffers[i].buffer) {
            buffers[i] = (struct lazy_buffer){buffer, code, times, later};
            __atomic_store_n(&used, 1, __ATOMIC_RELAXED);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

void buffer_gone(cl_mem buffer)
{
    if (unused())
        return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < BUFFERS; i++)
        if (buffers[i].buffer == buffer)
            buffers[i].buffer = NULL;
    pthread_mutex_unlock(&mutex);
}

/* Returns the fault of a command that uses these buffers. The mutex is held. */
static enum layer_fault lazy_fault(const cl_mem *memories, cl_uint count_,
                                   cl_int *out_code)
{
    for (cl_uint m = 0; m < count_; m++)
        for (int i = 0; i < BUFFERS; i++) {
            struct lazy_buffer *at = &buffers[i];

            if (!memories[m] || at->buffer != memories[m] || at->times == 0)
                continue;
            if (at->times != UINT64_MAX)
                at->times--;
            *out_code = at->code;
            count(&counts.faults, 1);
            return at->later ? LAYER_FAULT_AFTER_ENQUEUE : LAYER_FAULT_CALL;
        }
    return LAYER_FAULT_NONE;
}

/* ---- commands ---- */

/*
 * Enqueues a marker in place of a command that is not executed. If the caller
 * waits for the command, returns its error.
 */
static cl_int command_replace_by_marker(cl_command_queue queue, cl_int code,
                                        cl_bool blocking, cl_event *event)
{
    cl_int error = CL_SUCCESS;

    if (event) {
        error = target.clEnqueueMarkerWithWaitList(queue, 0, NULL, event);
        if (error == CL_SUCCESS) {
            pthread_mutex_lock(&mutex);
            event_add(*event, code);
            pthread_mutex_unlock(&mutex);
        }
    }
    if (error != CL_SUCCESS || !blocking)
        return error;
    if (event) {
        event_gone(*event);
        target.clReleaseEvent(*event);
        *event = NULL;
    }
    queue_gone(queue); /* The error was reported. */
    return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

bool command_is_replaced(enum function function, const char *text,
                         cl_command_queue queue, const cl_mem *memories,
                         cl_uint memory_count, cl_bool blocking,
                         cl_event *event, cl_int *out_error)
{
    cl_int code = CL_SUCCESS;
    enum layer_fault fault = fault_command(function, text, &code);
    const struct bad_queue *bad;

    if (fault == LAYER_FAULT_NONE && unused())
        return false;
    pthread_mutex_lock(&mutex);
    if (fault == LAYER_FAULT_NONE)
        fault = lazy_fault(memories, memory_count, &code);
    if (fault == LAYER_FAULT_AFTER_ENQUEUE || fault == LAYER_FAULT_ENDLESS)
        queue_add(queue, fault, code);
    bad = queue_find(queue);
    if (fault != LAYER_FAULT_CALL)
        fault = bad ? bad->fault : LAYER_FAULT_NONE;
    if (fault == LAYER_FAULT_AFTER_ENQUEUE)
        code = bad->code;
    pthread_mutex_unlock(&mutex);
    if (fault == LAYER_FAULT_ENDLESS && blocking)
        fault_hang();
    *out_error = code;
    if (fault == LAYER_FAULT_AFTER_ENQUEUE)
        *out_error = command_replace_by_marker(queue, code, blocking, event);
    return fault == LAYER_FAULT_AFTER_ENQUEUE || fault == LAYER_FAULT_CALL;
}

void command_waits(cl_command_queue queue, cl_uint wait_count,
                   const cl_event *waits)
{
    if (unused())
        return;
    pthread_mutex_lock(&mutex);
    for (cl_uint w = 0; w < wait_count; w++)
        for (int i = 0; i < EVENTS; i++)
            if (events[i].event && events[i].event == waits[w])
                queue_add(queue, LAYER_FAULT_AFTER_ENQUEUE,
                          CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    pthread_mutex_unlock(&mutex);
}

void queue_gone(cl_command_queue queue)
{
    struct bad_queue *bad;

    if (unused())
        return;
    pthread_mutex_lock(&mutex);
    bad = queue_find(queue);
    if (bad)
        bad->queue = NULL;
    pthread_mutex_unlock(&mutex);
}

/* Returns the result of a wait on the queue and clears the error. */
static cl_int queue_take_error(cl_command_queue queue)
{
    struct bad_queue *bad;
    cl_int code = CL_SUCCESS;
    bool endless = false;

    if (unused())
        return code;
    pthread_mutex_lock(&mutex);
    bad = queue_find(queue);
    if (bad && bad->fault == LAYER_FAULT_ENDLESS)
        endless = true;
    else if (bad) {
        code = bad->code;
        bad->queue = NULL;
    }
    pthread_mutex_unlock(&mutex);
    if (endless)
        fault_hang();
    return code;
}

cl_int CL_API_CALL layer_clFinish(cl_command_queue queue)
{
    cl_int code, queue_error;

    if (fault_call(F_clFinish, NULL, &code))
        return code;
    count(&counts.waits, 1);
    queue_error = queue_take_error(queue);
    hold_wait(queue);
    code = target.clFinish(queue);
    return queue_error != CL_SUCCESS ? queue_error : code;
}

/* ---- events ---- */

void event_gone(cl_event event)
{
    if (unused())
        return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < EVENTS; i++)
        if (events[i].event == event)
            events[i].event = NULL;
    pthread_mutex_unlock(&mutex);
}

cl_command_queue queue_of(cl_event event)
{
    cl_command_queue queue = NULL;

    target.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue,
                          NULL);
    return queue;
}

/*
 * Returns a negative value if the event failed, CL_RUNNING if it never
 * completes, and another value if the driver must be asked.
 */
static cl_int event_fault(cl_event event)
{
    cl_command_queue queue;
    struct bad_queue *bad;
    cl_int code = CL_SUCCESS;

    if (unused())
        return code;
    queue = queue_of(event);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < EVENTS && code == CL_SUCCESS; i++)
        if (events[i].event == event)
            code = events[i].code;
    bad = queue_find(queue);
    if (code == CL_SUCCESS && bad && bad->fault == LAYER_FAULT_ENDLESS)
        code = CL_RUNNING;
    else if (code < 0 && bad)
        bad->queue = NULL; /* The error was reported. */
    pthread_mutex_unlock(&mutex);
    return code;
}

cl_int CL_API_CALL layer_clWaitForEvents(cl_uint event_count,
                                         const cl_event *waits)
{
    cl_int code;

    if (fault_call(F_clWaitForEvents, NULL, &code))
        return code;
    count(&counts.waits, 1);
    for (cl_uint i = 0; i < event_count; i++) {
        code = event_fault(waits[i]);
        if (code == CL_RUNNING)
            fault_hang();
        else if (code < 0)
            return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
    for (cl_uint i = 0; i < event_count; i++)
        hold_wait_event(waits[i], true);
    return target.clWaitForEvents(event_count, waits);
}

cl_int CL_API_CALL layer_clGetEventInfo(cl_event event, cl_event_info name,
                                        size_t room, void *value,
                                        size_t *out_size)
{
    cl_int code;

    if (fault_call(F_clGetEventInfo, NULL, &code))
        return code;
    if (name == CL_EVENT_COMMAND_EXECUTION_STATUS)
        hold_question(event);
    code = target.clGetEventInfo(event, name, room, value, out_size);
    if (code == CL_SUCCESS && value &&
        name == CL_EVENT_COMMAND_EXECUTION_STATUS) {
        const cl_int fault = event_fault(event);

        if (fault != CL_SUCCESS)
            *(cl_int *)value = fault;
    }
    return code;
}

/* A callback, which receives the status that the layer simulates. */
struct callback {
    void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
    void *user;
    cl_event event;
};

static void *call_back_late(void *argument)
{
    struct callback *callback = argument;

    fault_hang();
    callback->notify(callback->event, CL_COMPLETE, callback->user);
    target.clReleaseEvent(callback->event);
    free(callback);
    return NULL;
}

static void CL_CALLBACK call_back(cl_event event, cl_int state, void *user)
{
    struct callback *callback = user;
    const cl_int fault = event_fault(event);
    pthread_t thread;

    if (fault == CL_RUNNING) {
        target.clRetainEvent(event);
        if (pthread_create(&thread, NULL, call_back_late, callback) == 0)
            pthread_detach(thread);
        return;
    }
    callback->notify(event, fault < 0 ? fault : state, callback->user);
    free(callback);
}

cl_int CL_API_CALL layer_clSetEventCallback(
    cl_event event, cl_int type,
    void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user)
{
    struct callback *callback;
    cl_int code;

    if (fault_call(F_clSetEventCallback, NULL, &code))
        return code;
    callback = malloc(sizeof *callback);
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    *callback = (struct callback){notify, user, event};
    hold_wait_event(event, false);
    code = target.clSetEventCallback(event, type, call_back, callback);
    if (code != CL_SUCCESS)
        free(callback);
    return code;
}
