/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why there may be no OpenCL device: what this machine's files say.
 */
#ifndef CL_PROBE_HINTS_H
#define CL_PROBE_HINTS_H

#include <jansson.h>

/* Appends a sentence for each thing found wanting.  Opens no device. */
void hints_opencl(json_t *sentences);

#endif
