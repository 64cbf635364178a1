/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why there may be no OpenCL device: what this machine's files say.  Each
 * function appends a sentence for each thing found wanting, and opens no
 * device.
 */
#ifndef CL_PROBE_HINTS_H
#define CL_PROBE_HINTS_H

#include <jansson.h>

/* All of these, of this machine. */
void missing_opencl_diagnose(json_t *sentences);

/* That no driver is registered. */
void hints_drivers(json_t *sentences);
/* The GPUs among the PCI devices whose directories the pattern names, and what
 * brings their drivers. */
void hints_gpus(json_t *sentences, const char *pattern);
/* The device files that this user may not open, and who may. */
void hints_files(json_t *sentences, const char *pattern);

#endif
