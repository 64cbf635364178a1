/* SPDX-License-Identifier: Apache-2.0 */
/* What one OpenCL device says of itself.  Called by device_enumeration.c alone.
 */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_INFO_H
#define TANDEM_OPENCL_DEVICE_DEVICE_INFO_H

#include "opencl/device/device_enumeration.h"

/* Fills out but for info.duplicate_of; false where the device cannot serve:
 * not available, no compiler, older than OpenCL 1.2, big-endian, or, with
 * out_code, where it failed to say. */
bool describe_device(struct platform_device *out, cl_platform_id platform,
                     cl_device_id id, cl_int *out_code);

#endif
