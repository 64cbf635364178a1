/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for an event by polling or with a callback; see event_poll.h. */
#include "opencl/device/event_poll.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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

/* ---- waits with a callback ---- */

/* Maximum time between two queries, in case the driver makes no callback. */
#define MAX_CALLBACK_NS 100000000u

/* Number of wake-up slots, a power of two.  Waits for different events rarely
 * share a slot. */
#define SLOT_COUNT 64u

/* A callback wakes the threads that wait in a slot, and these query their
 * events again.  Slots are never freed, because a callback can run after its
 * wait has ended. */
static struct wake_slot {
    pthread_mutex_t mutex;
    pthread_cond_t called_back;
    _Atomic uint64_t count; /* number of callbacks */
} slots[SLOT_COUNT];

static void slots_init(void)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        pthread_mutex_init(&slots[i].mutex, NULL);
        pthread_cond_init(&slots[i].called_back, &clock);
    }
    pthread_condattr_destroy(&clock);
}

static struct wake_slot *slot_find(cl_event event)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, slots_init);
    /* Fibonacci hashing: the upper bits of the product depend on all bits. */
    return &slots[((uintptr_t)event * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
                  SLOT_COUNT];
}

static void CL_CALLBACK slot_wake(cl_event event, cl_int state, void *user)
{
    struct wake_slot *slot = user;
    (void)event, (void)state;
    pthread_mutex_lock(&slot->mutex);
    atomic_fetch_add(&slot->count, 1);
    pthread_cond_broadcast(&slot->called_back);
    pthread_mutex_unlock(&slot->mutex);
}

/* Sleeps until limit_ns have passed or slot->count differs from `count`. */
static void slot_sleep(struct wake_slot *slot, uint64_t count,
                       uint64_t limit_ns)
{
    const uint64_t until_ns = monotonic_ns() + limit_ns;
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    pthread_mutex_lock(&slot->mutex);
    while (atomic_load(&slot->count) == count &&
           pthread_cond_timedwait(&slot->called_back, &slot->mutex, &until) ==
               0)
        continue;
    pthread_mutex_unlock(&slot->mutex);
}

cl_int sleep_until_event(cl_event event, uint64_t limit_ns, cl_int *out_state)
{
    const uint64_t start_ns = monotonic_ns();
    uint64_t spent_ns = 0;
    cl_int code = poll_event(event, 0, out_state);
    if (code != CL_SUCCESS || *out_state <= CL_COMPLETE || limit_ns == 0)
        return code;
    struct wake_slot *slot = slot_find(event);
    uint64_t count = atomic_load(&slot->count);
    if (clSetEventCallback(event, CL_COMPLETE, slot_wake, slot) != CL_SUCCESS)
        return poll_event(event, limit_ns, out_state);
    while (spent_ns < limit_ns) {
        const uint64_t left_ns = limit_ns - spent_ns;
        slot_sleep(slot, count,
                   left_ns < MAX_CALLBACK_NS ? left_ns : MAX_CALLBACK_NS);
        count = atomic_load(&slot->count);
        code = event_get_state(event, out_state);
        if (code != CL_SUCCESS || *out_state <= CL_COMPLETE)
            break;
        spent_ns = monotonic_ns() - start_ns;
    }
    return code;
}
