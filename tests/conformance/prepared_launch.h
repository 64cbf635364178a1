/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of calls that are described by tensors, as prepared operators. */
#ifndef TANDEM_TESTS_CONFORMANCE_PREPARED_LAUNCH_H
#define TANDEM_TESTS_CONFORMANCE_PREPARED_LAUNCH_H

#include <stdbool.h>

#include <tandem/backend.h>

/* The maximum number of inputs, and of outputs, also of invalid calls. */
#define MAX_LAUNCH_OPERANDS (TANDEM_MAX_OPERANDS + 1)

/*
 * Prepares the call, launches it and releases it. The alignment that is
 * described is that of the offsets, or that of the elements.
 */
enum tandem_status launch_as_prepared(
    const struct tandem_backend *api, struct tandem_device *device,
    struct tandem_stream *stream, const struct tandem_op *op,
    const struct tandem_tensor_desc *const *inputs, uint32_t input_count,
    const struct tandem_tensor_desc *const *outputs, uint32_t output_count,
    bool is_aligned);

/*
 * Launches a valid GEMM as an operator. If `is_separate` is true, the residual
 * is a copy of c, and c has other content when the operator starts.
 */
enum tandem_status gemm_launch_as_operator(const struct tandem_backend *api,
                                           struct tandem_device *device,
                                           struct tandem_stream *stream,
                                           const struct tandem_gemm *gemm,
                                           bool is_separate);

#endif
