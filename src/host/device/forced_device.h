/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that TANDEM_DEVICE or the context's options name, on which
 * everything runs.  Called with the context locked, or not yet shared.
 */
#ifndef TANDEM_HOST_DEVICE_FORCED_DEVICE_H
#define TANDEM_HOST_DEVICE_FORCED_DEVICE_H

#include "host/context/context.h"

/* As a context is created: what is seen without asking a driver, that the name
 * is one and that its plugin is loaded.  TANDEM_NO_DEVICE. */
enum tandem_status forced_check(const struct tandem_context *context);

/* At first use: finds the device and keeps it as context->forced.
 * TANDEM_NO_DEVICE, TANDEM_OUT_OF_MEMORY. */
enum tandem_status forced_find(struct tandem_context *context);

#endif
