/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which OpenCL device one of Tandem's is: by its platform and name, and, of
 * several that are equal in both, by their order, which is the driver's.  Built
 * only with OpenCL.
 */
#ifndef TANDEM_BENCH_OPENCL_DEVICE_MATCH_H
#define TANDEM_BENCH_OPENCL_DEVICE_MATCH_H

#include <tandem/host.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* How many equal devices come before it. */
uint32_t reference_equals(struct tandem_context *context, uint32_t device);
/* The one of the platform that comes after so many equal ones; NULL: none. */
cl_device_id reference_find(const char *platform, const char *name,
                            uint32_t equals);

#endif
