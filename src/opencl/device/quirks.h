/* SPDX-License-Identifier: Apache-2.0 */
/* Known driver quirks.  A quirk is behaviour that a driver does not report or
 * that differs from other drivers.  Pure, thread-safe functions. */
#ifndef TANDEM_OPENCL_DEVICE_QUIRKS_H
#define TANDEM_OPENCL_DEVICE_QUIRKS_H

#include <tandem/backend.h>

/* Bits of platform_device.quirks.  The table in quirks.c describes each bit. */
enum quirk {
    QUIRK_F16_UNLISTED = 1u << 0,
    QUIRK_LOCAL_MEMORY_UNDERREPORTED = 1u << 1,
    QUIRK_GROUP_SIZE_UNDERREPORTED = 1u << 2,
    QUIRK_FINISH_REPORTS_ERRORS = 1u << 3,
    QUIRK_BINARY_SLOW = 1u << 4,
    QUIRK_BINARY_RACE = 1u << 5,
    QUIRK_CACHE_REQUIRED = 1u << 6,
    QUIRK_BINARY_FATAL = 1u << 7,
    QUIRK_SERIAL_COMPILER = 1u << 8,
    QUIRK_COMPILER_RACE = 1u << 9,
};

/* Returns the quirks of a device and writes their descriptions to
 * info->quirks.  `info` must already contain the platform, the driver and the
 * extensions.  `compute_capability` is ten times NVIDIA's number, for example
 * 53 for 5.3; 0 means that it is not known. */
uint32_t quirks_find(struct tandem_device_info *info,
                     uint32_t compute_capability);

#endif
