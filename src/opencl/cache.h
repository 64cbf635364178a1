/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk.  Any thread, any number of processes. */
#ifndef TANDEM_OPENCL_CACHE_H
#define TANDEM_OPENCL_CACHE_H

#include "opencl/api.h"
#include "opencl/variant.h"

struct tandem_device;

/* A built program, or NULL where the disk has none that works. */
cl_program cache_load(struct tandem_device *device,
                      const struct variant_text *text);
/* Keeps program for the next process; failures are logged and harmless. */
void cache_store(struct tandem_device *device, const struct variant_text *text,
                 cl_program program);

#endif
