/* SPDX-License-Identifier: Apache-2.0 */
/* What work may still use that has not ended; see deferred_release.h. */
#include "opencl/memory/deferred_release.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

/* What a queue at rest needs to say so. */
#define ASK_NS 20000000u

/* One of queue, mem or memory (of malloc), pinned; with a queue, perhaps, what
 * is to be called. */
struct adrift {
    cl_command_queue queue;
    void (*end)(void *);
    void *user;
    struct staging_chunk chunk;
    struct pinned *pinned;
    struct adrift *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct adrift *kept;

/* Without memory to note it, it stays where it is for good. */
static bool keep(const struct adrift *from)
{
    struct adrift *adrift = malloc(sizeof(*adrift));
    if (adrift == NULL)
        return false;
    *adrift = *from;
    pthread_mutex_lock(&mutex);
    adrift->next = kept;
    kept = adrift;
    pthread_mutex_unlock(&mutex);
    return true;
}

void adrift_begin(struct tandem_device *device, cl_command_queue queue)
{
    atomic_store(&device->adrift, true);
    if (clRetainCommandQueue(queue) == CL_SUCCESS &&
        !keep(&(struct adrift){.queue = queue}))
        clReleaseCommandQueue(queue);
}

void adrift_chunk(const struct staging_chunk *chunk)
{
    keep(&(struct adrift){.chunk = *chunk});
}

void adrift_pinned(struct pinned *list)
{
    if (list != NULL)
        keep(&(struct adrift){.pinned = list});
}

/* Without memory to note it, all of it stays where it is for good. */
static void leave(cl_command_queue queue, void (*end)(void *), void *user)
{
    if (clRetainCommandQueue(queue) == CL_SUCCESS &&
        !keep(&(struct adrift){.queue = queue, .end = end, .user = user}))
        clReleaseCommandQueue(queue);
}

enum tandem_status adrift_wait(struct tandem_device *device,
                               cl_command_queue queue, cl_event event,
                               void (*end)(void *), void *user, bool *out_left)
{
    cl_int code = CL_SUCCESS, ended = CL_SUCCESS;
    *out_left = false;
    if (event == NULL)
        code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clEnqueueMarker");
    code = clFlush(queue);
    enum tandem_status status =
        code == CL_SUCCESS
            ? wait_event(device, event, device_limit(device), &ended)
            : status_from_cl(device, code, "clFlush");
    clReleaseEvent(event);
    if (status == TANDEM_OK)
        return status_from_cl(device, ended, "a command");
    if (status != TANDEM_NOT_READY)
        return status;
    *out_left = true;
    leave(queue, end, user);
    return last_error_set(TANDEM_FAILED,
                       "a command has not ended after %llu ms and may never "
                       "end: open the device with a larger blocking_timeout_ms",
                       (unsigned long long)device->stuck_ns / 1000000u);
}

static void give_back(struct adrift *adrift)
{
    if (adrift->end != NULL)
        adrift->end(adrift->user);
    if (adrift->queue != NULL)
        clReleaseCommandQueue(adrift->queue);
    if (adrift->chunk.mem != NULL)
        clReleaseMemObject(adrift->chunk.mem);
    else
        free(adrift->chunk.memory);
    pinned_abandon(adrift->pinned);
    free(adrift);
}

/* Puts the list back, before what was kept meanwhile. */
static void restore(struct adrift *list)
{
    struct adrift *last = list;
    while (last->next != NULL)
        last = last->next;
    pthread_mutex_lock(&mutex);
    last->next = kept;
    kept = list;
    pthread_mutex_unlock(&mutex);
}

static bool at_rest(const struct adrift *adrift)
{
    return adrift->queue == NULL ||
           device_drained(adrift->queue, ASK_NS) == TANDEM_OK;
}

/* Those that wait for their own queues alone; the others are returned. */
static struct adrift *settle_own(struct adrift *list)
{
    struct adrift *others = NULL;
    while (list != NULL) {
        struct adrift *at = list;
        list = at->next;
        at->next = NULL;
        if (at->end == NULL) {
            at->next = others;
            others = at;
        } else if (at_rest(at)) {
            give_back(at);
        } else {
            restore(at);
        }
    }
    return others;
}

void adrift_settle(void)
{
    pthread_mutex_lock(&mutex);
    struct adrift *list = kept;
    kept = NULL;
    pthread_mutex_unlock(&mutex);
    list = settle_own(list);
    for (const struct adrift *at = list; at != NULL; at = at->next)
        if (!at_rest(at)) {
            restore(list);
            return;
        }
    while (list != NULL) {
        struct adrift *next = list->next;
        give_back(list);
        list = next;
    }
}
