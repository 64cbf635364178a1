/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's and CLBlast's codes as statuses.  Any thread. */
#ifndef TANDEM_OPENCL_DEVICE_CL_STATUS_H
#define TANDEM_OPENCL_DEVICE_CL_STATUS_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"

/* The one function that turns a cl_int into a status: sets the message ("CALL:
 * NAME (code)") and marks device (NULL allowed) lost where the code says so,
 * or where it may mean so and the device does not answer: seconds, then. */
enum tandem_status status_from_cl(struct tandem_device *device, cl_int code,
                                  const char *call);
/* Likewise for a CLBlastStatusCode. */
enum tandem_status status_from_clblast(struct tandem_device *device, int code,
                                       const char *call);

#endif
