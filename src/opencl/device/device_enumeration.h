/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of all platforms, found once, at the first question.  Any
 * thread.
 */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H
#define TANDEM_OPENCL_DEVICE_DEVICE_ENUMERATION_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

struct platform_device {
    cl_platform_id platform;
    cl_device_id id;
    struct tandem_device_info info;
    char version[128]; /* of the platform */
    bool nvidia;
    uint32_t quirks; /* Set of enum quirk. */
    bool subgroups; /* Intel's, whose work-items exchange registers */
    bool unified; /* shares the host's memory, by its own word */
    bool correct_divide;
    bool has_device_scope_visibility; /* as in plan.h's struct request */
    bool tensor_cores; /* NVIDIA's, for TF32 */
    bool tf32_to_even; /* converts f32 to TF32 by one instruction */
    bool wgmma; /* compute capability 9.0, alone */
    uint32_t group_limit; /* work-items along a group's first axis */
    /* The context of all opens, and how many there are: device.c's. */
    cl_context context;
    uint32_t opens;
};

/* The number of devices; NO_DEVICE, with what to install, where none is. */
enum tandem_status platform_count(uint32_t *out_count);
/* NULL, with a message, past the last. */
struct platform_device *platform_at(uint32_t index);

#endif
