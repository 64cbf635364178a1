/* SPDX-License-Identifier: Apache-2.0 */
/* Converts error codes of OpenCL and CLBlast to statuses.  Thread-safe. */
#ifndef TANDEM_OPENCL_DEVICE_CL_STATUS_H
#define TANDEM_OPENCL_DEVICE_CL_STATUS_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* Returns the status for an OpenCL error code and sets the error message to
 * "CALL: NAME (code)". Marks the device as lost if the code always means a lost
 * device. If the code only suggests a lost device, runs device_health_check
 * first, which can block for HEALTH_CHECK_TIMEOUT_NS. `device` may be NULL. */
enum tandem_status status_from_cl(struct tandem_device *device, cl_int code,
                                  const char *call);
/* Does the same as status_from_cl for an error code of CLBlast. */
enum tandem_status status_from_clblast(struct tandem_device *device, int code,
                                       const char *call);

#endif
