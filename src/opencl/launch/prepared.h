/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared operators: the entries op_prepare to prepared_launch of backend.h.
 * Any thread may call them. */
#ifndef TANDEM_OPENCL_PREPARED_H
#define TANDEM_OPENCL_PREPARED_H

#include "common/gemm_calls.h"
#include "opencl/objects.h"

enum tandem_status prepared_create(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_operand_desc *const *inputs, uint32_t input_count,
    const struct tandem_operand_desc *const *outputs, uint32_t output_count,
    uint32_t flags, struct tandem_prepared_info *out_info,
    struct tandem_prepared **out_prepared);
enum tandem_status prepared_wait(struct tandem_prepared *prepared,
                                 uint64_t timeout_ns);
void prepared_release(struct tandem_prepared *prepared);
enum tandem_status prepared_launch(struct tandem_stream *stream,
                                   struct tandem_prepared *prepared,
                                   const struct tandem_memory *memory,
                                   uint32_t count, const double *scalars,
                                   uint32_t scalar_count);

/* For the entry gemm (common/gemm_calls.h). */
extern const struct gemm_call_functions gemm_functions;

/* If `status` means that the device cannot run the plan's GEMM kernel, or its
 * kernel of attention for tensor cores, disables the kernel and returns true: a
 * new plan has another. */
bool failed_kernel_disable(struct tandem_device *device,
                           const struct launch_plan *plan,
                           enum tandem_status status);

#endif
