/* SPDX-License-Identifier: Apache-2.0 */
/* Finds devices by name, such as "opencl" or "opencl:1".  The forced device,
 * named in TANDEM_DEVICE or in the context's options, runs all operators. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_NAME_H
#define TANDEM_HOST_DEVICE_DEVICE_NAME_H

#include "host/context/context.h"

/* Finds a device by name.  Enumerates the devices of the named plugin and of
 * all plugins before it, which starts their drivers.  Returns TANDEM_NO_DEVICE
 * (with the error message set) if there is no such device, or
 * TANDEM_OUT_OF_MEMORY. */
enum tandem_status device_find(struct tandem_context *context, const char *name,
                               struct device **out_device);

/* Checks that the forced device's name is valid and that its plugin is loaded.
 * Starts no driver.  Returns TANDEM_NO_DEVICE if the check fails. */
enum tandem_status forced_device_check(struct tandem_context *context);

/* Finds the forced device at first use and sets context->forced to its number.
 * Returns TANDEM_NO_DEVICE or TANDEM_OUT_OF_MEMORY on failure. */
enum tandem_status forced_device_find(struct tandem_context *context);

#endif
