/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a device.  Without a limit the driver's own waits
 * serve, unless they keep a processor busy: OpenCL does not tell, so the first
 * one that lasts is watched.  With a limit, which OpenCL does not offer, the
 * thread sleeps until the driver calls back where the device is the host's own
 * processor, which is not to be taken from the work; GPUs are polled, as their
 * drivers may call back in their own time (NVIDIA's: every 20 ms).  Any
 * thread.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

/* Polls at full speed so long, as most waits of small work end within it. */
#define SPIN_NS 100000u
/* Then it sleeps for a share of the time waited so far, so that a short wait
 * loses little and a long one costs little. */
#define SHORTEST_SLEEP_NS 10000u
#define LONGEST_SLEEP_NS 500000u
#define SLEEP_SHARE 256u
/* A wait that lasts so long tells what a driver does in it: one that sleeps
 * takes next to nothing of a processor, one that does not takes all that others
 * leave to it, which on a loaded machine is little. */
#define TELLING_NS 5000000u
#define BUSY_SHARE 32u

static uint64_t clock_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t wait_clock(void)
{
    return clock_now(CLOCK_MONOTONIC);
}

/* ---- the driver's own waits ---- */

/* So much takes a GPU less than 100 us; a command takes one or two, however
 * little it moves. */
#define BRIEF_BYTES ((uint64_t)8 << 20)
#define COMMAND_BYTES ((uint64_t)64 << 10)

bool wait_brief(const struct tandem_stream *stream)
{
    return atomic_load_explicit(&stream->pending, memory_order_relaxed) <
           BRIEF_BYTES;
}

void wait_grows(struct tandem_stream *stream, uint64_t bytes)
{
    uint64_t pending =
        atomic_load_explicit(&stream->pending, memory_order_relaxed);
    if (pending < BRIEF_BYTES)
        atomic_store_explicit(&stream->pending,
                              pending + bytes + COMMAND_BYTES,
                              memory_order_relaxed);
}

bool wait_busy(struct tandem_device *device)
{
    return atomic_load_explicit(&device->waits, memory_order_relaxed) ==
           DRIVER_WAIT_SPINNING;
}

void wait_watch(struct tandem_device *device, struct wait_watch *out_watch)
{
    out_watch->wall_ns = 0;
    if (atomic_load_explicit(&device->waits, memory_order_relaxed) !=
        DRIVER_WAIT_UNKNOWN)
        return;
    out_watch->wall_ns = clock_now(CLOCK_MONOTONIC);
    out_watch->busy_ns = clock_now(CLOCK_THREAD_CPUTIME_ID);
}

void wait_watched(struct tandem_device *device, const struct wait_watch *watch)
{
    if (watch->wall_ns == 0)
        return;
    uint64_t wall_ns = clock_now(CLOCK_MONOTONIC) - watch->wall_ns;
    if (wall_ns < TELLING_NS)
        return;
    uint64_t busy_ns = clock_now(CLOCK_THREAD_CPUTIME_ID) - watch->busy_ns;
    bool busy = busy_ns > wall_ns / BUSY_SHARE;
    atomic_store(&device->waits,
                 busy ? DRIVER_WAIT_SPINNING : DRIVER_WAIT_BLOCKING);
    device_log(device, TANDEM_LOG_DEBUG,
               "the driver was busy for %llu of %llu us in a wait: %s",
               (unsigned long long)busy_ns / 1000,
               (unsigned long long)wall_ns / 1000,
               busy ? "its own are avoided from now on"
                    : "its own serve");
}

/* ---- polling ---- */

static void pause_after(uint64_t spent_ns, uint64_t left_ns)
{
    uint64_t sleep_ns = spent_ns / SLEEP_SHARE;
    if (spent_ns < SPIN_NS) {
        sched_yield();
        return;
    }
    if (sleep_ns < SHORTEST_SLEEP_NS)
        sleep_ns = SHORTEST_SLEEP_NS;
    if (sleep_ns > LONGEST_SLEEP_NS)
        sleep_ns = LONGEST_SLEEP_NS;
    struct timespec nap = {0, (long)(sleep_ns < left_ns ? sleep_ns : left_ns)};
    nanosleep(&nap, NULL);
}

/* A thread's sleeps last 50 us longer than asked, unless it says otherwise.
 * Returns what the host's thread had, for slack_restore. */
static long slack_shorten(void)
{
    long slack = prctl(PR_GET_TIMERSLACK);
    if (slack > 1)
        prctl(PR_SET_TIMERSLACK, 1ul);
    return slack;
}

static void slack_restore(long slack)
{
    if (slack > 1)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

static cl_int state_get(cl_event event, cl_int *out_state)
{
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                          sizeof(*out_state), out_state, NULL);
}

static cl_int wait_polled(cl_event event, uint64_t timeout_ns,
                          cl_int *out_state)
{
    uint64_t start = clock_now(CLOCK_MONOTONIC), spent = 0;
    long slack = 0;
    cl_int code;
    while ((code = state_get(event, out_state)) == CL_SUCCESS &&
           *out_state > CL_COMPLETE && spent < timeout_ns) {
        if (spent >= SPIN_NS && slack == 0)
            slack = slack_shorten();
        pause_after(spent, timeout_ns - spent);
        spent = clock_now(CLOCK_MONOTONIC) - start;
    }
    slack_restore(slack);
    return code;
}

cl_int wait_ended(cl_event event, uint64_t limit_ns, cl_int *out_state)
{
    *out_state = CL_QUEUED;
    return wait_polled(event, limit_ns, out_state);
}

/* ---- sleeping ---- */

/* Lives until both have left it: who waits, and the driver, who may call back
 * long after nobody waits. */
struct sleeper {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    cl_int state; /* above CL_COMPLETE: not yet */
    uint32_t users;
};

static struct sleeper *sleeper_new(void)
{
    struct sleeper *sleeper = calloc(1, sizeof(*sleeper));
    pthread_condattr_t clock;
    if (sleeper == NULL)
        return NULL;
    pthread_mutex_init(&sleeper->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&sleeper->woken, &clock);
    pthread_condattr_destroy(&clock);
    sleeper->state = CL_QUEUED;
    sleeper->users = 2;
    return sleeper;
}

/* Called with the mutex locked, returns with it unlocked. */
static void sleeper_leave(struct sleeper *sleeper)
{
    bool last = --sleeper->users == 0;
    pthread_mutex_unlock(&sleeper->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&sleeper->woken);
    pthread_mutex_destroy(&sleeper->mutex);
    free(sleeper);
}

static void CL_CALLBACK sleeper_wake(cl_event event, cl_int state, void *user)
{
    struct sleeper *sleeper = user;
    (void)event;
    pthread_mutex_lock(&sleeper->mutex);
    sleeper->state = state;
    pthread_cond_signal(&sleeper->woken);
    sleeper_leave(sleeper);
}

/* A point in time far enough for any timeout. */
static struct timespec deadline_after(uint64_t timeout_ns)
{
    const uint64_t year_ns = UINT64_C(31536000000000000);
    uint64_t at = clock_now(CLOCK_MONOTONIC) +
                  (timeout_ns < year_ns ? timeout_ns : year_ns);
    return (struct timespec){(time_t)(at / 1000000000u),
                             (long)(at % 1000000000u)};
}

/* False where the driver does not call back. */
static bool wait_asleep(cl_event event, uint64_t timeout_ns, cl_int *out_state,
                        cl_int *out_code)
{
    struct sleeper *sleeper = sleeper_new();
    if (sleeper == NULL)
        return false;
    struct timespec deadline = deadline_after(timeout_ns);
    if (clSetEventCallback(event, CL_COMPLETE, sleeper_wake, sleeper) !=
        CL_SUCCESS) {
        pthread_mutex_lock(&sleeper->mutex);
        sleeper->users = 1;
        sleeper_leave(sleeper);
        return false;
    }
    pthread_mutex_lock(&sleeper->mutex);
    while (sleeper->state > CL_COMPLETE &&
           pthread_cond_timedwait(&sleeper->woken, &sleeper->mutex,
                                  &deadline) != ETIMEDOUT)
        continue;
    *out_state = sleeper->state;
    sleeper_leave(sleeper);
    /* The driver may be late with its call, not with the work. */
    if (*out_state > CL_COMPLETE)
        *out_code = state_get(event, out_state);
    return true;
}

static enum tandem_status wait_limited(struct tandem_device *device,
                                       cl_event event, uint64_t timeout_ns,
                                       cl_int *out_code)
{
    cl_int state = CL_QUEUED;
    cl_int code = state_get(event, &state);
    *out_code = CL_SUCCESS;
    if (code == CL_SUCCESS && state > CL_COMPLETE && timeout_ns != 0 &&
        (device->hardware->info.kind != TANDEM_DEVICE_CPU ||
         !wait_asleep(event, timeout_ns, &state, &code)))
        code = wait_polled(event, timeout_ns, &state);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clGetEventInfo");
    if (state > CL_COMPLETE)
        return last_error_set(TANDEM_NOT_READY,
                              "work is under way after %llu ns",
                              (unsigned long long)timeout_ns);
    *out_code = state;
    return TANDEM_OK;
}

/* What has passed may be told a little late. */
#define TOLD_NS 1000000000u

enum tandem_status wait_event(struct tandem_device *device, cl_event event,
                              uint64_t timeout_ns, cl_int *out_code)
{
    struct wait_watch watch;
    *out_code = CL_SUCCESS;
    if (timeout_ns != TANDEM_TIMEOUT_INFINITE || wait_busy(device))
        return wait_limited(device, event, timeout_ns, out_code);
    wait_watch(device, &watch);
    cl_int code = clWaitForEvents(1, &event);
    wait_watched(device, &watch);
    if (code != CL_SUCCESS &&
        code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        return status_from_cl(device, code, "clWaitForEvents");
    enum tandem_status status = wait_limited(device, event, TOLD_NS, out_code);
    if (code != CL_SUCCESS && *out_code == CL_SUCCESS)
        *out_code = code;
    return status;
}
