/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the OpenCL devices of all platforms, built by the first call.
 * Any thread.
 */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H
#define TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* One device of one platform.  Only device_lifecycle.c changes it after
 * enumeration. */
struct platform_device {
    cl_platform_id platform;
    cl_device_id id;
    struct tandem_device_info info;
    char version[128]; /* version text of the platform */
    bool nvidia;
    uint32_t quirks;                  /* set of enum quirk */
    bool subgroups;                   /* a GPU with cl_intel_subgroups */
    bool unified;                     /* CL_DEVICE_HOST_UNIFIED_MEMORY */
    bool correct_divide;              /* f32 division is correctly rounded */
    bool has_device_scope_visibility; /* see struct op_request in plan.h */
    bool tensor_cores;                /* NVIDIA tensor cores with TF32 */
    bool tf32_to_even;                /* PTX has cvt.rn.tf32 */
    bool wgmma;                       /* compute capability 9.0 only */
    uint32_t group_limit; /* maximum work-items on a group's first axis */
    /* The context of all opens, and their number, guarded by a mutex of
     * device_lifecycle.c. */
    cl_context context;
    uint32_t open_count;
};

/* Sets the number of devices.  Without any device, returns an error, usually
 * NO_DEVICE, with a message that tells the user what to install. */
enum tandem_status opencl_device_count(uint32_t *out_count);
/* Returns device `index`, or NULL with an error message if it does not exist.
 */
struct platform_device *opencl_device_get(uint32_t index);

#endif
