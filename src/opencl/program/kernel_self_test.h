/* SPDX-License-Identifier: Apache-2.0 */
/* Proves, before its first use, a kernel that asks more of a driver than
 * OpenCL promises. */
#ifndef TANDEM_OPENCL_PROGRAM_KERNEL_SELF_TEST_H
#define TANDEM_OPENCL_PROGRAM_KERNEL_SELF_TEST_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/plan/tensor_core_packing.h"

struct tandem_device;

/* Whether the variant's kernel needs a proof. */
bool kernel_self_test_is_needed(uint64_t key);
/* Runs a product of known numbers, infinite ones among them, packed on the
 * device where the kernel reads packed ones, and compares it with one computed
 * in double; FAILED, with a message, where they differ.  Blocks; any thread. */
enum tandem_status kernel_self_test_run(struct tandem_device *device,
                                        cl_kernel kernel, uint64_t key);
/* How far a sum of the tile's may be off, of the sum of its terms'
 * magnitudes. */
double kernel_self_test_tolerance(enum gemm_kernel_id tile,
                                  enum packed_format format);

#endif
