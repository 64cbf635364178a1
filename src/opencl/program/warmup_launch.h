/* SPDX-License-Identifier: Apache-2.0 */
/* The first launch of a kernel, after which nothing of it is left to compile
 * or to load. */
#ifndef TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H
#define TANDEM_OPENCL_PROGRAM_WARMUP_LAUNCH_H

#include "opencl/device/cl_api.h"
#include "opencl/program/warmup_call.h"

/* Runs sample's step by kernel on a queue and in buffers of its own, each of
 * exactly the bytes that the sample needs, whose contents are whatever they
 * are; and waits.  Sets the kernel's arguments, so nobody else may use it
 * meanwhile; any thread. */
cl_int warmup_launch_run(cl_context context, cl_device_id device,
                         cl_kernel kernel, const struct sample *sample);

#endif
