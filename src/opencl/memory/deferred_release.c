/* SPDX-License-Identifier: Apache-2.0 */
/* Releases objects that commands no longer use; see deferred_release.h. */
#include "opencl/memory/deferred_release.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/device/event_wait.h"

struct deferred_release {
    cl_event event; /* of the last command that uses the objects */
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

static void mem_release(void *mem)
{
    clReleaseMemObject(mem);
}

/* Waits up to limit_ns for the commands of the list, and releases the objects
 * of completed commands.  Returns true if no entries with this `release`
 * function are left, or no entries at all if `release` is NULL.  The mutex is
 * not locked during calls of the driver. */
static bool collect(struct tandem_device *device, uint64_t limit_ns,
                    void (*release)(void *))
{
    bool none_left = true;
    pthread_mutex_lock(&device->mutex);
    struct deferred_release *list = device->deferred;
    device->deferred = NULL;
    pthread_mutex_unlock(&device->mutex);
    while (list != NULL) {
        struct deferred_release *entry = list;
        cl_int state;
        list = entry->next;
        if (poll_event(entry->event, limit_ns, &state) == CL_SUCCESS &&
            state <= CL_COMPLETE) {
            clReleaseEvent(entry->event);
            entry->release(entry->user);
            free(entry);
            continue;
        }
        list_add(device, entry);
        if (release == NULL || entry->release == release)
            none_left = false;
        limit_ns = 0;
    }
    return none_left;
}

bool deferred_release_finish(struct tandem_device *device, uint64_t limit_ns)
{
    return collect(device, limit_ns, NULL);
}

/* Waits up to limit_ns for `event` and releases it.  If the command has not
 * completed, adds the event to the list and returns NOT_READY.  If there is no
 * host memory for the list, leaks the event and the objects. */
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
    if (status != TANDEM_NOT_READY) {
        clReleaseEvent(event);
        return status;
    }
    struct deferred_release *entry = malloc(sizeof(*entry));
    if (entry == NULL)
        return status;
    *entry = (struct deferred_release){event, release, user, NULL};
    list_add(device, entry);
    return status;
}

enum tandem_status deferred_release_wait_mem(struct tandem_device *device,
                                             cl_command_queue queue, cl_mem mem,
                                             cl_event event, uint64_t limit_ns,
                                             cl_int *out_code)
{
    /* Memory uses one queue per device, so this command would wait, too. */
    if (!collect(device, 0, mem_release))
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
