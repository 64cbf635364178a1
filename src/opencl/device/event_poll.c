/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for an event by polling or with a callback; see event_poll.h. */
#include "opencl/device/event_poll.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* During the first SPIN_NS, a wait polls without sleeping.  Most waits for
 * short commands end within this time. */
#define SPIN_NS 100000u
/* After SPIN_NS, a wait sleeps between polls. Each sleep takes 1/256 of the
 * time waited so far, but at least 10 and at most 500 us, so that short waits
 * end early and long waits use little CPU time. */
#define MIN_SLEEP_NS 10000u
#define MAX_SLEEP_NS 500000u
#define SLEEP_DIVISOR 256u

uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t remaining_ns(uint64_t deadline_ns, uint64_t limit_ns)
{
    if (deadline_ns == TANDEM_TIMEOUT_INFINITE)
        return limit_ns;
    const uint64_t now = monotonic_ns();
    const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    return left < limit_ns ? left : limit_ns;
}

cl_int event_get_state(cl_event event, cl_int *out_state)
{
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                          sizeof(*out_state), out_state, NULL);
}

static void pause_after(uint64_t spent_ns, uint64_t left_ns)
{
    uint64_t sleep_ns = spent_ns / SLEEP_DIVISOR;
    if (spent_ns < SPIN_NS) {
        sched_yield();
        return;
    }
    if (sleep_ns < MIN_SLEEP_NS)
        sleep_ns = MIN_SLEEP_NS;
    if (sleep_ns > MAX_SLEEP_NS)
        sleep_ns = MAX_SLEEP_NS;
    struct timespec sleep = {0,
                             (long)(sleep_ns < left_ns ? sleep_ns : left_ns)};
    nanosleep(&sleep, NULL);
}

cl_int poll_event(cl_event event, uint64_t limit_ns, cl_int *out_state)
{
    uint64_t start = monotonic_ns(), spent = 0;
    long slack = 0;
    cl_int code;
    *out_state = CL_QUEUED;
    while ((code = event_get_state(event, out_state)) == CL_SUCCESS &&
           *out_state > CL_COMPLETE && spent < limit_ns) {
        /* Linux can extend sleeps by the thread's timer slack, 50 us by
         * default. Therefore the slack is 1 ns during this wait. */
        if (spent >= SPIN_NS && slack == 0) {
            slack = prctl(PR_GET_TIMERSLACK);
            if (slack > 1)
                prctl(PR_SET_TIMERSLACK, 1ul);
        }
        pause_after(spent, limit_ns - spent);
        spent = monotonic_ns() - start;
    }
    if (slack > 1)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
    return code;
}

/* State that a waiting thread and the driver's callback share.  The callback
 * can run after the wait has ended, so whichever ends last frees the state. */
struct event_waiter {
    pthread_mutex_t mutex;
    pthread_cond_t completed;
    cl_int state; /* execution status of the event, set by the callback */
    uint32_t references;
};

static struct event_waiter *event_waiter_new(void)
{
    struct event_waiter *waiter = calloc(1, sizeof(*waiter));
    pthread_condattr_t clock;
    if (waiter == NULL)
        return NULL;
    pthread_mutex_init(&waiter->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->completed, &clock);
    pthread_condattr_destroy(&clock);
    waiter->state = CL_QUEUED;
    waiter->references = 2;
    return waiter;
}

/* Drops a reference to the waiter and unlocks waiter->mutex.  The caller must
 * have locked this mutex. */
static void event_waiter_release(struct event_waiter *waiter)
{
    bool last = --waiter->references == 0;
    pthread_mutex_unlock(&waiter->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&waiter->completed);
    pthread_mutex_destroy(&waiter->mutex);
    free(waiter);
}

static void CL_CALLBACK event_waiter_signal(cl_event event, cl_int state,
                                            void *user)
{
    struct event_waiter *waiter = user;
    (void)event;
    pthread_mutex_lock(&waiter->mutex);
    waiter->state = state;
    pthread_cond_signal(&waiter->completed);
    event_waiter_release(waiter);
}

/* Returns the time at which the timeout ends.  Timeouts are limited to one
 * year, so that the time does not overflow. */
static struct timespec deadline_after(uint64_t timeout_ns)
{
    const uint64_t year_ns = UINT64_C(31536000000000000);
    uint64_t at =
        monotonic_ns() + (timeout_ns < year_ns ? timeout_ns : year_ns);
    return (struct timespec){(time_t)(at / 1000000000u),
                             (long)(at % 1000000000u)};
}

bool sleep_until_event(cl_event event, uint64_t timeout_ns, cl_int *out_state,
                       cl_int *out_code)
{
    struct event_waiter *waiter = event_waiter_new();
    if (waiter == NULL)
        return false;
    struct timespec deadline = deadline_after(timeout_ns);
    if (clSetEventCallback(event, CL_COMPLETE, event_waiter_signal, waiter) !=
        CL_SUCCESS) {
        pthread_mutex_lock(&waiter->mutex);
        waiter->references = 1;
        event_waiter_release(waiter);
        return false;
    }
    pthread_mutex_lock(&waiter->mutex);
    while (waiter->state > CL_COMPLETE &&
           pthread_cond_timedwait(&waiter->completed, &waiter->mutex,
                                  &deadline) != ETIMEDOUT)
        continue;
    *out_state = waiter->state;
    event_waiter_release(waiter);
    /* The event can be complete although the callback has not run yet. */
    if (*out_state > CL_COMPLETE)
        *out_code = event_get_state(event, out_state);
    return true;
}
