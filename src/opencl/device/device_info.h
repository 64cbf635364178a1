/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the properties of one OpenCL device.  Only device_enumeration.c calls
 * device_info_query, while it holds the mutex of the device list. */
#ifndef TANDEM_OPENCL_DEVICE_DEVICE_INFO_H
#define TANDEM_OPENCL_DEVICE_DEVICE_INFO_H

#include "opencl/device/device_enumeration.h"

/* Fills `out` except info.duplicate_of.  Returns false if a query failed or if
 * the device is unavailable, big-endian, without a compiler, or older than
 * OpenCL 1.2.  *out_code is the error code of the first failed query. */
bool device_info_query(struct platform_device *out, cl_platform_id platform,
                       cl_device_id id, cl_int *out_code);

#endif
