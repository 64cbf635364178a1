/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerates the devices of all platforms, GPUs first and CPUs last, and marks
 * duplicates.  A mutex guards the search.  Threads read the finished list
 * without a lock. */
#include "opencl/device/device_enumeration.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/environment.h"
#include "common/last_error.h"
#include "opencl/device/no_device_diagnosis.h"
#include "opencl/device/device.h"
#include "opencl/device/driver_blocklist_check.h"

#define MAX_PLATFORMS 32u
#define MAX_DEVICES 64u

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool searched;
static cl_int search_error;
/* Result of driver_blocklist_check. If it is an error, OpenCL is not called. */
static enum tandem_status blocklist_status;
static char blocklist_message[512];
/* The platforms that have no usable device, for error messages. */
static struct no_device_diagnosis diagnosis;
static uint32_t listed_count;
static struct platform_device devices[MAX_DEVICES];

/* Returns true if `code` reports a lack of memory, which can be temporary. */
static bool is_temporary(cl_int code)
{
    return code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES;
}

/* Stores `code` as the error of the device search, unless the stored error is
 * temporary. Ignores CL_DEVICE_NOT_FOUND from platforms without devices. */
static void record_failure(cl_int code)
{
    if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND &&
        !is_temporary(search_error))
        search_error = code;
}

/* Returns true if the device list already contains the device `id`. */
static bool is_listed(cl_device_id id)
{
    for (uint32_t i = 0; i < listed_count; i++)
        if (devices[i].id == id)
            return true;
    return false;
}

/* Adds the platform's devices to the list.  Drops devices that are already
 * listed, because ocl-icd returns a platform several times if several .icd
 * files name its library. */
static void devices_add(cl_platform_id platform, cl_device_id *ids,
                        cl_uint count)
{
    for (cl_uint i = 0; i < count && listed_count < MAX_DEVICES; i++) {
        struct platform_device *device = &devices[listed_count];
        cl_int code;
        if (is_listed(ids[i]))
            continue;
        if (device_info_query(device, platform, ids[i], &code))
            listed_count++;
        else
            diagnosis.unusable_count++;
        record_failure(code);
    }
}

static void platform_search(cl_platform_id platform)
{
    cl_device_id ids[MAX_DEVICES];
    const uint32_t before = listed_count;
    cl_uint count = 0;
    char name[128];
    cl_int code =
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &count);
    record_failure(code);
    if (code == CL_SUCCESS)
        devices_add(platform, ids, count < MAX_DEVICES ? count : MAX_DEVICES);
    if (listed_count != before)
        return;
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name,
                          NULL) != CL_SUCCESS)
        snprintf(name, sizeof(name), "unknown");
    no_device_diagnosis_add_platform(&diagnosis, name);
}

static int rank_of(const struct platform_device *device)
{
    return device->info.kind == TANDEM_DEVICE_GPU           ? 0
           : device->info.kind == TANDEM_DEVICE_ACCELERATOR ? 1
                                                            : 2;
}

/* Sorts the devices by kind.  Devices of the same kind keep their order. */
static void order_devices(void)
{
    for (uint32_t i = 1; i < listed_count; i++)
        for (uint32_t j = i;
             j > 0 && rank_of(&devices[j - 1]) > rank_of(&devices[j]); j--) {
            struct platform_device swap = devices[j];
            devices[j] = devices[j - 1];
            devices[j - 1] = swap;
        }
}

/* Returns true if both devices are the same hardware on different platforms.
 * Devices of one platform are never duplicates, because a driver can list the
 * parts of one card separately.  Two CPU devices are always the host
 * processor. */
static bool are_duplicates(const struct platform_device *a,
                           const struct platform_device *b)
{
    static const uint8_t unknown[16];
    if (a->platform == b->platform || a->info.kind != b->info.kind)
        return false;
    if (a->info.kind == TANDEM_DEVICE_CPU)
        return true;
    if (memcmp(a->info.uuid, unknown, sizeof(unknown)) != 0 &&
        memcmp(a->info.uuid, b->info.uuid, sizeof(unknown)) == 0)
        return true;
    return a->info.pci_address[0] != '\0' &&
           strcmp(a->info.pci_address, b->info.pci_address) == 0;
}

