/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process that starts without compiled programs and makes random calls on
 * the OpenCL plugin's first device. Call it from one thread.
 */
#ifndef TANDEM_TESTS_OPENCL_COLD_CALL_H
#define TANDEM_TESTS_OPENCL_COLD_CALL_H

#include <stdint.h>

/*
 * Opens the device, launches random calls on buffers that end where their
 * tensors end, waits, and closes. Returns 0, or 1 with a line on stderr.
 */
int cold_call(uint64_t seed);

#endif
