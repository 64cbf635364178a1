/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk.  Any thread, any number of processes. */
#ifndef TANDEM_OPENCL_CACHE_H
#define TANDEM_OPENCL_CACHE_H

#include <stdbool.h>

#include "opencl/api.h"
#include "opencl/variant.h"

struct tandem_device;

/* Makes path and the directories above it (mode 0700); false where it cannot
 * be trusted: not absolute, or others may write it or replace it. */
bool cache_directory(const char *path);
/* A built program, or NULL where the disk has none that works. */
cl_program cache_load(struct tandem_device *device,
                      const struct variant_text *text);
/* Keeps program for the next process; failures are logged and harmless. */
void cache_store(struct tandem_device *device, const struct variant_text *text,
                 cl_program program);

#endif
