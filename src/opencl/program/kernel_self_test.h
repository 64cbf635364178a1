/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a tensor-core kernel before its first use, because the kernel contains
 * instructions that OpenCL does not define.  Any thread may call these
 * functions. */
#ifndef TANDEM_OPENCL_PROGRAM_KERNEL_SELF_TEST_H
#define TANDEM_OPENCL_PROGRAM_KERNEL_SELF_TEST_H

#include <tandem/backend.h>

#include "opencl/device/cl_api.h"
#include "opencl/plan/tensor_core_packing.h"

struct tandem_device;

/* Computes a small GEMM with the kernel and compares the result with a float64
 * reference.  Packs the operands on the device if necessary.  Blocks.  Returns
 * FAILED if the difference exceeds the tolerance. */
enum tandem_status kernel_self_test_run(struct tandem_device *device,
                                        cl_kernel kernel,
                                        const struct kernel_key *key);
/* Returns true if `got`, an element of a GEMM kernel's result, is correct
 * within the tolerance of the self-test.  The element is computed from the row
 * `a` and the column `b`, which have `k` elements each.  `rounding` is the
 * relative rounding error of the dtype in which the result was stored. */
bool kernel_self_test_element(enum gemm_kernel_id kernel,
                              enum packed_format format, const double *a,
                              const double *b, int64_t k, double got,
                              double rounding);

#endif
