/* SPDX-License-Identifier: Apache-2.0 */
/* Launches a kernel before its first use, so that drivers that compile lazily
 * finish the compilation. */
#ifndef TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H
#define TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H

#include "opencl/device/cl_api.h"
#include "opencl/program/warmup_call.h"

/* Sets the arguments of the kernel to `buffers` and to the parameters of the
 * step, and enqueues the kernel.  Returns an OpenCL error code. */
cl_int kernel_step_enqueue(cl_command_queue queue, cl_kernel kernel,
                           const struct kernel_step *step,
                           const cl_mem *buffers);
/* Runs the kernel on a temporary queue, with the parameters and buffer sizes of
 * the warm-up call, and waits.  Sets the arguments of the kernel, so no other
 * thread is allowed to use the kernel meanwhile. */
cl_int warmup_launch_run(cl_context context, cl_device_id device,
                         cl_kernel kernel, const struct warmup_call *call);

#endif
