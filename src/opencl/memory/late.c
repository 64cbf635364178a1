/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that commands of our own still use; see late.h. */
#include "opencl/memory/late.h"

#include <stdlib.h>

#include "opencl/device/cl_status.h"
#include "opencl/queue/stream.h"

struct late {
    cl_mem mem;
    cl_event event;
    struct late *next;
};

/* Without memory to note it, mem is the driver's for good. */
static void keep(struct tandem_device *device, cl_mem mem, cl_event event)
{
    struct late *late = malloc(sizeof(*late));
    if (late == NULL)
        return;
    late->mem = mem;
    late->event = event;
    pthread_mutex_lock(&device->pool.mutex);
    late->next = device->pool.late;
    device->pool.late = late;
    pthread_mutex_unlock(&device->pool.mutex);
}

static bool ended(cl_event event)
{
    cl_int state = CL_QUEUED;
    return wait_ended(event, 0, &state) == CL_SUCCESS && state <= CL_COMPLETE;
}

/* Takes those out of the list whose commands have ended. */
static struct late *take_ended(struct pool *pool)
{
    struct late *list = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (struct late **at = &pool->late; *at != NULL;) {
        struct late *late = *at;
        if (!ended(late->event)) {
            at = &late->next;
            continue;
        }
        *at = late->next;
        late->next = list;
        list = late;
    }
    pthread_mutex_unlock(&pool->mutex);
    return list;
}

/* Gives back the memory of the late commands that have ended.  Returns true if
 * none is left. */
static bool deferred_release_collect(struct tandem_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->mutex);
    bool none = pool->late == NULL;
    pthread_mutex_unlock(&pool->mutex);
    if (none)
        return true;
    for (struct late *late = take_ended(pool), *next; late != NULL;
         late = next) {
        next = late->next;
        clReleaseEvent(late->event);
        clReleaseMemObject(late->mem);
        free(late);
    }
    pthread_mutex_lock(&pool->mutex);
    none = pool->late == NULL;
    pthread_mutex_unlock(&pool->mutex);
    return none;
}

bool late_finish(struct tandem_device *device, uint64_t limit_ns)
{
    cl_int state;
    /* The list grows no more: the device is being closed. */
    for (struct late *at = device->pool.late; at != NULL; at = at->next)
        if (wait_ended(at->event, limit_ns, &state) != CL_SUCCESS ||
            state > CL_COMPLETE)
            break;
    return deferred_release_collect(device);
}

enum tandem_status late_wait(struct tandem_device *device,
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
        keep(device, mem, event);
    else
        clReleaseEvent(event);
    return status;
}
