/* SPDX-License-Identifier: Apache-2.0 */
/* The device named in TANDEM_DEVICE or in the context's options, on which all
 * operators run.  The context must be locked or not shared yet. */
#ifndef TANDEM_HOST_DEVICE_FORCED_DEVICE_H
#define TANDEM_HOST_DEVICE_FORCED_DEVICE_H

#include "host/context/context.h"

/* Checks, while a context is created, that the name is well-formed and that its
 * plugin is loaded.  Starts no driver.  Returns TANDEM_NO_DEVICE otherwise. */
enum tandem_status forced_device_check(const struct tandem_context *context);

/* Finds the device at first use and stores its number in context->forced.
 * Returns TANDEM_NO_DEVICE or TANDEM_OUT_OF_MEMORY on failure. */
enum tandem_status forced_device_find(struct tandem_context *context);

#endif
