/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's memory as a buffer, where that costs no copy.  Any thread. */
#ifndef TANDEM_OPENCL_IMPORT_H
#define TANDEM_OPENCL_IMPORT_H

#include <tandem/backend.h>

enum tandem_status import_memory(struct tandem_device *device, void *memory,
                                 uint64_t bytes,
                                 struct tandem_buffer **out_buffer);

#endif
