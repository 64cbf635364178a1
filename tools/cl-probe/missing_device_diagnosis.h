/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds reasons why there is no OpenCL device in files of this machine.  Each
 * function appends one sentence for each problem.  No function opens a device.
 */
#ifndef CL_PROBE_MISSING_DEVICE_DIAGNOSIS_H
#define CL_PROBE_MISSING_DEVICE_DIAGNOSIS_H

#include "common/icd_list.h"

#include <jansson.h>
#include <stdbool.h>

/* A problem, and what to do about it. */
struct diagnosis {
    char text[600], advice[400];
    /* gpu_diagnose: the .icd file of the GPU's OpenCL driver, or "". */
    char driver_file[ICD_TEXT_MAX];
};

/* Makes all the checks below on this machine. */
void missing_opencl_diagnose(json_t *sentences);

/* Reports that no OpenCL driver is registered. */
void hints_drivers(json_t *sentences);
/* Reports each GPU with its OpenCL driver, or with the package that has it.
 * `pattern` is the glob pattern of the directories of PCI devices. */
void hints_gpus(json_t *sentences, const char *pattern);
/* Reports device files that this user may not open, and the group that may.
 * `pattern` is their glob pattern. */
void hints_files(json_t *sentences, const char *pattern);

/* Describes a GPU and its OpenCL driver.  `directory` is the directory of a PCI
 * device, with a slash in its path.  Returns false if the device is no GPU of a
 * known vendor. */
bool gpu_diagnose(const char *directory, struct diagnosis *out);
/* Returns "NVIDIA", "AMD" or "Intel", or NULL if the PCI device is no GPU of
 * one of them. */
const char *gpu_vendor(const char *directory);
/* Returns false if this user may open the device file, or if the file does not
 * exist. */
bool device_file_diagnose(const char *path, struct diagnosis *out);

#endif
