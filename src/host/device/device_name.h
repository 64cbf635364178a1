/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices by their names, "opencl" or "opencl:1".  Called with the context
 * locked, or not yet shared.
 */
#ifndef TANDEM_HOST_DEVICE_DEVICE_NAME_H
#define TANDEM_HOST_DEVICE_DEVICE_NAME_H

#include "host/context/context.h"

struct device_name {
    const char *backend; /* not terminated: length bytes */
    size_t length;
    unsigned long index; /* 0 where none is named */
};

/* false: it is no name of a device. */
bool device_name_parse(const char *name, struct device_name *out);

/* The plugin that is named; NULL where it is not loaded. */
const struct backend *device_backend_find(const struct tandem_context *context,
                                          const struct device_name *name);

/* Why there is no such device, of what is known so far. */
void device_absence(const struct tandem_context *context,
                    const struct device_name *name, char *out, size_t bytes);

/* Starts the drivers up to the one that is named.  TANDEM_NO_DEVICE,
 * TANDEM_OUT_OF_MEMORY. */
enum tandem_status device_find(struct tandem_context *context,
                               const char *name, struct device **out_device);

#endif
