/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the OpenCL device of a Tandem device; see opencl_device_match.h. */
#include <config.h>

#include "opencl_device_match.h"

#include <string.h>

#define MAX_FOUND 64

static bool same_text(cl_device_id device, cl_device_info what,
                      const char *text)
{
    char value[512] = "";

    clGetDeviceInfo(device, what, sizeof value - 1, value, NULL);
    /* The plugin removes blanks before a name, and truncates long names. */
    return strncmp(value + strspn(value, " "), text, 120) == 0;
}

static bool same_platform(cl_platform_id platform, const char *text)
{
    char value[512] = "";

    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof value - 1, value,
                      NULL);
    return strncmp(value, text, 120) == 0;
}

/* Returns true if `device` is among the first `count` of `seen`. */
static bool is_seen(const cl_device_id *seen, cl_uint count,
                    cl_device_id device)
{
    for (cl_uint i = 0; i < count; i++)
        if (seen[i] == device)
            return true;
    return false;
}

/* The plugin lists a device once, even if the driver is registered twice and
 * the loader returns its platform twice. Repeated devices are not counted
 * here either. */
cl_device_id reference_find(const char *platform, const char *name,
                            uint32_t equals)
{
    cl_platform_id platforms[MAX_FOUND];
    cl_device_id devices[MAX_FOUND], seen[MAX_FOUND];
    cl_uint opencl_device_count = 0, count, seen_count = 0;

    if (clGetPlatformIDs(MAX_FOUND, platforms, &opencl_device_count) !=
        CL_SUCCESS)
        return NULL;
    for (cl_uint p = 0; p < opencl_device_count; p++) {
        count = 0;
        if (!same_platform(platforms[p], platform) ||
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_FOUND, devices,
                           &count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < count && seen_count < MAX_FOUND; d++) {
            if (!same_text(devices[d], CL_DEVICE_NAME, name) ||
                is_seen(seen, seen_count, devices[d]))
                continue;
            if (seen_count == equals)
                return devices[d];
            seen[seen_count++] = devices[d];
        }
    }
    return NULL;
}

uint32_t reference_equals(struct tandem_context *context, uint32_t device)
{
    struct tandem_device_info own = {.struct_size = sizeof own}, other = own;
    uint32_t equals = 0;

    if (tandem_device_describe(context, device, &own) != TANDEM_OK)
        return 0;
    for (uint32_t i = 0; i < device; i++)
        equals += tandem_device_describe(context, i, &other) == TANDEM_OK &&
                  strcmp(own.platform, other.platform) == 0 &&
                  strcmp(own.name, other.name) == 0;
    return equals;
}
