/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that do not begin when they are enqueued, as OpenCL allows: each
 * queue has a gate, a user event, which all that is enqueued waits for.  A
 * flush opens it (LAYER_HOLD_FLUSH), or a wait does (LAYER_HOLD_WAIT).
 *
 * A command that waits for one of another queue, which was not flushed, might
 * wait for ever: it is counted, and what it waits for begins.  Small tables
 * under one mutex.
 */
#include "internal.h"

#include <pthread.h>

#define QUEUES 64
#define EVENTS 512
/* Who asks so often whether a command has ended waits for it. */
#define MOST_QUESTIONS 50u

struct held_queue {
    cl_command_queue queue;
    cl_event gate; /* NULL: open */
    uint64_t needs; /* bit q: some of it waits for queues[q]'s */
};

/* Of a command that was not flushed. */
struct held_event {
    cl_event event;
    cl_command_queue queue;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum layer_defer_submission mode;
static struct held_queue queues[QUEUES];
static struct held_event events[EVENTS];
static unsigned questions;

static bool off(void)
{
    return __atomic_load_n(&mode, __ATOMIC_RELAXED) == LAYER_HOLD_NONE;
}

/* ---- the tables; the mutex is held ---- */

/* Of no queue, a free place. */
static struct held_queue *queue_find(cl_command_queue queue)
{
    for (int i = 0; i < QUEUES; i++)
        if (queues[i].queue == queue)
            return &queues[i];
    return NULL;
}

static struct held_queue *queue_get(cl_command_queue queue)
{
    struct held_queue *held = queue_find(queue);

    if (!held)
        held = queue_find(NULL);
    if (held && !held->queue)
        *held = (struct held_queue){queue, NULL, 0};
    return held;
}

static struct held_event *event_find(cl_event event)
{
    for (int i = 0; i < EVENTS; i++)
        if (events[i].event == event)
            return &events[i];
    return NULL;
}

static void gate_open(struct held_queue *held)
{
    if (!held->gate)
        return;
    target.clSetUserEventStatus(held->gate, CL_COMPLETE);
    target.clReleaseEvent(held->gate);
    held->gate = NULL;
}

/* And of the queues that this one waits for. */
static void gates_open(struct held_queue *held)
{
    const uint64_t needs = held->needs;

    held->needs = 0;
    gate_open(held);
    for (int i = 0; i < QUEUES; i++)
        if (needs >> i & 1)
            gates_open(&queues[i]);
    questions = 0;
}

static void queue_flush(struct held_queue *held)
{
    for (int i = 0; i < EVENTS; i++)
        if (events[i].queue == held->queue)
            events[i] = (struct held_event){NULL, NULL};
    if (mode == LAYER_HOLD_FLUSH)
        gate_open(held);
}

static cl_event gate_new(cl_command_queue queue)
{
    cl_context context = NULL;
    cl_int error;

    if (target.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context,
                                     &context, NULL) != CL_SUCCESS)
        return NULL;
    return target.clCreateUserEvent(context, &error);
}

/* Somebody needs the event's command, and did not see to it that it begins. */
static void unflushed(const struct held_event *event)
{
    struct held_queue *held = queue_find(event->queue);

    count(&counts.unflushed, 1);
    if (!held)
        return;
    queue_flush(held);
    gates_open(held);
}

static cl_command_queue queue_of(cl_event event)
{
    cl_command_queue queue = NULL;

    target.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue,
                          NULL);
    return queue;
}

/* The queue is about to wait for the event. */
static void need(struct held_queue *held, cl_event on)
{
    const cl_command_queue queue = queue_of(on);
    const struct held_event *event = event_find(on);
    const struct held_queue *other = queue ? queue_find(queue) : NULL;

    if (!other || other == held)
        return;
    if (event)
        unflushed(event);
    held->needs |= UINT64_C(1) << (other - queues);
}

/* ---- for the functions that enqueue, flush and wait ---- */

void layer_defer_submission(enum layer_defer_submission wanted)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < QUEUES; i++)
        gate_open(&queues[i]);
    for (int i = 0; i < EVENTS; i++)
        events[i] = (struct held_event){NULL, NULL};
    __atomic_store_n(&mode, wanted, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mutex);
}

void hold_begin(cl_command_queue queue, cl_bool blocking, cl_uint *wait_count,
                const cl_event **waits, struct hold_waits *out)
{
    struct held_queue *held;

    if (off() || *wait_count >= HOLD_WAITS)
        return;
    pthread_mutex_lock(&mutex);
    questions = 0;
    held = queue_get(queue);
    for (cl_uint i = 0; i < *wait_count; i++) {
        out->events[i] = (*waits)[i];
        if (held)
            need(held, (*waits)[i]);
    }
    if (held && blocking) {
        queue_flush(held);
        gates_open(held);
    } else if (held) {
        if (!held->gate)
            held->gate = gate_new(queue);
        if (held->gate) {
            out->events[*wait_count] = held->gate;
            *waits = out->events;
            ++*wait_count;
        }
    }
    pthread_mutex_unlock(&mutex);
}

void hold_done(cl_command_queue queue, cl_bool blocking, const cl_event *event)
{
    struct held_event *place;

    if (off() || blocking || !event || !*event)
        return;
    pthread_mutex_lock(&mutex);
    place = queue_find(queue) ? event_find(NULL) : NULL;
    if (place)
        *place = (struct held_event){*event, queue};
    pthread_mutex_unlock(&mutex);
}

void hold_flush(cl_command_queue queue)
{
    struct held_queue *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    held = queue_find(queue);
    if (held)
        queue_flush(held);
    pthread_mutex_unlock(&mutex);
}

void hold_wait(cl_command_queue queue)
{
    struct held_queue *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    held = queue_find(queue);
    if (held) {
        queue_flush(held);
        gates_open(held);
    }
    pthread_mutex_unlock(&mutex);
}

/* clWaitForEvents flushes; who asks, or wants to be called, has to. */
void hold_wait_event(cl_event event, bool flushes)
{
    const struct held_event *found;
    struct held_queue *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    found = event_find(event);
    held = queue_find(queue_of(event));
    if (found && !flushes)
        unflushed(found);
    else if (held && found)
        queue_flush(held);
    if (held)
        gates_open(held);
    pthread_mutex_unlock(&mutex);
}

void hold_question(cl_event event)
{
    bool waits;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    waits = ++questions > MOST_QUESTIONS;
    pthread_mutex_unlock(&mutex);
    if (waits)
        hold_wait_event(event, false);
}

void hold_event_gone(cl_event event)
{
    struct held_event *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    held = event_find(event);
    if (held)
        *held = (struct held_event){NULL, NULL};
    pthread_mutex_unlock(&mutex);
}

/* A queue's release flushes it. */
void hold_queue_gone(cl_command_queue queue)
{
    struct held_queue *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    held = queue_find(queue);
    if (held) {
        queue_flush(held);
        gates_open(held);
        held->queue = NULL;
    }
    pthread_mutex_unlock(&mutex);
}
