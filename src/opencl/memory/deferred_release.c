/* SPDX-License-Identifier: Apache-2.0 */
/* Releases objects that commands no longer use; see deferred_release.h. */
#include "opencl/memory/deferred_release.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/device/event_wait.h"

/* ---- objects of one device ---- */

/* A memory object, and the event of the command that still uses the object. */
struct deferred_mem {
    cl_mem mem;
    cl_event event;
    struct deferred_mem *next;
};

/* Adds `mem` to pool.deferred, or leaks `mem` if there is no host memory. */
static void defer_mem(struct tandem_device *device, cl_mem mem, cl_event event)
{
    struct deferred_mem *entry = malloc(sizeof(*entry));
    if (entry == NULL)
        return;
    entry->mem = mem;
    entry->event = event;
    pthread_mutex_lock(&device->pool.mutex);
    entry->next = device->pool.deferred;
    device->pool.deferred = entry;
    pthread_mutex_unlock(&device->pool.mutex);
}

/* Releases the memory objects in pool.deferred whose commands have completed.
 * Returns true if pool.deferred is now empty. */
static bool deferred_release_collect(struct tandem_device *device)
{
    struct pool *pool = &device->pool;
    struct deferred_mem *list = NULL;
    cl_int state;
    pthread_mutex_lock(&pool->mutex);
    for (struct deferred_mem **at = &pool->deferred; *at != NULL;) {
        struct deferred_mem *entry = *at;
        if (poll_event(entry->event, 0, &state) != CL_SUCCESS ||
            state > CL_COMPLETE) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        entry->next = list;
        list = entry;
    }
    bool none_left = pool->deferred == NULL;
    pthread_mutex_unlock(&pool->mutex);
    while (list != NULL) {
        struct deferred_mem *next = list->next;
        clReleaseEvent(list->event);
        clReleaseMemObject(list->mem);
        free(list);
        list = next;
    }
    return none_left;
}

bool deferred_release_finish(struct tandem_device *device, uint64_t limit_ns)
{
    cl_int state;
    /* No other thread can change the list, because the device is closing. */
    for (struct deferred_mem *at = device->pool.deferred; at != NULL;
         at = at->next)
        if (poll_event(at->event, limit_ns, &state) != CL_SUCCESS ||
            state > CL_COMPLETE)
            break;
    return deferred_release_collect(device);
}

enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code)
{
    if (!deferred_release_collect(device))
        limit_ns = 0;
    *out_code = CL_SUCCESS;
    cl_int code = clFlush(queue);
    enum tandem_status status =
        code == CL_SUCCESS ? wait_event(device, event, limit_ns, out_code)
                           : status_from_cl(device, code, "clFlush");
    if (status == TANDEM_NOT_READY)
        defer_mem(device, mem, event);
    else
        clReleaseEvent(event);
    return status;
}

/* ---- objects of the process ---- */

/* Maximum time in nanoseconds for a test whether a command queue is idle. */
#define IDLE_QUERY_NS 20000000u

/* A list entry: a command queue that can be busy, or objects that are released
 * when all queues without a `release` function are idle. */
struct deferred_release {
    cl_command_queue queue;  /* NULL if the entry is for objects */
    void (*release)(void *); /* called when `queue` is idle; may be NULL */
    void *user;
    cl_mem mem;
    void *memory;                /* from malloc */
    cl_command_queue idle_queue; /* idle queue to release with `mem`, or NULL */
    struct deferred_release *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct deferred_release *first;

/* Adds all entries of `list` in one critical section, so that no thread sees
 * objects in the list without the queues that can still use the objects. */
static void list_add(struct deferred_release *list)
{
    struct deferred_release **end = &list;
    while (*end != NULL)
        end = &(*end)->next;
    pthread_mutex_lock(&mutex);
    *end = first;
    first = list;
    pthread_mutex_unlock(&mutex);
}

/* Adds a copy of `from` to the list.  If there is no host memory for the copy,
 * returns false, and the objects of `from` are never released. */
static bool entry_add(const struct deferred_release *from)
{
    struct deferred_release *entry = malloc(sizeof(*entry));
    if (entry == NULL)
        return false;
    *entry = *from;
    list_add(entry);
    return true;
}

static void queue_add(cl_command_queue queue, void (*release)(void *),
                      void *user)
{
    const struct deferred_release entry = {
        .queue = queue, .release = release, .user = user};
    if (clRetainCommandQueue(queue) == CL_SUCCESS && !entry_add(&entry))
        clReleaseCommandQueue(queue);
}

void deferred_release_begin(struct tandem_device *device,
                            cl_command_queue queue)
{
    atomic_store(&device->defers_release, true);
    queue_add(queue, NULL, NULL);
}

void deferred_release_add(cl_mem mem, void *memory, cl_command_queue queue)
{
    entry_add(&(struct deferred_release){
        .mem = mem, .memory = memory, .idle_queue = queue});
}

enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred)
{
    cl_int code = CL_SUCCESS, command_code = CL_SUCCESS;
    *out_deferred = false;
    if (event == NULL)
        code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clEnqueueMarker");
    code = clFlush(queue);
    enum tandem_status status =
        code == CL_SUCCESS
            ? wait_event(device, event, device_timeout_ns(device),
                         &command_code)
            : status_from_cl(device, code, "clFlush");
    clReleaseEvent(event);
    if (status == TANDEM_OK)
        return status_from_cl(device, command_code, "a command");
    if (status != TANDEM_NOT_READY)
        return status;
    *out_deferred = true;
    queue_add(queue, release, user);
    return last_error_set(
        TANDEM_FAILED,
        "a command has not completed after %llu ms: if it only needs more "
        "time, open the device with a larger blocking_timeout_ms",
        (unsigned long long)device->blocking_timeout_ns / 1000000u);
}

static void entry_release(struct deferred_release *entry)
{
    if (entry->release != NULL)
        entry->release(entry->user);
    if (entry->queue != NULL)
        clReleaseCommandQueue(entry->queue);
    if (entry->idle_queue != NULL)
        clReleaseCommandQueue(entry->idle_queue);
    if (entry->mem != NULL)
        clReleaseMemObject(entry->mem);
    else
        free(entry->memory);
    free(entry);
}

static bool queue_is_idle(const struct deferred_release *entry)
{
    return entry->queue == NULL ||
           command_queue_drain(entry->queue, IDLE_QUERY_NS) == TANDEM_OK;
}

void deferred_release_collect_all(void)
{
    struct deferred_release *others = NULL;
    bool all_idle = true;
    pthread_mutex_lock(&mutex);
    struct deferred_release *list = first;
    first = NULL;
    pthread_mutex_unlock(&mutex);
    while (list != NULL) {
        struct deferred_release *at = list;
        list = at->next;
        at->next = NULL;
        if (at->release == NULL) {
            all_idle = all_idle && queue_is_idle(at);
            at->next = others;
            others = at;
        } else if (queue_is_idle(at)) {
            entry_release(at);
        } else {
            list_add(at);
        }
    }
    if (!all_idle) {
        list_add(others);
        return;
    }
    while (others != NULL) {
        struct deferred_release *next = others->next;
        entry_release(others);
        others = next;
    }
}
