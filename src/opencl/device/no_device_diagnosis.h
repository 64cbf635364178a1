/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages that explain why there is no OpenCL device.  Called by
 * device_enumeration.c only.
 */
#ifndef TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H
#define TANDEM_OPENCL_DEVICE_NO_DEVICE_DIAGNOSIS_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/backend.h>

/* The platforms that list no usable device. */
struct no_device_diagnosis {
    char names[200];    /* separated by commas */
    bool pocl, rusticl; /* set if the names include PoCL or rusticl */
    uint32_t unusable_count; /* number of listed devices that cannot be used */
};

/* Adds a platform, given its name. */
void no_device_diagnosis_add_platform(struct no_device_diagnosis *diagnosis,
                                      const char *platform);

/* Sets the message for a loader that found no platform, because no driver is
 * installed or none works.  Returns NO_DEVICE. */
enum tandem_status no_platform_report(void);

/* Sets the message for platforms without a usable device.  Returns NO_DEVICE.
 */
enum tandem_status
no_device_report(const struct no_device_diagnosis *diagnosis);

#endif
