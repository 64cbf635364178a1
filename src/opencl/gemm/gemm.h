/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's GEMM functions (see backend.h). Any thread may call them. */
#ifndef TANDEM_OPENCL_GEMM_GEMM_H
#define TANDEM_OPENCL_GEMM_GEMM_H

#include "opencl/queue/kernel_launch.h"

/* `stream` must be valid. */
enum tandem_status gemm_launch(struct tandem_stream *stream,
                               const struct tandem_gemm *gemm);
enum tandem_status gemm_prepare(struct tandem_device *device,
                                const struct tandem_gemm *gemm);
enum tandem_status gemm_ready(struct tandem_device *device,
                              const struct tandem_gemm *gemm);

/* Replaces the memory of the operands by slots, for a plan. */
void gemm_memory_to_slots(struct tandem_gemm *gemm, struct launch_memory *out);

#endif