static void mark_duplicates(void)
{
    for (uint32_t i = 0; i < listed_count; i++) {
        devices[i].info.duplicate_of = -1;
        for (uint32_t j = 0; j < i; j++)
            if (are_duplicates(&devices[i], &devices[j])) {
                devices[i].info.duplicate_of = (int32_t)j;
                break;
            }
    }
}

/* CUDA's loader cuts this variable at its first colon, in the environment
 * itself, so that processes which are started later find fewer drivers.  Puts
 * the bytes back that the call of the loader changed. */
static cl_int platforms_find(cl_platform_id *platforms, cl_uint *out_count)
{
    char *drivers = (char *)(uintptr_t)environment_get("OCL_ICD_FILENAMES");
    char *copy = drivers != NULL ? strdup(drivers) : NULL;
    cl_int code = clGetPlatformIDs(MAX_PLATFORMS, platforms, out_count);
    if (copy != NULL && strcmp(drivers, copy) != 0 &&
        environment_get("OCL_ICD_FILENAMES") == drivers)
        memcpy(drivers, copy, strlen(copy) + 1);
    free(copy);
    return code;
}

static void search(void)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    blocklist_status = driver_blocklist_check();
    if (blocklist_status != TANDEM_OK) {
        snprintf(blocklist_message, sizeof(blocklist_message), "%s",
                 last_error_get());
        return;
    }
    search_error = platforms_find(platforms, &count);
    if (search_error != CL_SUCCESS)
        return;
    if (count > MAX_PLATFORMS)
        count = MAX_PLATFORMS;
    listed_count = 0;
    diagnosis = (struct no_device_diagnosis){0};
    for (cl_uint i = 0; i < count; i++)
        platform_search(platforms[i]);
    if (listed_count != 0)
        search_error = CL_SUCCESS;
    order_devices();
    mark_duplicates();
}

static enum tandem_status no_device(void)
{
    if (blocklist_status != TANDEM_OK)
        return last_error_set(blocklist_status, "%s", blocklist_message);
    if (search_error == CL_PLATFORM_NOT_FOUND_KHR)
        return no_platform_report();
    if (is_temporary(search_error))
        return memory_error("an OpenCL driver has no memory to list its "
                            "devices (%d): try again later",
                            search_error);
    if (search_error != CL_SUCCESS)
        return last_error_set(
            TANDEM_NO_DEVICE,
            "an OpenCL driver (of %s) failed with %d when it "
            "was asked for its devices; check its installation",
            diagnosis.names, search_error);
    return no_device_report(&diagnosis);
}

enum tandem_status opencl_device_count(uint32_t *out_count)
{
    *out_count = 0;
    if (!atomic_load(&searched)) {
        fork_detection_start();
        /* Do not lock the mutex in a fork: a mutex that a thread of the parent
         * held is never unlocked in the fork. */
        if (fork_detected())
            return last_error_set(
                TANDEM_DEVICE_LOST,
                "this process was forked while another thread of its parent "
                "started OpenCL: it does not work here");
        pthread_mutex_lock(&mutex);
        if (!atomic_load(&searched)) {
            search();
            /* If memory was exhausted, the next call searches again. */
            if (blocklist_status == TANDEM_OUT_OF_MEMORY ||
                is_temporary(search_error)) {
                enum tandem_status status = no_device();
                pthread_mutex_unlock(&mutex);
                return status;
            }
            atomic_store(&searched, true);
        }
        pthread_mutex_unlock(&mutex);
    }
    *out_count = listed_count;
    return *out_count != 0 ? TANDEM_OK : no_device();
}

struct platform_device *opencl_device_get(uint32_t index)
{
    uint32_t count;
    if (opencl_device_count(&count) != TANDEM_OK)
        return NULL;
    if (index < count)
        return &devices[index];
    last_error_set(TANDEM_NO_DEVICE,
                   "OpenCL device %u does not exist: there are %u", index,
                   count);
    return NULL;
}
