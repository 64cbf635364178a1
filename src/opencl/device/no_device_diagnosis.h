/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages that explain why there is no OpenCL device.  Only
 * device_enumeration.c calls these functions. */
#ifndef TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H
#define TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* The OpenCL platforms that have no usable device. */
struct no_device_diagnosis {
    char names[200];         /* platform names, separated by commas */
    bool pocl, rusticl;      /* set if `names` includes PoCL or rusticl */
    uint32_t unusable_count; /* number of devices that cannot be used */
};

/* Adds the name of a platform to the diagnosis. */
void no_device_diagnosis_add_platform(struct no_device_diagnosis *diagnosis,
                                      const char *platform);

/* Sets the error message for the case that the ICD loader found no platform,
 * because no driver is installed or none works.  Returns NO_DEVICE. */
enum tandem_status no_platform_report(void);

/* Sets the error message for platforms without usable devices.  Returns
 * NO_DEVICE. */
enum tandem_status
no_device_report(const struct no_device_diagnosis *diagnosis);

#endif
