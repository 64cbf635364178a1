/* SPDX-License-Identifier: Apache-2.0 */
/* The first launch of a kernel, on scratch memory.  Some drivers finish the
 * compilation only at the first launch of a kernel; build threads launch each
 * kernel once, so that the operator's launch does not wait for it. */
#ifndef TANDEM_OPENCL_PROGRAM_TRIAL_LAUNCH_H
#define TANDEM_OPENCL_PROGRAM_TRIAL_LAUNCH_H

#include "opencl/device/cl_api.h"
#include "opencl/plan/plan.h"

struct trial_launch;

/* Copies step `index` of the plan.  The caller frees the result with free().
 * Returns NULL, so that there is no trial, if the buffers of the step are too
 * large, or if host memory is exhausted. */
struct trial_launch *trial_launch_create(const struct launch_plan *plan,
                                         uint32_t index);
/* Runs the first work-groups of the step, at most `max_groups`, on a temporary
 * queue, on buffers of the sizes that the step accesses, and waits.  Sets the
 * arguments of the kernel, so no other thread is allowed to use the kernel
 * meanwhile.  Returns an OpenCL error code. */
cl_int trial_launch_run(const struct trial_launch *trial, cl_context context,
                        cl_device_id device, cl_kernel kernel,
                        uint64_t max_groups);

/* Sets the arguments of the kernel to `buffers` and to the parameters of the
 * step, without patches, and enqueues `groups` work-groups.  Returns an OpenCL
 * error code. */
cl_int kernel_step_enqueue(cl_command_queue queue, cl_kernel kernel,
                           const struct kernel_step *step,
                           const cl_mem *buffers, uint64_t groups);

#endif
