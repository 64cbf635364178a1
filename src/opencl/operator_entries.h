/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's functions that take an operator.  They check their arguments.
 * tandem/backend.h documents them and says which thread may call each. */
#ifndef TANDEM_OPENCL_OPERATOR_ENTRIES_H
#define TANDEM_OPENCL_OPERATOR_ENTRIES_H

#include <tandem/backend.h>

enum tandem_status operator_supports(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
enum tandem_status operator_prepare(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
enum tandem_status operator_ready(
    struct tandem_device *device, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
enum tandem_status operator_launch(
    struct tandem_stream *stream, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count);
enum tandem_status operator_gemm(struct tandem_stream *stream,
                                 const struct tandem_gemm *gemm);

#endif
