/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that say why there is no OpenCL device.  Called under
 * device_enumeration.c's mutex.
 */
#ifndef TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H
#define TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* The platforms that list no usable device. */
struct absence {
    char names[200]; /* with commas between them */
    bool pocl, rusticl;
    uint32_t unusable; /* devices that are listed, but do not serve */
};

/* Adds a platform by its name. */
void absence_add(struct absence *absence, const char *platform);

/* The loader found no platform: no driver is installed, or none works. */
enum tandem_status absence_of_platforms(void);

/* There are platforms, but no usable device. */
enum tandem_status absence_of_devices(const struct absence *absence);

#endif
