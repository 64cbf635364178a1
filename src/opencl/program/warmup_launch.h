/* SPDX-License-Identifier: Apache-2.0 */
/* The first launch of a kernel, in which drivers complete lazy compilation. */
#ifndef TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H
#define TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H

#include "opencl/device/cl_api.h"
#include "opencl/program/warmup_call.h"

/* Runs the kernel as in the step of the call, on a temporary queue, with
 * buffers of exactly the needed size, and waits.  Sets the kernel's arguments,
 * so no other thread may use the kernel meanwhile. */
cl_int warmup_launch_run(cl_context context, cl_device_id device,
                         cl_kernel kernel, const struct warmup_call *call);

#endif
