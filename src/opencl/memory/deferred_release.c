/* SPDX-License-Identifier: Apache-2.0 */
/* Releases objects that commands no longer use; see deferred_release.h. */
#include "opencl/memory/deferred_release.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/device/event_wait.h"

struct deferred_release {
    cl_command_queue queue;
    /* Of the last command that uses the objects, or of a marker behind it.
     * NULL if no marker is enqueued yet. */
    cl_event event;
    void (*release)(void *);
    void *user; /* the objects */
    struct deferred_release *next;
};

static void list_add(struct tandem_device *device,
                     struct deferred_release *entry)
{
    pthread_mutex_lock(&device->mutex);
    entry->next = device->deferred;
    device->deferred = entry;
    pthread_mutex_unlock(&device->mutex);
}

/* Adds an entry.  If there is no host memory for it, the objects leak. */
static void entry_add(struct tandem_device *device, cl_command_queue queue,
                      cl_event event, void (*release)(void *), void *user)
{
    struct deferred_release *entry = malloc(sizeof(*entry));
    if (entry == NULL)
        return;
    *entry = (struct deferred_release){queue, event, release, user, NULL};
    list_add(device, entry);
}

void deferred_release_add(struct tandem_device *device, cl_command_queue queue,
                          void (*release)(void *), void *user)
{
    entry_add(device, queue, NULL, release, user);
}

/* Returns TANDEM_OK if the commands have ended, NOT_READY if they have not
 * after limit_ns, or DEVICE_LOST if the driver cannot tell. */
static enum tandem_status entry_wait(struct deferred_release *entry,
                                     uint64_t limit_ns)
{
    cl_int state;
    if (entry->event == NULL &&
        clEnqueueMarkerWithWaitList(entry->queue, 0, NULL, &entry->event) !=
            CL_SUCCESS) {
        entry->event = NULL;
        return TANDEM_DEVICE_LOST;
    }
    if (clFlush(entry->queue) != CL_SUCCESS ||
        poll_event(entry->event, limit_ns, &state) != CL_SUCCESS)
        return TANDEM_DEVICE_LOST;
    return state > CL_COMPLETE ? TANDEM_NOT_READY : TANDEM_OK;
}

static void mem_release(void *mem)
{
    clReleaseMemObject(mem);
}

/* Like deferred_release_finish.  If `release` is not NULL, the result depends
 * only on entries with this function.  device->mutex is not locked while the
 * driver is called. */
static enum tandem_status collect(struct tandem_device *device,
                                  uint64_t limit_ns, void (*release)(void *))
{
    enum tandem_status result = TANDEM_OK;
    pthread_mutex_lock(&device->mutex);
    struct deferred_release *list = device->deferred;
    device->deferred = NULL;
    pthread_mutex_unlock(&device->mutex);
    while (list != NULL) {
        struct deferred_release *entry = list;
        list = entry->next;
        const enum tandem_status status = entry_wait(entry, limit_ns);
        if (status == TANDEM_OK) {
            clReleaseEvent(entry->event);
            entry->release(entry->user);
            free(entry);
            continue;
        }
        if ((release == NULL || entry->release == release) &&
            result != TANDEM_NOT_READY)
            result = status;
        list_add(device, entry);
        limit_ns = 0;
    }
    return result;
}

enum tandem_status deferred_release_finish(struct tandem_device *device,
                                           uint64_t limit_ns)
{
    return collect(device, limit_ns, NULL);
}

/* Waits up to limit_ns for `event` and releases it.  If the command has not
 * completed, adds the objects to the list and returns NOT_READY. */
static enum tandem_status wait_or_defer(struct tandem_device *device,
                                        cl_command_queue queue, cl_event event,
                                        uint64_t limit_ns,
                                        void (*release)(void *), void *user,
                                        cl_int *out_code)
{
    *out_code = CL_SUCCESS;
    cl_int code = clFlush(queue);
    enum tandem_status status =
        code == CL_SUCCESS ? wait_event(device, event, limit_ns, out_code)
                           : status_from_cl(device, code, "clFlush");
    if (status == TANDEM_NOT_READY)
        entry_add(device, queue, event, release, user);
    else
        clReleaseEvent(event);
    return status;
}

enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code)
{
    /* Memory uses one queue per device, so this command would wait, too. */
    if (collect(device, 0, mem_release) != TANDEM_OK)
        limit_ns = 0;
    return wait_or_defer(device, queue, event, limit_ns, mem_release, mem,
                         out_code);
}

enum tandem_status deferred_release_wait(struct tandem_device *device,
                                         cl_command_queue queue, cl_event event,
                                         void (*release)(void *), void *user,
                                         bool *out_deferred)
{
    cl_int code = CL_SUCCESS;
    *out_deferred = false;
    if (event == NULL)
        code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return status_from_cl(device, code, "clEnqueueMarker");
    enum tandem_status status = wait_or_defer(
        device, queue, event, device_timeout_ns(device), release, user, &code);
    if (status == TANDEM_OK)
        return status_from_cl(device, code, "a command");
    if (status != TANDEM_NOT_READY)
        return status;
    *out_deferred = true;
    return last_error_set(
        TANDEM_FAILED,
        "a command has not completed after %llu ms: if it only needs more "
        "time, open the device with a larger blocking_timeout_ms",
        (unsigned long long)device->blocking_timeout_ns / 1000000u);
}
