/* SPDX-License-Identifier: Apache-2.0 */
/* A struct tandem_gemm as a prepared operator. */
#ifndef TANDEM_TESTS_CONFORMANCE_GEMM_LAUNCH_H
#define TANDEM_TESTS_CONFORMANCE_GEMM_LAUNCH_H

#include <stdbool.h>

#include <tandem/backend.h>

/* Returns TANDEM_OK if the device supports the valid GEMM as an operator. */
enum tandem_status gemm_supported_as_operator(const struct tandem_backend *api,
                                              struct tandem_device *device,
                                              const struct tandem_gemm *gemm);
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
