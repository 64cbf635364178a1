/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: CL_MEM_ALLOC_HOST_PTR buffers that stay mapped.  The list
 * of these buffers is guarded by pool.mutex. */
#include "opencl/memory/pinned_memory.h"

#include <stdlib.h>

#include "common/thread_state_guard.h"
#include "opencl/device/cl_status.h"
#include "opencl/device/device.h"
#include "opencl/memory/deferred_release.h"

#define PAGE_BYTES 4096u

struct pinned {
    cl_mem mem;
    void *mapped;   /* address of the mapped buffer */
    void *memory;   /* first page boundary at or after `mapped` */
    uint64_t bytes; /* number of usable bytes at `memory` */
    struct pinned *next;
};

/* Unmaps and releases pinned memory.  If unmapping exceeds the timeout, the
 * buffer is released later.  A lost device unmaps nothing. */
static void pinned_release(struct tandem_device *device, struct pinned *pinned)
{
    cl_event event = NULL;
    cl_int code;
    if (atomic_load(&device->lost) ||
        clEnqueueUnmapMemObject(device->utility, pinned->mem, pinned->mapped, 0,
                                NULL, &event) != CL_SUCCESS ||
        deferred_release_wait_mem(device, device->utility, pinned->mem, event,
                                  device_timeout_ns(device),
                                  &code) != TANDEM_NOT_READY)
        clReleaseMemObject(pinned->mem);
    free(pinned);
}

/* Creates and maps a buffer that is one page larger than `bytes`, so that the
 * usable memory can start at a page boundary. */
static enum tandem_status pinned_map(struct tandem_device *device,
                                     struct pinned *pinned, uint64_t bytes,
                                     uint64_t limit_ns)
{
    enum tandem_status status = TANDEM_OK;
    cl_int code = CL_SUCCESS;
    cl_event event = NULL;
    size_t map_bytes = (size_t)bytes + PAGE_BYTES;
    pinned->mem = clCreateBuffer(device->context,
                                 CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                 map_bytes, NULL, &code);
    if (code == CL_SUCCESS)
        pinned->mapped = clEnqueueMapBuffer(
            device->utility, pinned->mem, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE,
            0, map_bytes, 0, NULL, &event, &code);
    if (event != NULL)
        status = deferred_release_wait_mem(device, device->utility, pinned->mem,
                                           event, limit_ns, &code);
    if (status == TANDEM_OK && code == CL_SUCCESS)
        return TANDEM_OK;
    if (status != TANDEM_NOT_READY && pinned->mem != NULL)
        clReleaseMemObject(pinned->mem);
    if (code == CL_OUT_OF_RESOURCES || code == CL_INVALID_BUFFER_SIZE ||
        code == CL_MAP_FAILURE)
        code = CL_OUT_OF_HOST_MEMORY;
    return status != TANDEM_OK ? status
                               : status_from_cl(device, code, "host_alloc");
}

enum tandem_status pinned_alloc(struct tandem_device *device, uint64_t bytes,
                                uint64_t limit_ns, void **out_memory)
{
    *out_memory = NULL;
    struct pinned *pinned =
        (size_t)bytes + PAGE_BYTES >= bytes ? calloc(1, sizeof(*pinned)) : NULL;
    if (pinned == NULL)
        return memory_error("host_alloc: out of host memory for %llu bytes",
                            (unsigned long long)bytes);
    struct thread_state host;
    thread_state_guard_enter(&host);
    enum tandem_status status = pinned_map(device, pinned, bytes, limit_ns);
    thread_state_guard_leave(&host);
    if (status != TANDEM_OK) {
        free(pinned);
        return status;
    }
    pinned->memory = (void *)(((uintptr_t)pinned->mapped + PAGE_BYTES - 1) &
                              ~(uintptr_t)(PAGE_BYTES - 1));
    pinned->bytes = bytes;
    pthread_mutex_lock(&device->pool.mutex);
    pinned->next = device->pool.pinned;
    device->pool.pinned = pinned;
    pthread_mutex_unlock(&device->pool.mutex);
    *out_memory = pinned->memory;
    return TANDEM_OK;
}

bool pinned_contains(struct tandem_device *device, const void *memory,
                     uint64_t bytes)
{
    const uintptr_t start = (uintptr_t)memory;
    bool holds = false;
    pthread_mutex_lock(&device->pool.mutex);
    for (const struct pinned *at = device->pool.pinned; at != NULL && !holds;
         at = at->next)
        holds = start >= (uintptr_t)at->memory &&
                start + bytes <= (uintptr_t)at->memory + at->bytes;
    pthread_mutex_unlock(&device->pool.mutex);
    return holds;
}

/* If the device is lost, it can still write to the memory. The memory is then
 * not freed here but in pinned_finish, when the device is closed. */
void pinned_free(struct tandem_device *device, void *memory)
{
    struct pinned *found = NULL;
    if (atomic_load(&device->lost))
        return;
    pthread_mutex_lock(&device->pool.mutex);
    for (struct pinned **at = &device->pool.pinned; *at != NULL;
         at = &(*at)->next)
        if ((*at)->memory == memory) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&device->pool.mutex);
    if (found != NULL)
        pinned_release(device, found);
}

void pinned_finish(struct tandem_device *device)
{
    while (device->pool.pinned != NULL) {
        struct pinned *pinned = device->pool.pinned;
        device->pool.pinned = pinned->next;
        pinned_release(device, pinned);
    }
}
