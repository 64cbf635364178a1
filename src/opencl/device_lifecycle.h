/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the plugin's devices.  May be called from any thread. */
#ifndef TANDEM_OPENCL_DEVICE_LIFECYCLE_H
#define TANDEM_OPENCL_DEVICE_LIFECYCLE_H

#include <tandem/extensions.h>

#include "opencl/device/device_enumeration.h"

enum tandem_status device_open(uint32_t index,
                               const struct tandem_open_options *options,
                               struct tandem_device **out_device);
/* Opens a device in the context `native`, or in the plugin's if it is NULL. */
enum tandem_status device_open_in(const struct platform_device *hardware,
                                  cl_context native,
                                  const struct tandem_open_options *options,
                                  struct tandem_device **out_device);
void device_close(struct tandem_device *device);
/* The extension "test.1". */
extern const struct tandem_test_extension test_extension;

#endif
