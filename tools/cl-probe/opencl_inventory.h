/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists all devices that the OpenCL loader offers, also those that Tandem does
 * not use, with the versions and extensions that their drivers name:
 *
 *   [ { "platform", "platform_version", "device", "vendor", "driver",
 *       "opencl_version", "opencl_c_version", "extensions": [ "..." ] } ]
 *
 * Parent process only; a child process calls the drivers.
 */
#ifndef CL_PROBE_OPENCL_INVENTORY_H
#define CL_PROBE_OPENCL_INVENTORY_H

#include "cl_probe.h"

/* [blocks] Returns the array, or an object { "error" } if the drivers did not
 * answer. */
json_t *opencl_inventory(const struct probe_options *options);

#endif
