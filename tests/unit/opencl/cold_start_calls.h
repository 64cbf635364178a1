/* SPDX-License-Identifier: Apache-2.0 */
/* One process that begins cold: calls by chance on the OpenCL plugin's first
 * device.  One thread. */
#ifndef TANDEM_TESTS_OPENCL_COLD_CALL_H
#define TANDEM_TESTS_OPENCL_COLD_CALL_H

#include <stdint.h>

/* Opens the device, launches what the seed says in buffers that end where their
 * tensors do, waits for it, and closes.  0, or 1 with a line on stderr. */
int cold_call(uint64_t seed);

#endif
