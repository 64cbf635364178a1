/* SPDX-License-Identifier: Apache-2.0 */
/* Finds devices by name, such as "opencl" or "opencl:1".  The context must be
 * locked or still unknown to other threads. */
#ifndef TANDEM_HOST_DEVICE_DEVICE_NAME_H
#define TANDEM_HOST_DEVICE_DEVICE_NAME_H

#include "host/context/context.h"

struct device_name {
    const char *backend; /* plugin name within a text; not NUL-terminated */
    size_t length;       /* bytes of backend */
    unsigned long index; /* device number; 0 if the name contains none */
};

/* Parses a device name such as "opencl:1".  Returns false for other texts. */
bool device_name_parse(const char *name, struct device_name *out);

/* Returns the loaded plugin that a device name contains, or NULL. */
const struct backend *device_backend_find(const struct tandem_context *context,
                                          const struct device_name *name);

/* Writes to `out` why no device has this name.  Starts no driver. */
void device_not_found_message(const struct tandem_context *context,
                              const struct device_name *name, char *out,
                              size_t bytes);

/* Finds a device by name.  Enumerates the devices of all plugins up to the
 * named one, which starts their drivers.  Returns TANDEM_NO_DEVICE with the
 * error message set if there is no such device, or TANDEM_OUT_OF_MEMORY. */
enum tandem_status device_find(struct tandem_context *context, const char *name,
                               struct device **out_device);

#endif
