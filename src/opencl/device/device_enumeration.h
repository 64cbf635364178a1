/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the OpenCL devices of all platforms.  The first call searches for the
 * devices.  Thread-safe. */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H
#define TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* A device of a platform.  After the device search, only device_lifecycle.c
 * changes this struct. */
struct platform_device {
    cl_platform_id platform;
    cl_device_id id;
    struct tandem_device_info info;
    char version[128]; /* OpenCL version string of the platform */
    bool nvidia;
    uint32_t quirks;                  /* driver quirks; bits of enum quirk */
    bool subgroups;                   /* GPU that has cl_intel_subgroups */
    bool unified;                     /* OpenCL reports host-unified memory */
    bool correct_divide;              /* f32 division is rounded correctly */
    bool has_device_scope_visibility; /* see op_request in plan/plan.h */
    bool tensor_cores;                /* NVIDIA tensor cores that take TF32 */
    bool tf32_to_even;                /* PTX can round to TF32 (cvt.rn.tf32) */
    bool wgmma;                       /* wgmma instructions (capability 9.0) */
    uint32_t group_limit; /* maximum work-group size on the first axis */
    /* A device can be opened several times.  `context` is the OpenCL context of
     * all open handles, and open_count is the number of open handles.  A mutex
     * in device_lifecycle.c guards both fields. */
    cl_context context;
    uint32_t open_count;
};

/* Writes the number of devices.  If there are none, returns an error, usually
 * NO_DEVICE, and sets an error message that tells the user what to install. */
enum tandem_status opencl_device_count(uint32_t *out_count);
/* Returns device `index`, or sets an error message and returns NULL. */
struct platform_device *opencl_device_get(uint32_t index);

/* Fills `out` with the properties of one OpenCL device, except for
 * info.duplicate_of (device_info.c). Returns false if a query failed or if the
 * device cannot be used: it is unavailable, is big-endian, has no compiler, or
 * does not support OpenCL 1.2. *out_code is the error code of the first failed
 * query. The caller must hold the mutex of device_enumeration.c. */
bool device_info_query(struct platform_device *out, cl_platform_id platform,
                       cl_device_id id, cl_int *out_code);
/* Returns the alignment of memory objects, in bytes. */
uint32_t device_base_alignment(const struct platform_device *hardware);
/* Returns the bytes of device memory that no process uses, or 0 if the driver
 * does not tell. */
uint64_t device_free_bytes(const struct platform_device *hardware);

#endif
