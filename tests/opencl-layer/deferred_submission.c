/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delays the start of enqueued commands, as OpenCL allows. Each queue has a
 * gate, a user event for which all enqueued commands wait. A flush opens it
 * (LAYER_HOLD_FLUSH), or a wait does (LAYER_HOLD_WAIT). A command that waits
 * for an unflushed command of another queue might wait forever; the layer
 * counts it and opens the other queue's gate. Small tables under one mutex.
 */
#include "internal.h"

#include <pthread.h>

#define QUEUES 64
#define EVENTS 512
/* This number of queries of an event status counts as a wait. */
#define QUERIES_PER_WAIT 50u

struct held_queue {
    cl_command_queue queue;
    cl_event gate; /* NULL if the gate is open. */
    /* Bit q is set if a command waits for the gate of queues[q]. */
    uint64_t waits_for;
};

/* The event of a command that was not flushed. */
struct held_event {
    cl_event event;
    cl_command_queue queue;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum layer_defer_submission mode;
static struct held_queue queues[QUEUES];
static struct held_event events[EVENTS];
static unsigned queries;

static bool off(void)
{
    return __atomic_load_n(&mode, __ATOMIC_RELAXED) == LAYER_HOLD_NONE;
}

/* ---- the tables; the mutex is held ---- */

/* NULL finds a free entry. */
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

static void queue_open_gate(struct held_queue *held)
{
    if (!held->gate)
        return;
    target.clSetUserEventStatus(held->gate, CL_COMPLETE);
    target.clReleaseEvent(held->gate);
    held->gate = NULL;
}

/* Opens the gates of this queue and of all queues that it waits for. */
static void queue_open_gates(struct held_queue *held)
{
    const uint64_t waits_for = held->waits_for;

    held->waits_for = 0;
    queue_open_gate(held);
    for (int i = 0; i < QUEUES; i++)
        if (waits_for >> i & 1)
            queue_open_gates(&queues[i]);
    queries = 0;
}

static void queue_flush(struct held_queue *held)
{
    for (int i = 0; i < EVENTS; i++)
        if (events[i].queue == held->queue)
            events[i] = (struct held_event){NULL, NULL};
    if (mode == LAYER_HOLD_FLUSH)
        queue_open_gate(held);
}

static cl_event user_event_new(cl_command_queue queue)
{
    cl_context context = NULL;
    cl_int error;

    if (target.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context,
                                     &context, NULL) != CL_SUCCESS)
        return NULL;
    return target.clCreateUserEvent(context, &error);
}

/* Records that the event's command is needed but was not flushed. */
static void unflushed(const struct held_event *event)
{
    struct held_queue *held = queue_find(event->queue);

    count(&counts.unflushed, 1);
    if (!held)
        return;
    queue_flush(held);
    queue_open_gates(held);
}

/* Notes that the queue is about to wait for the event. */
static void need(struct held_queue *held, cl_event on)
{
    const cl_command_queue queue = queue_of(on);
    const struct held_event *event = event_find(on);
    const struct held_queue *other = queue ? queue_find(queue) : NULL;

    if (!other || other == held)
        return;
    if (event)
        unflushed(event);
    held->waits_for |= UINT64_C(1) << (other - queues);
}

/* ---- calls from the functions that enqueue, flush and wait ---- */

void layer_defer_submission(enum layer_defer_submission wanted)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < QUEUES; i++)
        queue_open_gate(&queues[i]);
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
    queries = 0;
    held = queue_get(queue);
    for (cl_uint i = 0; i < *wait_count; i++) {
        out->events[i] = (*waits)[i];
        if (held)
            need(held, (*waits)[i]);
    }
    if (held && blocking) {
        queue_flush(held);
        queue_open_gates(held);
    } else if (held) {
        if (!held->gate)
            held->gate = user_event_new(queue);
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

/* Flushes the queue, and opens its gates or forgets it, if asked to. */
static void queue_submit(cl_command_queue queue, bool opens_gates,
                         bool is_released)
{
    struct held_queue *held;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    held = queue_find(queue);
    if (held) {
        queue_flush(held);
        if (opens_gates)
            queue_open_gates(held);
        if (is_released)
            held->queue = NULL;
    }
    pthread_mutex_unlock(&mutex);
}

void hold_flush(cl_command_queue queue)
{
    queue_submit(queue, false, false);
}

void hold_wait(cl_command_queue queue)
{
    queue_submit(queue, true, false);
}

/* Releasing a queue flushes it. */
void hold_queue_gone(cl_command_queue queue)
{
    queue_submit(queue, true, true);
}

/* Callers other than clWaitForEvents must have flushed. */
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
        queue_open_gates(held);
    pthread_mutex_unlock(&mutex);
}

void hold_question(cl_event event)
{
    bool waits;

    if (off())
        return;
    pthread_mutex_lock(&mutex);
    waits = ++queries > QUERIES_PER_WAIT;
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
