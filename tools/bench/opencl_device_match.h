/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the OpenCL device of a Tandem device by platform and name.  Devices
 * that are equal in both are distinguished by their order in the driver.  Built
 * only with OpenCL.
 */
#ifndef TANDEM_BENCH_OPENCL_DEVICE_MATCH_H
#define TANDEM_BENCH_OPENCL_DEVICE_MATCH_H

#include <tandem/host.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

/* Returns how many devices of equal platform and name precede the device. */
uint32_t reference_equals(struct tandem_context *context, uint32_t device);
/* Returns the device that follows `equals` devices of equal platform and name,
 * or NULL. */
cl_device_id reference_find(const char *platform, const char *name,
                            uint32_t equals);

#endif
